"""What is taken of the devices of nodes, device by device, as the ledger stands.

A place takes what :func:`app.core.placement.devices.assign` chooses, an eviction gives back what
its pod has, and a roll-back restores every number exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.core.entries import Entry, Evicted, Placed
from app.core.ledger import Ledger
from app.core.placement.devices import Given, assign, on_node
from app.core.placement.journal import JournalReader
from app.model.device_families import (
    DevicesTaken,
    Family,
    GpuShare,
    NodeDevices,
    needs_of,
)
from app.model.devices import DeviceAsk, DeviceNeed, DeviceOrder, Use
from app.model.ids import GroupKey

Needs = tuple[tuple[Family, DeviceNeed], ...]
Here = tuple[NodeDevices, ...]


class _Taken(NamedTuple):
    """What an entry of the journal takes or gives back.

    ``idle``: it counts now, not only once pods have gone. ``joins``: it is of one more pod there.
    """

    each: tuple[DevicesTaken, ...]
    idle: bool
    joins: bool


class DeviceBooks:
    """The devices of the nodes of one cycle, by row."""

    def __init__(
        self,
        ledger: Ledger,
        families: Sequence[Family],
        *,
        share: GpuShare | None,
        order: DeviceOrder,
    ) -> None:
        snapshot = ledger.snapshot
        self._snapshot = snapshot
        self._order = order
        self._share = share
        self._families = tuple(families)
        self._now: list[Here] = [
            snapshot.devices.get(node.name, ()) for node in snapshot.table.nodes
        ]
        self._taken: dict[int, _Taken] = {}
        """By identity of the entries of the journal, which live as long as they are there."""
        self._journal = JournalReader(ledger.journal)

    def needs(self, asked: DeviceAsk | None) -> Needs:
        """What a pod needs of each family."""
        return needs_of(self._families, asked, self._share)

    def now(self) -> Sequence[Here]:
        """By row; not to be kept, as it moves with the ledger."""
        for entry, row, sign in self._journal.changes():
            if self._now[row]:
                self._follow(entry, row, undone=sign != entry.sign)
        return self._now

    def _follow(self, entry: Entry, row: int, *, undone: bool) -> None:
        if undone:
            taken = self._taken.pop(id(entry), None)
        else:
            taken = self._of(entry, row)
            if taken is not None:
                self._taken[id(entry)] = taken
        if taken is None:
            return
        gives = undone is isinstance(entry, Placed)
        by_family = {each.family: each for each in taken.each}
        self._now[row] = tuple(
            _moved(here, by_family.get(here.family.name), entry=taken, gives=gives)
            for here in self._now[row]
        )

    def _of(self, entry: Entry, row: int) -> _Taken | None:
        if isinstance(entry, Evicted):
            each = self._snapshot.devices_taken.get(entry.pod.uid)
            return (
                None if entry.releasing or each is None else _Taken(each, idle=False, joins=False)
            )
        needs = self.needs(entry.shape.devices)
        found = self.chosen(needs, row, entry.gang.key, ahead=entry.pipelined)
        if not found:
            return None
        exclusive = {family.name: need.exclusive for family, need in needs}
        return _Taken(
            tuple(
                DevicesTaken(name, entry.gang.key, charges, exclusive[name])
                for name, charges in found
            ),
            idle=not entry.pipelined,
            joins=True,
        )

    def chosen(
        self, needs: Needs, row: int, group: GroupKey, *, ahead: bool
    ) -> list[tuple[str, tuple[tuple[int, Use], ...]]]:
        """What a pod gets of each family on the node of a row; empty: nothing, or not of all."""
        here = {each.family.name: each for each in self._now[row]}
        chosen = []
        for family, need in needs:
            there = here.get(family.name)
            if there is None:
                return []
            found = assign(on_node(there, need, group, ahead=ahead), need, self._order)
            if not isinstance(found, Given):
                return []
            chosen.append((family.name, tuple((at, use) for at, use in found.charges)))
        return chosen


def _moved(
    here: NodeDevices, taken: DevicesTaken | None, *, entry: _Taken, gives: bool
) -> NodeDevices:
    if taken is None or not taken.charges:
        return here
    used, ahead, groups = list(here.used), list(here.ahead), list(here.groups)
    for at, use in taken.charges:
        ahead[at] = ahead[at].minus(use) if gives else ahead[at].plus(use)
        if entry.idle:
            used[at] = used[at].minus(use) if gives else used[at].plus(use)
        if entry.joins:
            for mark in (taken.group, *taken.exclusive):
                groups[at] = _without(groups[at], mark) if gives else (*groups[at], mark)
    return replace(here, used=tuple(used), ahead=tuple(ahead), groups=tuple(groups))


def _without(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    at = groups.index(group)
    return groups[:at] + groups[at + 1 :]
