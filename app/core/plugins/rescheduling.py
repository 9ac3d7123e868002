"""rescheduling: pods of nodes that are used much are moved to nodes that are used little.

Its strategy ``lowNodeUtilization`` looks at per cent of cpu, memory and the number of pods. A node
below all ``thresholds`` is used little, one above any of the ``targetThresholds`` is used too much.
Pods of the latter go, until the node is no more above: of low priority first, of equal ones offline
ones, then those of the lower QoS class, then those that saved their work last. None goes that is
of the priority of ``thresholdPriorityClassName`` or higher, and none where no node is used little
that it fits on without bringing that above a target threshold. With ``offlineOnly`` only pods go
that say that they are preemptable, or offline (``volcano.sh/qos-level: BE``).

Where the configuration has ``metrics``, cpu and memory are what nodes measure; a pod is expected to
use what it requests, and what came too late to be measured counts. Nodes without a fresh load are
left alone, and so are nodes whose load was averaged over a time before the last round ended: else
pods that have gone would let others go. Without ``metrics`` all counts are of requests.

Requests move as pods do, and so two rounds never undo each other: what is above the target
thresholds, summed over all nodes, falls with each pod that moves.

There is one round in each ``interval``, and a pod that has run for less than that stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arguments import Arguments, parse_bool
from app.core.conf_error import ConfError
from app.core.policy import Hooks, OpenPlugin, Session
from app.core.victim_rules import NodeExcess, VictimTasks
from app.model.amounts import CPU, MEMORY, PODS
from app.model.colocation import USED_BY, is_offline
from app.model.conf import PluginConf
from app.model.load import NodeLoad
from app.model.pod import said_preemptable
from app.model.resources import (
    PODS_COLUMN,
    Mask,
    Matrix,
    Rows,
    Vector,
)
from app.model.shape import QosClass

NAME = "rescheduling"
_INTERVAL_S = 300.0
_LOW_NODE_UTILIZATION = "lowNodeUtilization"
_OFFLINE_ONLY = "offlineOnly"
_ALWAYS = "lowPriorityFirst"
"""Pods of low priority always go first."""
_RESOURCES = (CPU, MEMORY, PODS)
"""Their columns on every axis are 0, 1 and 2."""
_EVERY = slice(None)
_ALL = 100.0
_PERIOD_S = 300.0
_SHORTEST_PERIOD_S = 30.0
_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DEFAULT_CLASS = "system-cluster-critical"

Percentages = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """``low`` and ``high`` are percentages of cpu, memory and the number of pods, shape ``(3,)``.

    Pods of the priority of ``spared_class`` and above stay. ``period_s``: loads are averages over
    so many seconds, where what measures them is asked for that.
    """

    interval_s: float
    low: Percentages
    high: Percentages
    spared_class: str
    offline_only: bool
    period_s: float


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``interval``, ``metricsPeriod`` and ``strategies``.

    Without ``lowNodeUtilization`` no pod moves.
    """
    setting = _setting(conf)
    if setting is None:
        return lambda _session: Hooks()

    def open_(session: Session) -> Hooks:
        usage = NodeUsage(setting, session)
        return Hooks(victim_tasks=VictimTasks(NAME, usage.wanted, usage.excess, usage.takes))

    return open_


def period_of(conf: PluginConf) -> float | None:
    """Over how many seconds loads are to be averaged; None: no strategy looks at loads.

    Raises ConfError.
    """
    setting = _setting(conf)
    return None if setting is None else setting.period_s


