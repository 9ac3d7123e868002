"""Gangs stand back for others that evict for the rest of their room in the same cycle.

``allocate`` runs before the actions that evict. It refuses a gang that finds a part of its room
only, and a lower gang would take that part: it would be evicted again at once, or more pods would
go in its stead, or the higher gang would find too few victims and wait. So before a lower gang gets
anything, the planner looks whether an action to come has places for the whole minimum of the higher
one. If so, the lower gang stands back until the actions that evict have had their turn, and is
served then, in the same cycle, with what is left. If not, it is served at once: no room stays idle
for a gang that cannot have it.

Of one queue the gang of lower priority is the lower one. Of two queues it is the gang with which
its queue holds more than it deserves, where the other queue takes back what it deserves. A gang
that is bound in part stands back for no other, nor does one that other pods were evicted for.
"""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np

from app.core.actions.contention import Contest, lacks_room, may_preempt
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.minimum import is_reached
from app.core.faults import LookingAt
from app.core.shares.entitlements import rest_of
from app.core.shares.loans import without_pods
from app.model.eviction import EvictionAction, EvictionPlan
from app.model.gang import Gang
from app.model.ids import ROOT_QUEUE, GroupKey, QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import Vector

_OF_NODES = frozenset({Cause.NOT_ENOUGH_RESOURCES, Cause.NO_NODE_FITS})
_OF_QUEUE = frozenset({Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM, Cause.QUEUE_OVERUSED})

_PIECE = 256
"""Groups looked at between two yields."""

Asks = Generator[None, None, Gang | None]


