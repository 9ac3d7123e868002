"""usage: no pod goes to a node that is busier than a threshold, and idle nodes score higher.

Loads are measured by others, and averages of some minutes. One that is older than five minutes
counts for nothing: the node is allowed, and scores nothing. Arguments:

* ``thresholds``: ``cpu`` (80) and ``mem`` (80), per cent;
* ``usage.weight`` (5), ``cpu.weight`` (1), ``memory.weight`` (1) of the score;
* ``estimator``: what pods use that came too late to be measured: ``request_ratio`` (0.7) of what
  they request and ``burst_ratio`` (0) of what their limits let them use beyond that, and ``be_cpu``
  (250m) and ``be_mem`` (200Mi) where they request none; times ``risk_factor`` (1.2) on nodes whose
  load is ``risk_threshold`` (0.6) or more with that, and no more than requests and limits allow.
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
from app.model.load import NOTHING, NodeLoad, Unseen
from app.model.reason import Cause
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, Mask, Scores

NAME: Final = "usage"
CPU_TEXT: Final = "the CPU load of the node exceeds the upper limit."
MEMORY_TEXT: Final = "the memory load of the node exceeds the upper limit."

_Pairs = NDArray[np.float64]
"""Of cpu and of memory, shape ``(2, N)``."""

_Triples = NDArray[np.float64]

_FULL = 100.0
_MEASURED: Final = (CPU, MEMORY)
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
    burst_ratio: float
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
        expected, most, without = self._coming.now()[:, :, rows] / self._sizes[:, rows]
        measured = self._measured[:, rows] / _FULL
        weights = np.array(given.weights, dtype=np.float64)[:, None]
        together = ((measured + expected + without) * weights).sum(axis=0) / weights.sum()
        risk = np.where(together >= given.risk_threshold, given.risk_factor, 1.0)
        # What a pod uses that requests something ends at its limits.
        coming = np.minimum(expected * risk, np.maximum(most, expected)) + without * risk
        busy = np.clip(measured + coming, 0.0, 1.0)
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
    """What pods will use that no measurement shows, as the ledger stands, shape ``(3, 2, N)``.

    What is expected of pods with requests, the most that they may use, and what is expected of pods
    without requests.
    """

    def __init__(self, ledger: Ledger, loads: Iterable[NodeLoad | None], setting: Setting) -> None:
        self._setting = setting
        self._journal = JournalReader(ledger.journal)
        index = ledger.snapshot.axis.index
        self._columns = [
            [index[each] for each in USED_BY[name] if each in index] for name in _MEASURED
        ]
        unseen = [_of_unseen(each.unseen if each else NOTHING) for each in loads]
        sums = np.array(unseen, dtype=np.float64).reshape(-1, 3, 2)
        self._now: _Triples = np.moveaxis(self._weighed(sums), 0, -1).copy()

    def now(self) -> _Triples:
        """With what the cycle has decided so far; pods that are to go still count."""
        for entry, row, sign in self._journal.changes():
            if isinstance(entry, Placed):
                asked = [float(entry.task.request[each].sum()) for each in self._columns]
                burst = dict(entry.task.shape.burst)
                beyond = [burst.get(name, 0) for name in _MEASURED]
                without = [each == 0 for each in asked]
                sums = np.array([asked, beyond, without], dtype=np.float64)
                self._now[:, :, row] += sign * self._weighed(sums)
        return self._now

    def _weighed(self, sums: _Triples) -> _Triples:
        """Of requests, of bursts and of numbers of pods without requests, ``(..., 3, 2)``."""
        given = self._setting
        asked, beyond, without = (sums[..., at, :] for at in range(3))
        expected = asked * given.request_ratio + beyond * given.burst_ratio
        return np.stack([expected, asked + beyond, without * np.array(given.without)], axis=-2)


def _of_unseen(unseen: Unseen) -> list[list[int]]:
    return [
        [unseen.cpu, unseen.memory],
        [unseen.cpu_burst, unseen.memory_burst],
        [unseen.no_cpu, unseen.no_memory],
    ]


def _setting(conf: PluginConf) -> Setting:
    own = Arguments(conf)
    nested = Arguments(PluginConf(conf.name, arguments=_flat(conf)))
    found = Setting(
        weight=own.integer("usage.weight", 5),
        weights=(own.integer("cpu.weight", 1), own.integer("memory.weight", 1)),
        thresholds=(nested.number("thresholds.cpu", 80), nested.number("thresholds.mem", 80)),
        request_ratio=nested.number("estimator.request_ratio", 0.7),
        burst_ratio=nested.number("estimator.burst_ratio", 0),
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
        "estimator.burst_ratio": found.burst_ratio,
        "estimator.risk_threshold": found.risk_threshold,
        "estimator.risk_factor": found.risk_factor,
        "estimator.be_cpu": found.without[0],
        "estimator.be_mem": found.without[1],
    }
    for key, number in numbers.items():
        if number < 0:
            raise _wrong(key, f"{number:g} is less than nothing")
    for key in ("estimator.request_ratio", "estimator.burst_ratio"):
        if numbers[key] > 1:
            raise _wrong(key, f"{numbers[key]:g} is more than all")
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
