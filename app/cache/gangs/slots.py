"""The slots of one group, found by their role and their node.

A gang has thousands, and its pods come one by one, pinned to the node of one or not: each finds its
slot without a look at all of them.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from app.cache.gangs.members import Slot
from app.model.ids import NodeName
from app.model.pod import Pod
from app.model.shape import PodShape

Ordered = dict[str, Slot]
"""By holder, the first made first."""

Alike = dict[int, Ordered]
"""Slots by the id of their shape, which they keep."""

K = TypeVar("K")


@dataclass(slots=True, eq=False)
class SlotIndex:
    """Slots by role, and among these by node; those of one shape together."""

    _of_role: dict[str, Alike] = field(default_factory=dict)
    _on_node: dict[tuple[str, NodeName], Alike] = field(default_factory=dict)

    def add(self, slot: Slot) -> None:
        """Slots are added in the order of their ``serial``."""
        for alike in (
            self._of_role.setdefault(slot.role, {}),
            self._on_node.setdefault((slot.role, slot.node), {}),
        ):
            alike.setdefault(id(slot.shape), {})[slot.holder] = slot

    def remove(self, slot: Slot) -> None:
        """Remove a slot that was added."""
        _remove(slot, self._of_role, slot.role)
        _remove(slot, self._on_node, (slot.role, slot.node))

    def counts(self) -> dict[str, int]:
        """How many each role has; those that have none are left out."""
        return {role: sum(map(len, alike.values())) for role, alike in self._of_role.items()}

    def best_for(self, pod: Pod) -> Slot | None:
        """The slot for ``pod``: on the node it names, and of its role, if there is such a one.

        Among equals it is the one made first.
        """
        hint = pod.pinned or pod.nominated
        roles = dict.fromkeys((pod.role, ""))
        places = [self._on_node.get((role, hint), {}) for role in roles] if hint else []
        if not pod.pinned:
            places += [self._of_role.get(role, {}) for role in roles]
        found = (_first(alike, like=pod.shape) for alike in places)
        return next((slot for slot in found if slot is not None), None)

    def first_of(self, role: str) -> Slot | None:
        """The first slot kept for ``role``, else for members of no known role."""
        return _first(self._of_role.get(role, {})) or _first(self._of_role.get("", {}))


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
