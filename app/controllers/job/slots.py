"""Where the pods that are about to be made may go at once.

The extender keeps room for members that do not exist yet: *slots*, nodes by role. A pod that is
pinned to one streams through the scheduler; one without a slot gets the gate.

A pod that its node refused is made anew, waits at the gate and is not pinned again: where others
take room that was kept for it, it would lose one place after the other. Where it is pinned all the
same (by its user, say), it is made anew at once the first time, and later and later after that:
what is in its way need not be the node (a volume that is not provisioned yet), and then the pod
that is there gets through as soon as it can, and a new one would not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.controllers.job.members import Member
from app.kit.workqueue import Backoff

_PAUSES: Final = Backoff(base_s=2.0, max_s=300.0)


@dataclass(frozen=True, slots=True)
class Slots:
    """Role to nodes; a node stands as often as pods of the role have room there.

    ``bearable``: role to how many more pods its queue can hold now, where pods that wait take
    their part of a ResourceQuota; None where they do not.
    """

    generation: int
    nodes: Mapping[str, tuple[str, ...]]
    bearable: Mapping[str, int] | None = None


class SlotSource(Protocol):
    """The source of slots: the extender."""

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """The slots of one PodGroup; None when no extender answers."""


class Refusals:
    """Pods that were refused, by their name."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._since: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._times

    def add(self, name: str) -> None:
        """Note a pod that was refused by the one node that it could go to."""
        self._times[name] = self._times.get(name, 0) + 1

    def pauses_s(self, members: Sequence[Member], *, now: float) -> dict[str, float]:
        """How long refused pods stay as they are, by UID; those left out are made anew now."""
        if not self._times:
            return {}
        for member in members:
            if member.bound:
                self._times.pop(member.name, None)
        again = [member for member in members if member.name in self._times and member.refused_node]
        self._since = {member.uid: self._since.get(member.uid, now) for member in again}
        left = {m.uid: self._since[m.uid] + _PAUSES.pause(self._times[m.name]) - now for m in again}
        return {uid: seconds for uid, seconds in left.items() if seconds > 0}


class Dealer:
    """Hands out each slot once."""

    def __init__(self, slots: Slots | None, *, taken: Iterable[tuple[str, str]]) -> None:
        """``taken``: role and node of pods that the extender may not have seen yet."""
        self.generation = str(slots.generation) if slots else ""
        """The plan that the slots are of."""
        self._free = {role: list(nodes) for role, nodes in (slots.nodes if slots else {}).items()}
        for role, node in taken:
            if node in self._free.get(role, ()):
                self._free[role].remove(node)

    def deal(self, role: str) -> str:
        """A node for a pod of the role; empty when there is none left."""
        free = self._free.get(role)
        return free.pop(0) if free else ""