class NodeUsage:
    """How much of the nodes of one cycle is used."""

    def __init__(self, setting: Setting, session: Session) -> None:
        self._setting = setting
        self._ledger = session.ledger
        self._now = session.now
        self._snapshot = session.ledger.snapshot
        self._allocatable = self._snapshot.table.allocatable
        self._measures = session.conf.metrics is not None
        index = self._snapshot.axis.index
        self._columns = [
            [index[each] for each in USED_BY.get(name, (name,)) if each in index]
            if self._measures
            else [index[name]]
            for name in _RESOURCES
        ]

    def wanted(self, rows: Rows) -> Sequence[int]:
        """The pods at ``rows`` that are on nodes which are used too much, first in front."""
        running = self._snapshot.running
        least = self._spared_priority()
        if least is None or not self._is_due() or not self._low.any():
            return ()
        started = running.started[rows]
        has_run = (started > 0) & (self._now - started >= self._setting.interval_s)
        has_run &= running.priorities[rows] < least
        found = self._on_full_nodes(rows[has_run]).tolist()
        if self._setting.offline_only:
            found = [at for at in found if self._is_offline(at)]

        def place(at: int) -> tuple[int, bool, QosClass, float, str]:
            pod, saved = running.pods[at], -float(running.saved[at])
            online = not is_offline(pod.annotations)
            return int(running.priorities[at]), online, pod.shape.qos, saved, pod.key

        return sorted(found, key=place)

    def excess(self, at: int) -> NodeExcess | None:
        """What the node of the pod at that position has too much of, if the pod has some of it."""
        running = self._snapshot.running
        row = int(running.nodes[at])
        if row >= len(self._allocatable) or not self._known[row]:
            return None
        above = (self._used(row) > self._most[row]) & (self._of(running.requests[at]) > 0)
        if not above.any():
            return None
        column = int(np.argmax(above))
        measured = self._measures and column != PODS_COLUMN
        beyond = int(self._beyond[row, column]) if measured else None
        return NodeExcess(row, column, int(self._most[row, column]), beyond)

    def takes(self, request: Vector) -> Mask:
        """The nodes that were used little, and are not used too much with ``request`` as well."""
        too_much = (self._used() + self._of(request) > self._most).sum(axis=1)
        mask: Mask = self._low & (too_much == 0)
        return mask

    def _on_full_nodes(self, rows: Rows) -> Rows:
        """Those of the pods at ``rows`` that have some of what their nodes have too much of."""
        running, count = self._snapshot.running, len(self._allocatable)
        above = np.zeros((count + 1, len(_RESOURCES)), dtype=np.bool_)
        above[:count] = (self._used() > self._most) & self._known[:, None]
        has_some = self._of(running.requests[rows]) > 0
        on = np.minimum(running.nodes[rows], count)  # the last row: no node that is known
        found: Rows = rows[(above[on] & has_some).any(axis=1)]
        return found

    def _is_due(self) -> bool:
        last = self._snapshot.shuffled
        return not last or self._now - last >= self._setting.interval_s

    def _spared_priority(self) -> int | None:
        """Pods of this priority stay; None: the class is not known."""
        name = self._setting.spared_class
        return self._snapshot.classes.get(name, _CRITICAL.get(name))

    def _is_offline(self, at: int) -> bool:
        """Whether the pod says that it may go, or its group does for it."""
        pod = self._snapshot.running.pods[at]
        if is_offline(pod.annotations):
            return True
        said = said_preemptable(pod.annotations, pod.labels)
        of_group = self._snapshot.gangs[self._snapshot.running.gangs[at]].preemptable
        return (of_group if said is None else said) is True

    def _of(self, amounts: Matrix) -> Matrix:
        """Cpu, memory and pods of amounts of shape ``(..., R)``, shape ``(..., 3)``."""
        sums = [amounts[..., columns].sum(axis=-1) for columns in self._columns]
        found: Matrix = np.stack(sums, axis=-1)
        return found

    def _used(self, node: int | slice = _EVERY) -> Matrix:
        """What is used of each node as the ledger stands, shape ``(N, 3)``; of one: ``(3,)``."""
        taken = self._allocatable[node] - self._ledger.future_idle[node]
        used: Matrix = self._of(taken) + self._beyond[node]
        return used

    @cached_property
    def _beyond(self) -> Matrix:
        """What nodes measure beyond what pods request that were measured, shape ``(N, 3)``.

        Less than nothing: pods use less than they request. Nothing where no load is known.
        """
        beyond = np.zeros((len(self._allocatable), len(_RESOURCES)), dtype=np.int64)
        requested = self._of(self._snapshot.used)
        for row, load in enumerate(self._loads):
            if load is not None:
                unseen = load.unseen.cpu, load.unseen.memory
                for column, (share, late) in enumerate(
                    zip((load.cpu, load.memory), unseen, strict=True)
                ):
                    measured = round(share * int(self._allocatable[row, column]) / _ALL)
                    beyond[row, column] = measured + late - requested[row, column]
        return beyond

    @cached_property
    def _loads(self) -> Sequence[NodeLoad | None]:
        """The loads that count, of nodes in their order."""
        if not self._measures:
            return ()
        found = [self._snapshot.loads.get(node.name) for node in self._snapshot.table.nodes]
        return [load if load is not None and self._counts(load) else None for load in found]

    def _counts(self, load: NodeLoad) -> bool:
        """Whether the load is fresh, and nothing of it was measured before the last round."""
        return load.is_fresh(self._now) and load.at - load.window_s >= self._snapshot.shuffled

    @cached_property
    def _known(self) -> Mask:
        """The nodes of which is known how much is used."""
        if not self._measures:
            return np.ones(len(self._allocatable), dtype=np.bool_)
        return np.array([load is not None for load in self._loads], dtype=np.bool_)

    @cached_property
    def _low(self) -> Mask:
        """The nodes that were used little when they were first looked at."""
        low = self._allocatable[:, : len(_RESOURCES)] * self._setting.low
        not_low = (self._used() * _ALL >= low).sum(axis=1)
        mask: Mask = (not_low == 0) & self._known
        return mask

    @cached_property
    def _most(self) -> Matrix:
        """What may be used of each node, shape ``(N, 3)``."""
        share = self._allocatable[:, : len(_RESOURCES)] * self._setting.high
        most: Matrix = np.floor(share / _ALL).astype(np.int64)
        return most


