"""The ring: what the planner was asked last, kept in memory until there is no room for more.

Snapshots are values that share what did not change, so the ring keeps them as they are, and nothing
is copied or encoded while decisions are made. What one takes is estimated: tables, arrays and lists
count once for all snapshots that have them.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import is_not
from sys import getsizeof
from typing import Any, Final

from app.model.conf import SchedulerConf
from app.model.ids import GroupKey
from app.model.load import MetricsConf
from app.model.plan import Plan
from app.model.recorded import PlanCall, Recorded
from app.model.snapshot import Snapshot
from app.service.cycle.snapshot_token import SnapshotToken

_GANG: Final = 1_500
_TASK: Final = 400
_NODE: Final = 1_500
_POD: Final = 150
_REFUSAL: Final = 1_000
_LARGE: Final = (
    *("claimed_devices", "volumes", "http_extender", "devices", "devices_taken", "numa"),
    *("numa_taken", "loads"),
)
"""Parts that are walked through where they are not those of the entry before."""
_ENTRY: Final = 6_000
"""Of the snapshot itself, and of what is kept here about it."""
_NOTED: Final = 100
"""Of each part of an entry: its identity, its size and its holders here."""
_LOOKED_AT: Final = 4_096
"""Of more gangs, a twentieth is taken to be new."""


@dataclass(slots=True, eq=False)
class Ring:
    """Keeps the latest questions, about ``size`` bytes of them; 0: none."""

    size: int = 0
    forgotten: int = 0
    used: int = 0
    """Bytes, as estimated."""
    _entries: deque[tuple[Recorded, dict[int, int]]] = field(default_factory=deque)
    """Each with the sizes of its parts by identity."""
    _holders: dict[int, int] = field(default_factory=dict)
    """How many entries have a part, by its identity."""

    _latest: dict[str, tuple[Any, dict[int, int]]] = field(default_factory=dict)
    """Of the latest entry each part that was walked through, and what is in it."""

    def note(
        self,
        call: PlanCall,
        token: SnapshotToken,
        plan: Plan,
        *,
        now: float,
        key: GroupKey | None = None,
    ) -> None:
        """The planner was asked at ``now``, and answered."""
        if not self.size:
            return
        snapshot, conf = token.snapshot, token.policies.conf
        before = self._entries[-1][0].snapshot if self._entries else None
        parts = dict(_parts(snapshot, before, plan))
        for name in _LARGE:
            part, inside = getattr(snapshot, name), self._latest.get(name)
            if inside is None or inside[0] is not part:
                inside = self._latest[name] = (part, dict(_walked(part)))
            parts |= inside[1]
        parts[id(snapshot)] += _NOTED * len(parts)
        for at, size in parts.items():
            holders = self._holders.get(at, 0)
            self._holders[at] = holders + 1
            self.used += 0 if holders else size
        self._entries.append((Recorded(call, now, snapshot, conf, plan, key), parts))
        while self.used > self.size and len(self._entries) > 1:
            self._forget()

    def entries(self) -> tuple[Recorded, ...]:
        """The questions, the oldest first, without what gives access to anything."""
        return tuple(replace(entry, conf=_without_access(entry.conf)) for entry, _ in self._entries)

    def _forget(self) -> None:
        _, parts = self._entries.popleft()
        self.forgotten += 1
        for part, size in parts.items():
            self._holders[part] -= 1
            if not self._holders[part]:
                del self._holders[part]
                self.used -= size


def _parts(snapshot: Snapshot, before: Snapshot | None, plan: Plan) -> Iterator[tuple[int, int]]:
    """The parts of an entry by identity, each with the bytes that it takes."""
    yield id(snapshot), _ENTRY
    for array in (snapshot.used, snapshot.releasing):
        yield id(array), array.nbytes
    table = snapshot.table
    yield id(table), table.allocatable.nbytes + _NODE * len(table.nodes)
    running = snapshot.running
    yield id(running), _POD * len(running) + running.requests.nbytes
    yield id(snapshot.placed_pods), 8 * _columns(snapshot.placed_pods) * len(snapshot.placed_pods)
    if snapshot.domains is not None:
        yield id(snapshot.domains), snapshot.domains.rows.nbytes
    yield id(snapshot.gangs), getsizeof(snapshot.gangs) + _new_gangs(snapshot, before)
    for listed in (snapshot.pending, snapshot.queues, snapshot.usage, snapshot.namespaces):
        yield id(listed), getsizeof(listed)
    yield id(snapshot.places), getsizeof(snapshot.places)
    placements = sum(len(each.placements) for each in plan.placed)
    yield id(plan), _REFUSAL * len(plan.refused) + _TASK * placements


def _walked(part: Any) -> Iterator[tuple[int, int]]:
    """Everything inside of a part by identity, each with its own bytes."""
    seen: set[int] = set()
    left = [part]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, str | int | float | None):
            continue
        seen.add(id(each))
        yield id(each), getsizeof(each)
        if isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, tuple | frozenset | list):
            left += each
        elif is_dataclass(each):
            left += (getattr(each, one.name) for one in fields(each))


def _columns(placed: Any) -> int:
    return 4 + len(placed.labels)


def _new_gangs(snapshot: Snapshot, before: Snapshot | None) -> int:
    """Bytes of gangs that the snapshot before did not have."""
    now = snapshot.gangs
    if before is None:
        return _GANG * len(now)
    if len(now) > _LOOKED_AT or len(now) != len(before.gangs):
        return _GANG * (len(now) // 20 + abs(len(now) - len(before.gangs)))
    return _GANG * sum(map(is_not, now.values(), before.gangs.values()))


def _without_access(conf: SchedulerConf) -> SchedulerConf:
    """A configuration without addresses and credentials of metrics; no plan looks at them."""
    metrics = conf.metrics
    return conf if metrics is None else replace(conf, metrics=MetricsConf(metrics.type))