@dataclass(slots=True, eq=False)
class LowerGangs:
    """Which gangs of a cycle stand back, and for which.

    ``behind`` are the gangs that stand back now; ``higher`` has the one that each stood back for.
    ``actions`` evict after the present pass of allocate. Without any no gang stands back.
    """

    cycle: Cycle
    behind: dict[GroupKey, Gang] = field(default_factory=dict)
    higher: dict[GroupKey, Gang] = field(default_factory=dict)
    actions: Sequence[EvictionAction] = ()
    late: dict[GroupKey, Gang] | None = None
    """Gangs that come after the entitled ones of other queues; None: the latter had their turn."""
    _contests: list[Contest] = field(default_factory=list)
    _reclaiming: list[Contest] = field(default_factory=list)
    _due: dict[QueueName, tuple[Vector, bool]] = field(default_factory=dict)
    """What queues deserve, and whether that is for the queues below them too."""
    _noted: set[GroupKey] = field(default_factory=set)
    _untested: dict[QueueName, list[tuple[int, GroupKey, Gang]]] = field(default_factory=dict)
    """Gangs of each queue that were not looked at, a heap: the highest priority first."""
    _first: dict[QueueName, Gang] = field(default_factory=dict)
    """Of each queue the gang of the highest priority for which pods will go."""
    _takers: dict[QueueName, deque[Gang]] = field(default_factory=dict)
    """Gangs of each queue that were not looked at whether it takes back what it deserves."""
    _taking: dict[QueueName, Gang] = field(default_factory=dict)
    """Of each queue a gang for which it does."""
    _stopped: dict[QueueName, Gang] = field(default_factory=dict)
    """Of each queue of strict order the gang that its gangs stand back for."""
    _latest: dict[QueueName, int] = field(default_factory=dict)
    """Of each queue the highest priority of those in ``late``."""

    def begin(self, actions: Sequence[EvictionAction]) -> None:
        """A pass of allocate begins, which ``actions`` follow.

        A gang for which others stood back in an earlier pass has had its turn.
        """
        self.actions = actions
        self._contests = [Contest(self.cycle, action) for action in actions]
        self._reclaiming = [each for each in self._contests if each.action.reclaims]
        self._due = {}
        self._noted = {gang.key for gang in self.higher.values()}
        self._untested, self._first, self._takers, self._taking = {}, {}, {}, {}
        self._stopped, self._latest = {}, {}

    def note(self, gang: Gang) -> None:
        """``gang`` waits for its minimum: others may stand back for it."""
        if not self.actions or not gang.preempts or gang.key in self._noted:
            return
        self._noted.add(gang.key)
        heappush(self._untested.setdefault(gang.queue, []), (-gang.priority, gang.key, gang))
        self._takers.setdefault(gang.queue, deque()).append(gang)

    def holds_back(self, gang: Gang) -> Generator[None, None, bool]:
        """Whether ``gang``, whose turn it is, stands back; it waits in ``behind`` then."""
        if gang.key in self.behind:
            return True
        if not self._may_stand_back(gang):
            return False
        higher = self._stopped.get(gang.queue)
        if higher is None:
            asked = self._asked(gang)
            beyond = bool(self._reclaiming) and self._is_beyond(gang.queue, asked)
            outranked = self._may_be_outranked(gang)
            if (beyond or outranked) and (asked <= self.cycle.free()).all():
                higher = yield from self.outranked_by(gang)
                if higher is None and beyond:
                    higher = yield from self._taker(gang, asked)
            if higher is None:
                return self._comes_late(gang, beyond=beyond)
        if self.cycle.snapshot.queues[gang.queue].in_order:
            self._stopped[gang.queue] = higher
        self.behind[gang.key], self.higher[gang.key] = gang, higher
        self.cycle.forget_refusal(gang)
        self.cycle.refuse(gang, Refusal(Cause.STANDS_BACK, where=f"group {gang.key}"))
        return True

    def _may_stand_back(self, gang: Gang) -> bool:
        if not self.actions or gang.key in self.cycle.snapshot.nominated_room:
            return False
        return not gang.partial or is_reached(self.cycle, gang)

    def _comes_late(self, gang: Gang, *, beyond: bool) -> bool:
        """Whether ``gang`` has to let entitled gangs of other queues have their turn first.

        Those below it in its queue do not go before it.
        """
        if self.late is None or self.cycle.snapshot.queues[gang.queue].in_order:
            return False
        above = self._latest.get(gang.queue)
        if not beyond and (above is None or above <= gang.priority):
            return False
        self.late[gang.key] = gang
        self._latest[gang.queue] = gang.priority if above is None else max(above, gang.priority)
        return True

    def _may_be_outranked(self, gang: Gang) -> bool:
        first, heap = self._first.get(gang.queue), self._untested.get(gang.queue)
        highest = -heap[0][0] if heap else gang.priority
        return max(highest, gang.priority if first is None else first.priority) > gang.priority

    def _asked(self, gang: Gang) -> Vector:
        """What the gang takes next: the rest of its minimum, or one member more."""
        if not is_reached(self.cycle, gang):
            return rest_of(gang, self.cycle.ledger)
        waiting = self.cycle.unserved(gang)
        return waiting[0].request if waiting else np.zeros_like(gang.request)

    def outranked_by(self, gang: Gang) -> Asks:
        """The gang of its queue and of higher priority for which pods will go; None: none."""
        first = self._first.get(gang.queue)
        if first is not None and first.priority > gang.priority:
            if not is_reached(self.cycle, first):
                return first
            del self._first[gang.queue]
        heap = self._untested.get(gang.queue, [])
        while heap and -heap[0][0] > gang.priority:
            other = heappop(heap)[2]
            if (yield from self._gets_places(other, self._contests)):
                self._first[gang.queue] = other
                return other
        return None

    def _taker(self, gang: Gang, asked: Vector) -> Asks:
        """The gang whose queue takes back what that of ``gang`` would hold beyond its share."""
        path = self._ancestors(gang.queue)
        within = {name for name in path if not self._is_beyond(name, asked)}
        for queue, takers in self._takers.items():
            line = self.cycle.ledger.path(queue)
            if gang.queue in line or not within.issubset(line):
                continue
            taking = self._taking.get(queue)
            if taking is not None and not is_reached(self.cycle, taking):
                return taking
            while takers:
                taker = takers.popleft()
                if (yield from self._gets_places(taker, self._reclaiming)):
                    self._taking[queue] = taker
                    return taker
        return None

    def _ancestors(self, queue: QueueName) -> Sequence[QueueName]:
        """The queues above it that share what they deserve with it."""
        shares = self.cycle.opened.queue_shares
        is_tree = shares is not None and shares(queue).with_children
        return self.cycle.ledger.path(queue)[1:] if is_tree else ()

    def _is_beyond(self, name: QueueName, asked: Vector) -> bool:
        """Whether the queue would hold more than it deserves, or has no claim to what is asked."""
        shares = self.cycle.opened.queue_shares
        if shares is None or name == ROOT_QUEUE:
            return False
        known = self._due.get(name)
        if known is None:
            share = shares(name)
            known = self._due[name] = without_pods(share.deserved), share.with_children
        due, account = known[0], self.cycle.ledger.queue(name)
        held = account.tree_allocated if known[1] else account.allocated
        counts = (due > 0) & (asked > 0)
        return not counts.any() or bool((held + asked > due)[counts].any())

    def _gets_places(self, gang: Gang, contests: Sequence[Contest]) -> Generator[None, None, bool]:
        """Whether ``gang`` gets its whole minimum by one of these actions as the ledger stands."""
        cycle = self.cycle
        if not (may_preempt(cycle, gang) if cycle.is_refused(gang) else lacks_room(cycle, gang)):
            return False
        for contest in contests:
            with LookingAt(gang):
                found = yield from contest.would_serve(gang)
            yield
            if found:
                return True
        return False

    def explain(self) -> Steps:
        """Say of gangs that have no room for which one they stand back, while its victims go."""
        cycle = self.cycle
        plans = [each for each in (*cycle.snapshot.begun, *cycle.evictions) if each.victims]
        kept = [each for each in map(self._kept_by, plans) if each is not None]
        for number, gang in enumerate(cycle.pending if kept else ()):
            refusal = cycle.refusal_of(gang)
            if refusal is not None and refusal.cause in _OF_NODES | _OF_QUEUE:
                of_it = (each for each in kept if self._stands_back_for(gang, refusal, each))
                found = next(of_it, None)
                if found is not None:
                    cycle.forget_refusal(gang)
                    cycle.refuse(gang, found.told(gang, refusal))
            if number % _PIECE == 0:
                yield

    def _kept_by(self, plan: EvictionPlan) -> "_HigherGang | None":
        gang, running = self.cycle.snapshot.gangs.get(plan.preemptor), self.cycle.snapshot.running
        if gang is None:
            return None
        asked = sum((place.task.request for place in plan.places), np.zeros_like(gang.request))
        index = [running.index[each.uid] for each in plan.victims if each.uid in running.index]
        free = np.maximum(asked - running.requests[index].sum(axis=0), 0)
        since_before = plan in self.cycle.snapshot.begun
        return _HigherGang(gang, plan.action, len(plan.victims), asked, free, since_before)

    def _stands_back_for(self, gang: Gang, refusal: Refusal, kept: "_HigherGang") -> bool:
        """Whether ``gang`` is the lower one, and would have had the room that is ``kept``.

        One that did not stand back was refused before the room of this cycle's evictions was kept.
        """
        mine, higher = gang.queue == kept.gang.queue, kept.gang
        if not (higher.priority > gang.priority if mine else kept.action.reclaims):
            return False
        if not kept.since_before and gang.key not in self.higher:
            return False
        of_limit = mine and refusal.cause in _OF_QUEUE
        left = kept.asked if of_limit and kept.action.reclaims else kept.free
        index = self.cycle.snapshot.axis.index
        lacks = [lack for lack in refusal.shortfalls if lack.resource in index]
        if not all(lack.asked <= lack.free + left[index[lack.resource]] for lack in lacks):
            return False
        return bool(lacks) and (mine or self._is_beyond(gang.queue, self._asked(gang)))


@dataclass(frozen=True, slots=True, eq=False)
class _HigherGang:
    """What is kept for ``gang``, for which ``pods`` go: ``free`` of the ``asked`` is free by now.

    Vectors of shape ``(R,)``. ``since_before``: earlier cycles kept it.
    """

    gang: Gang
    action: EvictionAction
    pods: int
    asked: Vector
    free: Vector
    since_before: bool

    def told(self, gang: Gang, refusal: Refusal) -> Refusal:
        """``refusal`` of ``gang``, which stands back for this one."""
        pods = "1 pod" if self.pods == 1 else f"{self.pods} pods"
        called = self.gang.called
        note = f"it stands back for {called}, which evicts {pods} for the rest of its room"
        where = f"queue {refusal.where}" if refusal.cause in _OF_QUEUE else f"group {gang.key}"
        return replace(refusal, cause=Cause.STANDS_BACK, where=where, no_victims=(), note=note)