def _setting(conf: PluginConf) -> Setting | None:
    arguments = Arguments(conf)
    interval_s = arguments.duration("interval") or _INTERVAL_S
    period_s = arguments.duration("metricsPeriod") or _PERIOD_S
    if period_s < _SHORTEST_PERIOD_S:
        said = conf.arguments["metricsPeriod"]
        raise ConfError(f"plugin {NAME}: argument metricsPeriod: {said!r} is less than 30s")
    strategies = _strategies(conf)
    params = strategies.get(_LOW_NODE_UTILIZATION)
    if params is None:
        return None
    _check_fit(params)
    return Setting(
        interval_s,
        low=_percentages(params, "thresholds"),
        high=_percentages(params, "targetThresholds"),
        spared_class=_class_name(params),
        offline_only=_OFFLINE_ONLY in strategies,
        period_s=period_s,
    )


def _strategies(conf: PluginConf) -> Mapping[str, Mapping[str, Any]]:
    """The params of strategies, by their names."""
    found: dict[str, Mapping[str, Any]] = {}
    for strategy in _maps(conf.arguments.get("strategies"), what="strategies"):
        name = strategy.get("name")
        if name not in {_LOW_NODE_UTILIZATION, _OFFLINE_ONLY, _ALWAYS}:
            known = f"{_LOW_NODE_UTILIZATION}, {_OFFLINE_ONLY}, {_ALWAYS}"
            raise ConfError(f"plugin {NAME}: strategies: unknown strategy {name!r}, not of {known}")
        found[name] = _mapping(strategy.get("params"), what=f"params of {name}")
    return found


def _maps(value: object, *, what: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfError(f"plugin {NAME}: argument {what}: {value!r} is not a list")
    return [_mapping(each, what=f"an item of {what}") for each in value]


def _mapping(value: object, *, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfError(f"plugin {NAME}: {what}: {value!r} is not a map")
    return value


def _percentages(params: Mapping[str, Any], key: str) -> Percentages:
    given = _mapping(params.get(key), what=key)
    unknown = sorted(map(str, given.keys() - set(_RESOURCES)))
    if unknown:
        raise ConfError(f"plugin {NAME}: {key}: {unknown[0]} is none of {', '.join(_RESOURCES)}")
    return np.array([_percentage(given.get(name), f"{key}.{name}") for name in _RESOURCES])


def _percentage(value: object, key: str) -> float:
    number = Arguments(PluginConf(NAME, arguments={key: value})).number(key, _ALL)
    if not 0 <= number <= _ALL:
        raise ConfError(f"plugin {NAME}: argument {key}: {value!r} is not from 0 to 100")
    return number


def _class_name(params: Mapping[str, Any]) -> str:
    key = "thresholdPriorityClassName"
    said = Arguments(PluginConf(NAME, arguments={key: params.get(key)})).text(key)
    return said or _DEFAULT_CLASS


def _check_fit(params: Mapping[str, Any]) -> None:
    """``nodeFit`` is either; pods move only where they fit, whatever it says."""
    said = params.get("nodeFit")
    try:
        if said is not None:
            parse_bool(said)
    except ValueError:
        raise ConfError(f"plugin {NAME}: argument nodeFit: {said!r} is not true or false") from None
