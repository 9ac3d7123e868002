"""What the actions of one cycle work on, and what they have decided so far.

Actions are generators over a :class:`Cycle`; they yield after every bounded piece of work, so that
their caller may do something else in between. Decisions go three ways: a gang is *admitted*,
members are *placed* (on the ledger at once, in the plan when decided), or a gang is *refused*.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.core.actions.futility import Futility
from app.core.actions.outlook import Judge
from app.core.actions.ports import FutureFinder, NodeFinder
from app.core.actions.turns import Line
from app.core.earmarks import KeptInQueue
from app.core.entries import Moment, Placed
from app.core.holders import Holders
from app.core.ledger import Ledger
from app.core.points import Opened
from app.model.amounts import Amounts
from app.model.domains import Domain
from app.model.eviction import EvictionPlan
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, PodUid, QueueName
from app.model.plan import Collected, GangPlacement, Loan, Placement, Plan
from app.model.reason import Cause, NoVictims, Refusal
from app.model.resources import Matrix, Rows, Vector
from app.model.shape import PodShape
from app.model.snapshot import Snapshot

Steps = Generator[None, None, None]


@dataclass(slots=True, eq=False)
class Cycle:
    """One cycle over ``pending`` (a full one: all that the snapshot has; on demand: one gang).

    ``actions`` are the configured ones. ``line`` tells which queues move together
    (:mod:`app.core.actions.lineage`). ``holders`` is None on demand: looking for holders of what is
    missing walks all groups. ``pipelines``: places are on room that is about to be free. ``begun``
    tells why preemptors wait whose victims have not gone, and ``open_ahead`` makes the finder that
    counts room which is about to be free as free.
    """

    snapshot: Snapshot
    pending: Sequence[Gang]
    actions: Sequence[str]
    now: float
    ledger: Ledger
    opened: Opened
    finder: NodeFinder
    line: Callable[[QueueName], Line]
    holders: Holders | None
    open_ahead: Callable[[], FutureFinder]
    begun: Mapping[GroupKey, Refusal]
    pipelines: bool = False
    futile: Futility = field(init=False)
    loans: Mapping[GroupKey, Loan] = field(default_factory=dict)
    evictions: list[EvictionPlan] = field(default_factory=list)
    slot_shapes: dict[Amounts, PodShape] = field(default_factory=dict)
    """Shapes made up for slots, one object per request."""
    _admitted: dict[GroupKey, None] = field(default_factory=dict)
    _placed: list[GangPlacement] = field(default_factory=list)
    _refused: dict[GroupKey, Refusal] = field(default_factory=dict)
    _shown: list[PodUid] = field(default_factory=list)
    _aside: set[GroupKey] = field(default_factory=set)
    unplaced_claims: set[GroupKey] = field(default_factory=set)
    _served: dict[GroupKey, set[str]] = field(default_factory=dict)
    _free: tuple[Moment, Vector] | None = None
    _terminating: Vector | None = None
    judge: Judge = field(init=False)
    _beyond_shares: bool = False
    _stopped: dict[QueueName, Gang] = field(default_factory=dict)
    _collected: list[Collected] = field(default_factory=list)
    _earmarked: list[KeptInQueue] = field(default_factory=list)
    _ahead: FutureFinder | None = None
    within: Rows | None = None
    """The rows that places are given on, ascending; None: all."""
    _class: Exchange = ANY_EQUAL
    _class_of: dict[Task, Exchange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.judge = Judge(self.snapshot)
        self.futile = Futility(self.ledger)

    @property
    def is_full(self) -> bool:
        """Whether all gangs that wait are planned; on demand what others wait for is not known."""
        return self.pending is self.snapshot.pending

    @contextmanager
    def beyond_shares(self, *, allowed: bool = True) -> Iterator[None]:
        """Inside, only what a queue may really hold limits it, if that is ``allowed``.

        What failed for a share may succeed then, so no failure is recalled across the border.
        """
        if not allowed:
            yield
            return
        before = self.futile
        self._beyond_shares, self.futile = True, Futility(self.ledger)
        try:
            yield
        finally:
            self._beyond_shares, self.futile = False, before

    @property
    def room_ahead(self) -> FutureFinder:
        """Finds nodes where room that is about to be free counts as free."""
        if self._ahead is None:
            self._ahead = self.open_ahead()
        return self._ahead

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Inside, what is about to be free counts as free, of nodes and queues; it is pipelined."""
        before = self.finder, self.futile, self.pipelines, self.ledger.ahead
        self.finder, self.futile, self.pipelines = self.room_ahead, Futility(self.ledger), True
        self.ledger.ahead = True
        try:
            yield
        finally:
            self.finder, self.futile, self.pipelines, self.ledger.ahead = before

    @property
    def room(self) -> Matrix:
        """The room that places may be given on, shape ``(N, R)``; it moves."""
        return self.ledger.future_idle if self.pipelines else self.ledger.idle

    @contextmanager
    def inside(self, domain: Domain) -> Iterator[None]:
        """Inside, places are given in ``domain`` only, and are not taken out of it."""
        before = self.within, self._class, self.futile
        self.within = domain.rows_within(self.within)
        self._class, self.futile = before[1].within(domain.called), Futility(self.ledger)
        try:
            yield
        finally:
            self.within, self._class, self.futile = before

    # --- which gangs take part -------------------------------------------------------------------

    def in_play(self, gang: Gang) -> bool:
        """Whether ``gang`` may be placed: admitted earlier, or by this cycle."""
        return gang.inqueue or gang.key in self._admitted

    def sits_out(self, gang: Gang) -> bool:
        """Whether ``gang`` takes no part at all; says so when that is news.

        Its queue is missing, or it waits for its victims to go, or its last reservation was not
        used and others go first for a while. Not so a gang that is bound in part: its rest goes
        first whatever happened.
        """
        if gang.queue not in self.snapshot.queues:
            detail = f"queue {gang.queue} not found"
            self.refuse(gang, Refusal(Cause.QUEUE_MISSING, where=gang.queue, detail=detail))
            return True
        waits = self.begun.get(gang.key)
        if waits is not None:
            self.refuse(gang, waits)
            return True
        if self.cools_down(gang):
            self.refuse(gang, Refusal(Cause.COOLING_DOWN, where=gang.key))
            return True
        return False

    def cools_down(self, gang: Gang) -> bool:
        """Whether others go before ``gang`` for a while."""
        return gang.cool_down_until > self.now and not gang.partial

    # --- decisions -------------------------------------------------------------------------------

    def admit(self, gang: Gang) -> None:
        """Let ``gang`` in: its claim counts from now on."""
        self.ledger.admit(gang)
        self.opened.enqueued(gang)
        self._admitted[gang.key] = None

    def stop_queue(self, gang: Gang) -> None:
        """Let no gang behind ``gang`` have a place in its queue, which keeps strict order."""
        self._stopped.setdefault(gang.queue, gang)

    def stopped(self, queue: QueueName) -> Refusal | None:
        """The refusal of gangs that stand behind another one in a queue of strict order."""
        first = self._stopped.get(queue)
        return None if first is None else behind_another(first)

    def earmark(self, gang: Gang, asked: Vector, until: float) -> None:
        """Let the queue of ``gang`` count as holding what that gang collects for until then."""
        self.ledger.charge(gang.queue, asked)
        self._earmarked.append(KeptInQueue(gang, asked, until))

    def kept_in(self, queue: QueueName) -> Iterator[KeptInQueue]:
        """What ``queue``, and queues below it, count as holding for gangs that collect."""
        return (each for each in self._earmarked if queue in self.ledger.path(each.gang.queue))

    def give_up_earmarks(self) -> None:
        """All actions have run: let queues count as holding what they hold."""
        for gang, asked, _ in self._earmarked:
            self.ledger.charge(gang.queue, -asked)
        self._earmarked.clear()

    @contextmanager
    def as_held(self) -> Iterator[None]:
        """Inside, queues count as holding what they hold, whatever their gangs collect for."""
        earmarked = list(self._earmarked)
        self.give_up_earmarks()
        try:
            yield
        finally:
            for each in earmarked:
                if each.gang.key not in self.begun:
                    self.earmark(*each)

    @contextmanager
    def kept_room_of(self, gang: Gang) -> Iterator[None]:
        """Inside, room that is kept for ``gang`` is free; for good if it gets pipelined places."""
        start = len(self.ledger.journal)
        index, mine = self.snapshot.table.index, [c for c in self._collected if c.gang == gang.key]
        kept = [(index[node], amount) for each in mine for node, amount in each.nodes]
        for row, amount in kept:
            self.block(-amount, node=row)
        try:
            yield
        finally:
            if gang.key in self.begun:
                self._collected = [each for each in self._collected if each.gang != gang.key]
            elif not self.ledger.placed_since(start):
                for row, amount in kept:
                    self.block(amount, node=row)

    def collect(self, kept: Collected, gang: Gang, refusal: Refusal) -> None:
        """Room is kept for ``gang``, which waits for more of it."""
        self._collected.append(kept)
        self._refused[gang.key] = refusal

    @property
    def is_collecting(self) -> bool:
        """Whether room is kept for any gang."""
        return bool(self._collected)

    def try_place(self, gang: Gang, task: Task) -> Refusal | None:
        """Give ``task`` the best node on the ledger, or say why that cannot be."""
        refusal = self._limit(gang, task)
        if refusal is not None:
            return refusal
        row = self.finder.find(gang, task, within=self.within)
        if row is None:
            return self.finder.explain(gang, task)
        self.place(gang, task, row)
        return None

    def may_place(self, gang: Gang, task: Task, row: int) -> bool:
        """Whether ``task`` may have the node of ``row``, by limits and rules."""
        inside = self.within is None or row in self.within
        return inside and self._limit(gang, task) is None and self.finder.fits(gang, task, row)

    def _limit(self, gang: Gang, task: Task) -> Refusal | None:
        limits = self.opened.borrowable if self._beyond_shares else self.opened.allocatable
        return limits(gang.queue, task)

    def place(self, gang: Gang, task: Task, row: int) -> None:
        """Give ``task`` room on the node of ``row``: idle room, or what is about to be free."""
        self._class_of[task] = self._class
        if self.pipelines:
            self.ledger.pipeline(gang, task, node=row)
        else:
            self.ledger.place(gang, task, node=row)

    def place_class(self, gang: Gang, task: Task, row: int) -> Exchange:
        """The class of the place that ``task`` has on the node of ``row``."""
        found = task.exchange.narrowed(self._class_of.get(task, ANY_EQUAL))
        for class_of in self.opened.place_classes:
            found = found.narrowed(class_of(gang, task, row))
        return found

    def plugin_keys(self, gang: Gang, tasks: Sequence[Task]) -> tuple[Hashable, ...]:
        """What the answers of plugins about nodes for ``tasks`` depend on; empty: none has any."""
        asked = [rule.key for rule in self.opened.node_rules]
        asked += [score.key for score in self.opened.node_scores]
        if not asked:
            return ()
        alike = {id(task.shape): task for task in tasks}
        return tuple(key(gang, task) for task in alike.values() for key in asked)

    def decide(
        self,
        gang: Gang,
        entries: Iterable[Placed],
        *,
        whole: bool,
        exchange: Exchange = ANY_EQUAL,
    ) -> None:
        """Put placements that stand on the ledger into the plan, of that class at most."""
        nodes = self.snapshot.table.nodes
        placements = tuple(
            Placement(e.task, nodes[e.node].name, self.place_class(*e[:3]).narrowed(exchange))
            for e in entries
        )
        served = self._served.setdefault(gang.key, set())
        served.update(p.task.uid for p in placements if not p.task.is_slot)
        self._placed.append(GangPlacement(gang.key, placements, whole))

    def evict(self, plan: EvictionPlan, gang: Gang | None, waits: Refusal | None) -> None:
        """Put evictions that stand on the ledger into the plan; why the preemptor waits then."""
        self.evictions.append(plan)
        if gang is not None and waits is not None:
            self.begun = {**self.begun, gang.key: waits}
            self._refused[gang.key] = waits

    def note_no_victims(self, gang: Gang, found: tuple[NoVictims, ...]) -> None:
        """Say in the reason of ``gang`` why no eviction helps."""
        refusal = self._refused[gang.key]
        self._refused[gang.key] = replace(refusal, no_victims=refusal.no_victims + found)

    def block(self, request: Vector, *, node: int) -> None:
        """Keep that room of the node of row ``node`` from all tasks of this cycle."""
        self.ledger.block(request, node=node)

    def refuse(self, gang: Gang, refusal: Refusal) -> None:
        """Say why ``gang``, or part of it, has no place; the first reason of a cycle stands.

        What the gang itself holds or may claim is not in its own way.
        """
        others = tuple(holder for holder in refusal.holders if holder.who != gang.called)
        if len(others) < len(refusal.holders):
            refusal = replace(refusal, holders=others)
        if gang.key not in self._refused:
            self._refused[gang.key] = self.judge.judged(gang, refusal)

    def set_aside(self, gang: Gang, refusal: Refusal) -> None:
        """Take ``gang`` out of planning: no end of other pods helps, as ``refusal`` says."""
        self._refused[gang.key] = refusal
        self._aside.add(gang.key)

    def show(self, members: Iterable[PodUid]) -> None:
        """Let these members be seen, which only lack nodes."""
        self._shown.extend(members)

    def forget_refusal(self, gang: Gang) -> None:
        """A later action looks at ``gang`` anew."""
        self._refused.pop(gang.key, None)

    # --- how it stands ---------------------------------------------------------------------------

    def refusal_of(self, gang: Gang) -> Refusal | None:
        """The no it got, if it got one."""
        return self._refused.get(gang.key)

    def is_refused(self, gang: Gang) -> bool:
        """Whether the gang got a no already."""
        return gang.key in self._refused

    def is_served(self, gang: Gang, task: Task) -> bool:
        """Whether ``task`` has a place in the plan."""
        return task.uid in self._served.get(gang.key, ())

    def unserved(self, gang: Gang) -> Sequence[Task]:
        """The gang's members without a place in the plan: an action may be configured twice."""
        served = self._served.get(gang.key)
        return [t for t in gang.waiting if t.uid not in served] if served else gang.waiting

    def lacks_places(self, gang: Gang) -> bool:
        """Whether some member of ``gang`` is without a place still."""
        return len(self._served.get(gang.key, ())) < len(gang.waiting)

    def free(self) -> Vector:
        """All room of the cluster that places may be given on, shape ``(R,)``."""
        if self._free is None or not self.ledger.is_as_at(self._free[0]):
            self._free = (self.ledger.moment(), self.room.clip(min=0).sum(axis=0))
        return self._free[1]

    def terminating(self) -> Vector:
        """What terminating pods have on nodes that are not away, shape ``(R,)``."""
        if self._terminating is None:
            self._terminating = self.snapshot.terminating()
        return self._terminating

    def plan(self) -> Plan:
        """The decisions as a value."""
        return Plan(
            generation=self.snapshot.generation,
            admitted=tuple(self._admitted),
            placed=tuple(self._placed),
            refused=self._refused,
            shown=frozenset(self._shown),
            set_aside=frozenset(self._aside),
            unplaced_claims=frozenset(self.unplaced_claims),
            collected=tuple(self._collected),
            loans=self.loans,
            evictions=tuple(self.evictions),
        )


def behind_another(first: Gang) -> Refusal:
    """The refusal of gangs that stand behind ``first`` in a queue of strict order."""
    text = f"queue {first.queue} keeps the order of its groups: {first.called} is before it"
    return Refusal(Cause.QUEUE_ORDER, where=first.queue, detail=text)
