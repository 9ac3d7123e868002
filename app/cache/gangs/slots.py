"""The slots of one group, found by their role, their sub-group and their node.

A gang has thousands, and its pods come one by one, pinned to the node of one or not: each finds its
slot without a look at all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from app.cache.gangs.members import Slot
from app.model.ids import NodeName
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.pod import Pod
from app.model.shape import PodShape

Ordered = dict[str, Slot]
"""By holder, the first made first."""

Alike = dict[int, Ordered]
"""Slots by the id of their shape, which they keep."""

SlotKind = tuple[str, SubGroup]
"""The role and the sub-group that a slot is kept for."""

K = TypeVar("K")


@dataclass(slots=True, eq=False)
class SlotIndex:
    """Slots by kind, and among these by node; those of one shape together."""

    _of_kind: dict[SlotKind, Alike] = field(default_factory=dict)
    _on_node: dict[tuple[SlotKind, NodeName], Alike] = field(default_factory=dict)

    def add(self, slot: Slot) -> None:
        """Slots are added in the order of their ``serial``."""
        kind = (slot.role, slot.sub_group)
        for alike in (
            self._of_kind.setdefault(kind, {}),
            self._on_node.setdefault((kind, slot.node), {}),
        ):
            alike.setdefault(id(slot.shape), {})[slot.holder] = slot

    def remove(self, slot: Slot) -> None:
        """Remove a slot that was added."""
        kind = (slot.role, slot.sub_group)
        _remove(slot, self._of_kind, kind)
        _remove(slot, self._on_node, (kind, slot.node))

    def counts(self) -> dict[str, int]:
        """How many each role has; those that have none are left out."""
        found: dict[str, int] = {}
        for (role, _), alike in self._of_kind.items():
            found[role] = found.get(role, 0) + sum(map(len, alike.values()))
        return found

    def best_for(self, pod: Pod, sub_group: SubGroup) -> Slot | None:
        """The slot for ``pod``, which is of that sub-group: on the node it names if there is one.

        Of its role and its sub-group, else of no known one. Among equals it is the one made first.
        """
        hint = pod.pinned or pod.nominated
        kinds = _kinds(pod.role, sub_group)
        places = [self._on_node.get((kind, hint), {}) for kind in kinds] if hint else []
        if not pod.pinned:
            places += [self._of_kind.get(kind, {}) for kind in kinds]
        found = (_first(alike, like=pod.shape) for alike in places)
        return next((slot for slot in found if slot is not None), None)

    def first_of(self, role: str, sub_group: SubGroup) -> Slot | None:
        """The first slot kept for that role and sub-group, else for members of no known one."""
        found = (_first(self._of_kind.get(kind, {})) for kind in _kinds(role, sub_group))
        return next((slot for slot in found if slot is not None), None)


def _kinds(role: str, sub_group: SubGroup) -> Iterable[SlotKind]:
    """What slots are kept for that such a member may have."""
    return dict.fromkeys((r, s) for s in (sub_group, NO_SUB_GROUP) for r in (role, ""))


def _first(alike: Alike, *, like: PodShape | None = None) -> Slot | None:
    """The one made first, of those whose room serves ``like`` if that is given."""
    firsts = (next(iter(same.values())) for same in alike.values())
    fitting = (slot for slot in firsts if like is None or slot.shape.fits_like(like))
    return min(fitting, key=lambda slot: slot.serial, default=None)


def _remove(slot: Slot, table: dict[K, Alike], key: K) -> None:
    alike = table[key]
    same = alike[id(slot.shape)]
    del same[slot.holder]
    if not same:
        del alike[id(slot.shape)]
    if not alike:
        del table[key]
