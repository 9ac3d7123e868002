"""The proof that comes before an eviction: places for the whole minimum of the preemptor.

Pods are evicted on the ledger inside a trial, and the minimum is placed there as ``allocate`` would
place it, on room that is free then: under the limits of its queue, the rules of the nodes and those
about other pods, and inside one domain of the network if it asks for that. ``places`` undoes
everything; ``keep`` repeats it for good.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.core.actions.areas import area_of
from app.core.actions.attempt import Attempt, Hint, place_at
from app.core.actions.backlog import Backlog, followers_last
from app.core.actions.cycle import Cycle
from app.core.actions.minimum import MemberAttempt, PackedAttempt
from app.core.actions.packed_units import PackedUnits
from app.core.actions.related_units import RelatedUnits, depend_on_each_other
from app.core.actions.spreading import SpreadAttempt, areas, is_spread
from app.core.actions.sub_groups import UnitAttempt
from app.core.entries import Placed
from app.core.gangs import slots
from app.core.gangs.need import Need
from app.core.gangs.units import units
from app.model.domains import Domain
from app.model.eviction import EvictionAction
from app.model.exchange import Exchange
from app.model.gang import Gang, Task
from app.model.resources import PODS_COLUMN, Vector


class ProvenPlace(NamedTuple):
    """The place of a member or a slot on the node of ``row``, and its class."""

    task: Task
    row: int
    exchange: Exchange


Places = tuple[ProvenPlace, ...]


@dataclass(slots=True, eq=False)
class Proof:
    """Proofs for one gang, whose waiting members stand in their order."""

    cycle: Cycle
    gang: Gang
    action: EvictionAction
    waiting: Sequence[Task]
    ahead: bool = False
    """Whether other gangs have not had their turn: they count as waiting."""
    tasks: tuple[Task, ...] = field(init=False)
    """The members and slots that the minimum takes first."""
    _left: Domain | None = field(init=False, default=None)
    """The nodes that rules leave to the gang before any pod goes: none goes to change them."""

    def __post_init__(self) -> None:
        need, area = self._need(), area_of(self.cycle, self.gang)
        if area is not None:
            self._left = Domain("left by topologyAffinity", np.flatnonzero(area))
        if self.gang.sub_groups:
            self.tasks = tuple(self._of_units(need))
        else:
            self.tasks = tuple(need.needed_first(self._all())[: need.members])

    @property
    def asked(self) -> Vector:
        """What :attr:`tasks` request together, shape ``(R,)``."""
        nothing = np.zeros(len(self.cycle.snapshot.axis), dtype=np.int64)
        return sum((task.request for task in self.tasks), nothing)

    def places(
        self,
        victims: Sequence[int],
        *,
        hint: Hint | None = None,
        domain: Domain | None = None,
    ) -> Places | None:
        """Places for the minimum once the pods at these positions are gone; None: there are none.

        ``hint`` has rows of nodes to try first. All are inside ``domain``; None: anywhere.
        """
        with self.cycle.ledger.trial():
            return self._carry_out(victims, hint, domain)

    def keep(self, victims: Sequence[int], places: Places) -> None:
        """Evict these pods on the ledger, and give these places, for good."""
        ledger = self.cycle.ledger
        for at in victims:
            ledger.evict(at)
        for place in places:
            ledger.pipeline(self.gang, place.task, node=place.row)
        for row in dict.fromkeys(place.row for place in places):
            ledger.keep_for_pipelined(row)

    def _carry_out(
        self, victims: Sequence[int], hint: Hint | None, domain: Domain | None
    ) -> Places | None:
        cycle, ledger = self.cycle, self.cycle.ledger
        before = ledger.queue(self.gang.queue).tree_allocated
        for at in victims:
            ledger.evict(at)
        inside = not self.action.reclaims
        with cycle.ahead(), cycle.beyond_shares(allowed=inside and cycle.opened.borrows):
            if self._would_not_be_admitted():
                return None
            with ExitStack() as inside_of:
                for each in (domain, self._left):
                    if each is not None:
                        inside_of.enter_context(cycle.inside(each))
                placed = self._place_at(hint) if hint is not None else None
                placed = placed or self._place()
            if placed is not None and cycle.opened.pipelined(self.gang) is not None:
                return None
        if placed is None or self._takes_too_much(before):
            return None
        return tuple(
            ProvenPlace(
                entry.task, entry.node, cycle.place_class(self.gang, entry.task, entry.node)
            )
            for entry in placed
        )

    def _would_not_be_admitted(self) -> bool:
        """Whether a group that waits for admission would not be admitted with its places.

        All that its ``minResources`` ask for must be free then. What the whole cluster has free is
        asked of the nodes, as the pods are evicted for that.
        """
        cycle, gang = self.cycle, self.gang
        if cycle.in_play(gang):
            return False
        if cycle.opened.admissible_given_room(gang) is not None:
            return True
        asked = self.asked
        if gang.min_request is not None:
            asked = np.maximum(asked, gang.min_request)
        return bool((asked > cycle.free()).any())

    def _place(self) -> Sequence[Placed] | None:
        """Places as ``allocate`` would give them."""
        cycle, gang = self.cycle, self.gang
        tasks = followers_last(cycle.snapshot, self.tasks)
        kinds: Sequence[type[Attempt]] = (UnitAttempt, RelatedUnits, PackedUnits)
        if not gang.sub_groups:
            kinds = (MemberAttempt, PackedAttempt, SpreadAttempt)
        for area in areas(cycle, gang, tasks) if is_spread(gang) else (None,):
            for kind in kinds:
                attempt = kind(cycle, Backlog(gang, deque(tasks)), tasks, self._need())
                inside = cycle.inside(area) if area is not None else nullcontext()
                with inside, cycle.ledger.trial() as trial:
                    for _ in attempt.run():
                        pass
                    if attempt.succeeded:
                        trial.keep()
                        return cycle.ledger.placed_since(trial.start)
        return None

    def _place_at(self, hint: Hint) -> Sequence[Placed] | None:
        parts = any(policy.topology is not None for policy in self.gang.sub_groups)
        if parts or depend_on_each_other(self.gang):
            return None  # sub-groups have domains, of which the hint knows nothing
        return place_at(self.cycle, self.gang, self.tasks, need=self._need(), hint=hint)

    def _takes_too_much(self, before: Vector) -> bool:
        """Whether the exchange makes a queue grow beyond its share while others wait for room.

        For an action that reclaims, ``preemptive`` checked this already.
        """
        cycle, queue = self.cycle, self.gang.queue
        shares = cycle.opened.queue_shares
        if shares is None or self.action.reclaims:
            return False
        after, deserved = cycle.ledger.queue(queue).tree_allocated, shares(queue).deserved
        grown = (after > before) & (after > deserved) & (deserved > 0)
        grown[PODS_COLUMN] = False
        if not grown.any():
            return False
        waits = cycle.lacks_places if self.ahead else cycle.is_refused
        return any(gang.queue != queue and waits(gang) for gang in cycle.pending)

    def _need(self) -> Need:
        return Need.of(self.gang, self.cycle.ledger.gang(self.gang))

    def _of_units(self, need: Need) -> Iterator[Task]:
        """The members of the first units, as the minimum of a gang with sub-groups takes them."""
        account = self.cycle.ledger.gang(self.gang)
        for unit in units(self.gang, account, self._all()):
            policy = unit.sub_group.policy if unit.sub_group is not None else ""
            if need.met or not (policy in need.policies or need.takes(unit.tasks[0].role)):
                continue
            for task in need.needed_first(list(unit.tasks))[: unit.lacks]:
                need.place(task.role)
                yield task
            if unit.sub_group is not None:
                need.make_whole(unit.sub_group)

    def _all(self) -> list[Task]:
        cycle = self.cycle
        return [
            *self.waiting,
            *slots.slots_of(self.gang, cycle.snapshot, made=cycle.slot_shapes),
        ]
