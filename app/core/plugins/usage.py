"""usage: no pod goes to a node that is busier than a threshold, and idle nodes are better.

Loads are measured by others, and averages of some minutes. One that is older than five minutes
counts for nothing: the node is allowed, and scores nothing. Arguments:

* ``thresholds``: ``cpu`` (80) and ``mem`` (80), per cent;
* ``usage.weight`` (5), ``cpu.weight`` (1), ``memory.weight`` (1) of the score;
* ``estimator``: what pods use that came too late to be measured: ``request_ratio`` (0.7) of what
  they request, and ``be_cpu`` (250m) and ``be_mem`` (200Mi) where they request none; times
  ``risk_factor`` (1.2) on nodes whose load is ``risk_threshold`` (0.6) or more with that.
  ``burst_ratio`` has to be 0: limits of pods are not looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.entries import Placed
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.model.amounts import CPU, MEMORY
from app.model.colocation import USED_BY
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.load import NodeLoad
from app.model.reason import Cause
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, Mask, Scores

NAME: Final = "usage"
CPU_TEXT: Final = "the CPU load of the node exceeds the upper limit."
MEMORY_TEXT: Final = "the memory load of the node exceeds the upper limit."

_Pairs = NDArray[np.float64]
"""Of cpu and of memory, shape ``(2, N)``."""

_FULL = 100.0
_COLUMNS = (CPU_COLUMN, MEMORY_COLUMN)
_SECTIONS: Final = {
    "thresholds": ("cpu", "mem"),
    "estimator": (
        "request_ratio",
        "burst_ratio",
        "risk_threshold",
        "risk_factor",
        "be_cpu",
        "be_mem",
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """``thresholds``, ``weights`` and ``without`` are of cpu and of memory.

    ``without``: what a pod is expected to use that requests none, in millicores and bytes.
    """

    weight: int
    weights: tuple[int, int]
    thresholds: tuple[float, float]
    request_ratio: float
    risk_threshold: float
    risk_factor: float
    without: tuple[float, float]


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the arguments above."""
    setting = _setting(conf)

    def open_(session: Session) -> Hooks:
        loads = LoadRules(session.ledger, setting, now=session.now)
        scores = setting.weight > 0 and sum(setting.weights) > 0
        return Hooks(
            node_rules=loads.rules(),
            node_score=NodeScore(loads.key, loads.score) if scores else None,
        )

    return open_


