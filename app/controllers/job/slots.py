"""Where the pods that are about to be made may go at once.

The extender keeps room for members that do not exist yet: *slots*, nodes by role. A pod that is
pinned to one streams through the scheduler; one without a slot gets the gate. A node that refused a
pod is not tried again until there is a newer plan, and a pod that was refused a few times waits at
the gate like any other.

A refused pod is made anew at once the first time, and later and later after that: what is in its
way need not be the node (a volume that nobody has provisioned yet), and then the pod that is there
gets through as soon as it can, and a new one would not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.controllers.job.members import Member
from app.service.workqueue import Backoff

_PATIENCE: Final = 3
_PAUSES: Final = Backoff(base_s=2.0, max_s=300.0)


@dataclass(frozen=True, slots=True)
class Slots:
    """Role to nodes; a node stands as often as pods of the role have room there."""

    generation: int
    nodes: Mapping[str, tuple[str, ...]]


class SlotSource(Protocol):
    """Who knows the slots."""

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """Those of one PodGroup; None when nobody can be asked."""


@dataclass(slots=True)
class Refusal:
    """A pod that could not use its slot."""

    generation: str
    times: int


class Refusals:
    """Pods that were refused, by their name."""

    def __init__(self) -> None:
        self._known: dict[str, Refusal] = {}
        self._since: dict[str, float] = {}

    def add(self, name: str, generation: str) -> None:
        """It was refused a slot of that plan; empty: one that somebody else gave it."""
        before = self._known.get(name)
        self._known[name] = Refusal(generation, (before.times if before else 0) + 1)

    def pauses_s(self, members: Sequence[Member], *, now: float) -> dict[str, float]:
        """How long refused pods stay as they are, by UID; those left out are made anew now."""
        if not self._known:
            return {}
        for member in members:
            if member.bound:
                self._known.pop(member.name, None)
        again = [member for member in members if member.name in self._known and member.refused_node]
        self._since = {member.uid: self._since.get(member.uid, now) for member in again}
        left = {
            m.uid: self._since[m.uid] + _PAUSES.pause(self._known[m.name].times) - now
            for m in again
        }
        return {uid: seconds for uid, seconds in left.items() if seconds > 0}

    def allows(self, name: str, slots: Slots) -> bool:
        """Whether it may be pinned again."""
        known = self._known.get(name)
        if known is None:
            return True
        return known.times < _PATIENCE and known.generation not in {"", str(slots.generation)}


class Dealer:
    """Hands out each slot once."""

    def __init__(self, slots: Slots | None, *, taken: Iterable[tuple[str, str]]) -> None:
        """``taken``: role and node of pods that the extender may not have seen yet."""
        self._slots = slots
        self._free = {role: list(nodes) for role, nodes in (slots.nodes if slots else {}).items()}
        for role, node in taken:
            if node in self._free.get(role, ()):
                self._free[role].remove(node)

    @property
    def generation(self) -> str:
        """The plan that the slots are of."""
        return str(self._slots.generation) if self._slots else ""

    def deal(self, name: str, role: str, refusals: Refusals) -> str:
        """A node for the pod; empty when it has to wait at the gate."""
        free = self._free.get(role)
        if not free or self._slots is None or not refusals.allows(name, self._slots):
            return ""
        return free.pop(0)
