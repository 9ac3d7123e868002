"""rescheduling: pods of nodes that are used much are moved to nodes that are used little.

Its strategy ``lowNodeUtilization`` compares what pods request with what nodes have, in per cent of
cpu, memory and the number of pods. A node below all ``thresholds`` is used little, one above any of
the ``targetThresholds`` is used too much. Pods of the latter go, of low priority first and of equal
ones those that saved their work last, until the node is no more above; none that is of the priority
of ``thresholdPriorityClassName`` or higher, and none where no node is used little that it fits on
without bringing that above a target threshold.

Volcano goes by what nodes measure. Requests move as pods do, and so two rounds never undo each
other: what is above the target thresholds, summed over all nodes, falls with each pod that moves.

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
from app.core.ledger import Ledger
from app.core.policy import Hooks, NodeExcess, OpenPlugin, Session, VictimTasks
from app.model.amounts import CPU, MEMORY, PODS
from app.model.conf import PluginConf
from app.model.resources import (
    CPU_COLUMN,
    MEMORY_COLUMN,
    PODS_COLUMN,
    Mask,
    Matrix,
    Rows,
    Vector,
)

NAME = "rescheduling"
_INTERVAL_S = 300.0
_LOW_NODE_UTILIZATION = "lowNodeUtilization"
_ALWAYS = "lowPriorityFirst"
"""Pods of low priority always go first."""
_RESOURCES = (CPU, MEMORY, PODS)
_COLUMNS = [CPU_COLUMN, MEMORY_COLUMN, PODS_COLUMN]
_ALL = 100.0
_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DEFAULT_CLASS = "system-cluster-critical"

Percentages = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """``low`` and ``high`` are percentages of cpu, memory and the number of pods, shape ``(3,)``.

    Pods of the priority of ``spared_class`` and above stay.
    """

    interval_s: float
    low: Percentages
    high: Percentages
    spared_class: str


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``interval`` and ``strategies``; without ``lowNodeUtilization`` no pod moves."""
    interval_s = Arguments(conf).duration("interval") or _INTERVAL_S
    params = _params(conf)
    if params is None:
        return lambda _session: Hooks()
    setting = Setting(
        interval_s,
        low=_percentages(params, "thresholds"),
        high=_percentages(params, "targetThresholds"),
        spared_class=_class_name(params),
    )
    _check_fit(params)

    def open_(session: Session) -> Hooks:
        usage = NodeUsage(setting, session.ledger, session.now)
        return Hooks(victim_tasks=VictimTasks(NAME, usage.wanted, usage.excess, usage.takes))

    return open_


class NodeUsage:
    """How much of the nodes of one cycle is used; ``now`` is seconds since the epoch."""

    def __init__(self, setting: Setting, ledger: Ledger, now: float) -> None:
        self._setting = setting
        self._ledger = ledger
        self._now = now
        self._allocatable = ledger.snapshot.table.allocatable

    def wanted(self, rows: Rows) -> Sequence[int]:
        """The pods at ``rows`` that are on nodes which are used too much, first in front."""
        running = self._ledger.snapshot.running
        least = self._spared_priority()
        if least is None or not self._is_due() or not self._low.any():
            return ()
        started = running.started[rows]
        has_run = (started > 0) & (self._now - started >= self._setting.interval_s)
        has_run &= running.priorities[rows] < least
        found = [at for at in rows[has_run].tolist() if self.excess(at) is not None]

        def place(at: int) -> tuple[int, float, str]:
            return int(running.priorities[at]), -float(running.saved[at]), running.pods[at].key

        return sorted(found, key=place)

    def excess(self, at: int) -> NodeExcess | None:
        """What the node of the pod at that position has too much of, if the pod has some of it."""
        running = self._ledger.snapshot.running
        row = int(running.nodes[at])
        if row >= len(self._allocatable):
            return None
        above = (self._used()[row] > self._most[row]) & (running.requests[at] > 0)[_COLUMNS]
        if not above.any():
            return None
        column = int(np.argmax(above))
        return NodeExcess(row, column, int(self._most[row, column]))

    def takes(self, request: Vector) -> Mask:
        """The nodes that were used little, and are not used too much with ``request`` as well."""
        too_much = (self._used() + request[_COLUMNS] > self._most).sum(axis=1)
        mask: Mask = self._low & (too_much == 0)
        return mask

    def _is_due(self) -> bool:
        last = self._ledger.snapshot.shuffled
        return not last or self._now - last >= self._setting.interval_s

    def _spared_priority(self) -> int | None:
        """Pods of this priority stay; None: the class is not known."""
        name = self._setting.spared_class
        return self._ledger.snapshot.classes.get(name, _CRITICAL.get(name))

    def _used(self) -> Matrix:
        """What is taken of each node as the ledger stands, shape ``(N, 3)``."""
        used: Matrix = (self._allocatable - self._ledger.future_idle)[:, _COLUMNS]
        return used

    @cached_property
    def _low(self) -> Mask:
        """The nodes that were used little when they were first looked at."""
        low = self._allocatable[:, _COLUMNS] * self._setting.low
        not_low = (self._used() * _ALL >= low).sum(axis=1)
        mask: Mask = not_low == 0
        return mask

    @cached_property
    def _most(self) -> Matrix:
        """What may be taken of each node, shape ``(N, 3)``."""
        share = self._allocatable[:, _COLUMNS] * self._setting.high
        most: Matrix = np.floor(share / _ALL).astype(np.int64)
        return most


def _params(conf: PluginConf) -> Mapping[str, Any] | None:
    """What ``lowNodeUtilization`` is given; None: the strategy is not among those listed."""
    found: Mapping[str, Any] | None = None
    for strategy in _maps(conf.arguments.get("strategies"), what="strategies"):
        name = strategy.get("name")
        if name == _LOW_NODE_UTILIZATION:
            found = _mapping(strategy.get("params"), what=f"params of {name}")
        elif name != _ALWAYS:
            known = f"{_LOW_NODE_UTILIZATION}, {_ALWAYS}"
            raise ConfError(f"plugin {NAME}: strategies: unknown strategy {name!r}, not of {known}")
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
    """Pods move only where they fit; a configuration that asks for less cannot be had."""
    said = params.get("nodeFit")
    try:
        fits = said is None or parse_bool(said)
    except ValueError:
        raise ConfError(f"plugin {NAME}: argument nodeFit: {said!r} is not true or false") from None
    if not fits:
        raise ConfError(f"plugin {NAME}: nodeFit: pods move only to nodes that they fit on")