class LoadRules:
    """The plugin on the nodes of one cycle; arrays of loads have the shape ``(2, N)``."""

    def __init__(self, ledger: Ledger, setting: Setting, *, now: float) -> None:
        table = ledger.snapshot.table
        loads = (ledger.snapshot.loads.get(node.name) for node in table.nodes)
        self._setting = setting
        self._loads = [each if each and each.is_fresh(now) else None for each in loads]
        self._known = np.array([each is not None for each in self._loads], dtype=np.bool_)
        self._measured = (
            np.array([(each.cpu, each.memory) if each else (0.0, 0.0) for each in self._loads])
            .reshape(-1, 2)
            .T
        )
        self._sizes = np.maximum(table.allocatable[:, list(_COLUMNS)].T.astype(np.float64), 1.0)
        self._coming = _Coming(ledger, self._loads, setting)

    def rules(self) -> Sequence[NodeRule]:
        """Volcano's, in the order in which it looks at them."""
        return (self._rule(CPU_TEXT, 0, "cpu"), self._rule(MEMORY_TEXT, 1, "memory"))

    def key(self, _gang: Gang, _task: Task) -> str | None:
        """What answers depend on: nothing of the task. None: no load is known."""
        return NAME if self._known.any() else None

    def score(self, _gang: Gang, _task: Task, nodes: NodesNow) -> Scores:
        """Up to 100 times the weight, for a node that is idle."""
        given, rows = self._setting, nodes.rows
        coming = self._coming.now()[:, rows] / self._sizes[:, rows]
        measured = self._measured[:, rows] / _FULL
        weights = np.array(given.weights, dtype=np.float64)[:, None]
        together = ((measured + coming) * weights).sum(axis=0) / weights.sum()
        risk = np.where(together >= given.risk_threshold, given.risk_factor, 1.0)
        busy = np.clip(measured + coming * risk, 0.0, 1.0)
        idle = ((1.0 - busy) * weights).sum(axis=0) / weights.sum()
        scores: Scores = np.where(self._known[rows], idle * _FULL * given.weight, 0.0)
        return scores

    def _rule(self, text: str, column: int, called: str) -> NodeRule:
        limit = self._setting.thresholds[column]

        def allows(_gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
            mask: Mask = self._measured[column, nodes.rows] <= limit
            return mask

        def details(_gang: Gang, _task: Task, nodes: NodesNow) -> str:
            least = self._measured[column, nodes.rows].min()
            return f"{called} load of at most {limit:g} % allowed; the least is {least:.3g} %"

        return NodeRule(text, self.key, allows, Cause.NODE_LOAD, details)


class _Coming:
    """What pods will use that no measurement shows, shape ``(2, N)``, as the ledger stands."""

    def __init__(self, ledger: Ledger, loads: Iterable[NodeLoad | None], setting: Setting) -> None:
        self._setting = setting
        self._journal = JournalReader(ledger.journal)
        index = ledger.snapshot.axis.index
        self._columns = [
            [index[each] for each in USED_BY[name] if each in index] for name in (CPU, MEMORY)
        ]
        self._now: _Pairs = (
            np.array([self._of_unseen(each) if each else (0.0, 0.0) for each in loads])
            .reshape(-1, 2)
            .T.copy()
        )

    def now(self) -> _Pairs:
        """With what the cycle has decided so far; pods that are to go still count."""
        for entry, row, sign in self._journal.changes():
            if isinstance(entry, Placed):
                asked = np.array([entry.task.request[each].sum() for each in self._columns])
                self._now[:, row] += sign * np.where(
                    asked > 0, asked * self._setting.request_ratio, self._setting.without
                )
        return self._now

    def _of_unseen(self, load: NodeLoad) -> tuple[float, float]:
        unseen, given = load.unseen, self._setting
        return (
            unseen.cpu * given.request_ratio + unseen.no_cpu * given.without[0],
            unseen.memory * given.request_ratio + unseen.no_memory * given.without[1],
        )


def _setting(conf: PluginConf) -> Setting:
    own = Arguments(conf)
    nested = Arguments(PluginConf(conf.name, arguments=_flat(conf)))
    found = Setting(
        weight=own.integer("usage.weight", 5),
        weights=(own.integer("cpu.weight", 1), own.integer("memory.weight", 1)),
        thresholds=(nested.number("thresholds.cpu", 80), nested.number("thresholds.mem", 80)),
        request_ratio=nested.number("estimator.request_ratio", 0.7),
        risk_threshold=nested.number("estimator.risk_threshold", 0.6),
        risk_factor=nested.number("estimator.risk_factor", 1.2),
        without=(
            nested.quantity("estimator.be_cpu", 0.25) * 1000,
            nested.quantity("estimator.be_mem", 200 * 2.0**20),
        ),
    )
    numbers = {
        "usage.weight": found.weight,
        "cpu.weight": found.weights[0],
        "memory.weight": found.weights[1],
        "thresholds.cpu": found.thresholds[0],
        "thresholds.mem": found.thresholds[1],
        "estimator.request_ratio": found.request_ratio,
        "estimator.risk_threshold": found.risk_threshold,
        "estimator.risk_factor": found.risk_factor,
        "estimator.be_cpu": found.without[0],
        "estimator.be_mem": found.without[1],
    }
    for key, number in numbers.items():
        if number < 0:
            raise _wrong(key, f"{number:g} is less than nothing")
    if nested.number("estimator.burst_ratio", 0) != 0:
        raise _wrong("estimator.burst_ratio", "limits of pods are not looked at, so it has to be 0")
    return found


def _flat(conf: PluginConf) -> Mapping[str, object]:
    """The arguments of the sections, each under the section's name."""
    found: dict[str, object] = {}
    for section, known in _SECTIONS.items():
        given = conf.arguments.get(section)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise _wrong(section, f"{given!r} is not a mapping")
        for key, value in given.items():
            if key not in known:
                raise _wrong(f"{section}.{key}", f"unknown, known are {', '.join(known)}")
            found[f"{section}.{key}"] = value
    return found


def _wrong(key: str, why: str) -> ConfError:
    return ConfError(f"plugin {NAME}: argument {key}: {why}")
