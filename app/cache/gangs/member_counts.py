"""How many members and slots of a group are in which state, and what they ask for.

Counts change by the difference of one member or slot, so one costs the same in a gang of ten
thousand as in one of two.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from app.cache.gangs.arrivals import Arrivals
from app.cache.gangs.members import PLACED_KINDS, Member, MemberState, Slot
from app.cache.gangs.tally import bump
from app.model.amounts import Amounts
from app.model.parts import Part
from app.model.topology import NetworkTopology


@dataclass(slots=True, eq=False)
class MemberCounts:
    """The counts of one group; a member must not change between being counted in and out."""

    kinds: Counter[MemberState] = field(default_factory=Counter)
    part_kinds: Counter[tuple[Part, MemberState]] = field(default_factory=Counter)
    arrivals: Arrivals = field(default_factory=Arrivals)
    best_effort_waiting: int = 0
    queue_first: int = 0
    """Waiting members whose gates go as soon as their queue has room."""
    held: dict[Amounts, int] = field(default_factory=dict)
    """How many members or slots hold each request (their group's allocation)."""
    kept: dict[Amounts, int] = field(default_factory=dict)
    """How many slots of them do."""
    gated: dict[Amounts, int] = field(default_factory=dict)
    """How many members behind foreign gates make each request."""
    wanted: dict[Amounts, int] = field(default_factory=dict)
    """How many other waiting members make each request."""
    lingering: dict[Amounts, int] = field(default_factory=dict)
    """How many members that linger (:attr:`Member.lingers`) hold each request."""
    topologies: dict[NetworkTopology, int] = field(default_factory=dict)
    """How many members, whatever their state, ask that of the network."""
    lost_of: dict[str, int] = field(default_factory=dict)
    """Members of each role that are as good as gone: another is awaited in the stead of each."""

    def count(self, member: Member, sign: int) -> None:
        """Have ``member`` count in its present state, or with -1 not any more."""
        kind, request = member.kind, member.pod.shape.requests
        self.kinds[kind] += sign
        topology = member.pod.topology
        if topology is not None:
            bump(self.topologies, topology, sign)
        if member.lost:
            bump(self.lost_of, member.part.role, sign)
        bump(self.part_kinds, (member.part, kind), sign)
        if kind is MemberState.WAITING:
            self.best_effort_waiting += sign * member.task.best_effort
            self.queue_first += sign * member.task.queue_first
            bump(self.wanted, request, sign)
        elif kind is MemberState.GATED:
            bump(self.gated, request, sign)
        elif kind in PLACED_KINDS:
            bump(self.held, request, sign)
            self.arrivals.count(member, sign)
        elif member.lingers:
            bump(self.lingering, request, sign)

    def count_slot(self, slot: Slot, sign: int) -> None:
        """Have a slot count, or with -1 not any more."""
        bump(self.held, slot.request, sign)
        bump(self.kept, slot.request, sign)

    @property
    def lost(self) -> int:
        """Members that are as good as gone, of all roles."""
        return sum(self.lost_of.values())

    @property
    def on_nodes(self) -> int:
        """Members that reached a node or finished there: they count for the barrier."""
        of = self.kinds
        return of[MemberState.BOUND] + of[MemberState.RUNNING] + of[MemberState.SUCCEEDED]

    @property
    def is_leaving(self) -> bool:
        """Whether some member terminates. Pods that stay count where a new process counts them."""
        return bool(self.kinds[MemberState.RELEASING] or self.kinds[MemberState.RELEASING_PLACED])

    def parts(self, kinds: Collection[MemberState]) -> Counter[Part]:
        """How many members of these kinds count for what."""
        found: Counter[Part] = Counter()
        for (part, kind), count in self.part_kinds.items():
            if kind in kinds:
                found[part] += count
        return found
