"""Room for a gang at the cost of others: what preempt, reclaim and their gang forms have in common.

A gang that was refused for room only, and lacks its minimum, may be the preemptor. Pods that the
plugins let go are its candidates, in units that go together. The solver looks for the units that
cost least and leave places for the whole minimum, which the planner proves on the ledger
(:mod:`app.core.actions.proof`); for a gang that needs one domain of the network, inside that
(:mod:`app.core.actions.victims_in_domain`). Only then the plan has an eviction, with its
certificate; the places are pipelined, and are kept from all others from then on.

What no eviction can give is told in the reason of the gang: how many candidates there were, which
rule spares how many, and what is lacking even without the others.
"""

from collections.abc import Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from app.core.accounts import GangAccount
from app.core.actions import futility
from app.core.actions.backlog import Backlog
from app.core.actions.begun import waits_for
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.minimum import is_reached
from app.core.actions.proof import Places, Proof
from app.core.actions.turns import Turns
from app.core.actions.victim_search import Work
from app.core.actions.victims_in_domain import Found, Hunt, without_victims
from app.core.entries import Moment
from app.core.evicting import Evicting
from app.core.faults import LookingAt
from app.core.gangs import slots
from app.core.gangs.need import Need
from app.core.settling import Settling
from app.core.victim_rules import Preemptor
from app.core.victims.candidates import beyond_minimum, candidates
from app.core.victims.units import pods_of
from app.kit.quantities import amount_text
from app.model.eviction import EvictionAction, EvictionPlan, PipelinedPlace, VictimPod
from app.model.gang import Gang, Task
from app.model.reason import NODES_MAY_HELP, Cause, NoVictims, Shortfall

_ROOM = NODES_MAY_HELP - {Cause.VETOED, Cause.STANDS_BACK}
"""Causes that the end of other pods may take away."""

_PIECE = 32
"""Groups looked at between two yields."""


def contend(cycle: Cycle, action: EvictionAction, gangs: Collection[Gang] | None = None) -> Steps:
    """Evict for gangs that lack their minimum, queue by queue and gang by gang.

    Before all others come gangs that lost members of it. None: all that wait take part.
    """
    turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    torn: list[tuple[Any, Gang]] = []
    contest = Contest(cycle, action)
    for number, gang in enumerate(cycle.pending if gangs is None else gangs):
        with LookingAt(gang):
            if may_preempt(cycle, gang):
                if gang.partial and gang.as_it_was is gang:
                    torn.append((cycle.opened.gang_key(gang), gang))
                else:
                    turns.add(Backlog(gang))
        if number % _PIECE == 0:
            yield
    turns.start()
    with cycle.as_held():
        for _, gang in sorted(torn, key=itemgetter(0)):
            yield from contest.take_up(Backlog(gang))
        while (queue := turns.queue()) is not None:
            yield from contest.take_up(turns.take(queue))
            turns.done(queue)


def may_preempt(cycle: Cycle, gang: Gang) -> bool:
    """Whether ``gang`` was refused for room only, and pods may be evicted for it."""
    refusal = cycle.refusal_of(gang)
    if refusal is None or refusal.cause not in _ROOM or refusal.never is not None:
        return False
    if refusal.domain is not None and refusal.domain.nearest is None:
        return False  # no domain is allowed, whatever runs there
    return lacks_room(cycle, gang)


def lacks_room(cycle: Cycle, gang: Gang) -> bool:
    """Whether pods may be evicted for ``gang``: it lacks a minimum whose members are known."""
    if not gang.preempts or gang.key in cycle.begun or gang.key in cycle.snapshot.paused:
        return False
    if is_reached(cycle, gang) or _lost_its_minimum_to_evictions(cycle, gang):
        return False
    return not slots.has_guessed_slots(gang) and cycle.opened.starving(gang)


def _lost_its_minimum_to_evictions(cycle: Cycle, gang: Gang) -> bool:
    """Whether ``gang`` had its minimum before members of it were evicted in this cycle."""
    lost = cycle.ledger.gang(gang).losses is not None
    return lost and Need.of(gang, GangAccount.of(gang)).met


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What an action has for a gang: victims, or places that need none, or ``none`` of both.

    ``none`` says why.
    """

    found: Found | None = None
    places: Places | None = None
    none: tuple[NoVictims, ...] = ()


@dataclass(eq=False)
class Contest:
    """One action of one cycle; ``failed`` remembers what equal gangs did not get."""

    cycle: Cycle
    action: EvictionAction
    failed: dict[Hashable, tuple[Moment, tuple[NoVictims, ...]]] = field(default_factory=dict)

    @cached_property
    def work(self) -> Work:
        """What running pods lose; few cycles ever ask."""
        return Work.of(self.cycle)

    @cached_property
    def settling(self) -> Settling:
        """Which pods got their places lately."""
        return Settling(self.cycle.ledger, now=self.cycle.now)

    def take_up(self, backlog: Backlog) -> Steps:
        """Sort the members of one gang, and evict for it."""
        cycle, gang = self.cycle, backlog.gang
        with LookingAt(gang):
            yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key(gang))
            with cycle.kept_room_of(gang):
                self._evict_for(backlog)
        yield

    def would_serve(self, gang: Gang) -> Generator[None, None, bool]:
        """Whether the gang would get places if the action had its turn now; no pod is evicted."""
        cycle, backlog = self.cycle, Backlog(gang)
        yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key(gang))
        with cycle.as_held(), cycle.kept_room_of(gang):
            outcome = self._outcome(Proof(cycle, gang, self.action, backlog.tasks, ahead=True))
        return outcome.found is not None or outcome.places is not None

    def _evict_for(self, backlog: Backlog) -> None:
        """Evict for one gang, or say in its reason why no eviction helps."""
        cycle, gang = self.cycle, backlog.gang
        proof = Proof(cycle, gang, self.action, backlog.tasks)
        outcome = self._outcome(proof)
        if outcome.found is not None:
            self._evict(outcome.found)
        elif outcome.none:
            cycle.note_no_victims(gang, outcome.none)
        elif outcome.places is not None and not self._outranked_by_ended(gang):
            self._keep(proof, (), outcome.places, {})

    def _outcome(self, proof: Proof) -> Outcome:
        """What there is for the gang of ``proof`` as the ledger stands."""
        ledger = self.cycle.ledger
        if not proof.tasks:
            return Outcome()
        demand = self._demand(proof.gang, proof.tasks)
        known = self.failed.get(demand) if demand is not None else None
        if known is not None and ledger.is_as_at(known[0]):
            return Outcome(none=known[1])
        outcome = self._search(proof)
        if outcome.none and demand is not None:
            self.failed[demand] = ledger.moment(), outcome.none
        return outcome

    def _demand(self, gang: Gang, tasks: Sequence[Task]) -> Hashable | None:
        """What the outcome depends on beside the ledger; None: on the gang itself."""
        if gang.counts.tasks > len(gang.waiting) or gang.sub_groups:
            return None
        ledger = self.cycle.ledger
        need = Need.of(gang, ledger.gang(gang))
        demand = futility.demand_of(ledger, gang.queue, tasks, need=need)
        if demand is None:
            return None
        cycle = self.cycle
        keys = cycle.plugin_keys(gang, tasks)
        waited_enough = cycle.now >= gang.created + cycle.opened.patience(gang)
        votes = waited_enough, cycle.in_play(gang) or _admission(gang)
        settled = self.settling.number(gang), self.settling.refused_before(gang)
        return demand.what, demand.members, gang.priority, votes, keys, gang.topology, settled

    def _search(self, proof: Proof) -> Outcome:
        """Look for places that need no victims, or else for victims.

        Pods of other gangs are looked at first, then members of the gang itself.
        """
        cycle, action = self.cycle, self.action
        if cycle.opened.queue_shares is not None:
            # Asked once here so that the shares are cached before any trial evicts.
            cycle.opened.queue_shares(proof.gang.queue)
        preemptor = Preemptor(action, proof.gang, proof.tasks, proof.asked)
        refused = self._may_not_reclaim(preemptor) if action.reclaims else ""
        if refused:
            return Outcome(none=(NoVictims(action.value, 0, (), refused),))
        places = without_victims(proof)
        if places is not None:
            return Outcome(places=places)
        none: list[NoVictims] = []
        for inside in (False, True) if self._may_preempt_inside(proof) else (False,):
            found = candidates(cycle.ledger, preemptor, inside=inside)
            if not cycle.opened.gang_eviction(action).whole:
                found = beyond_minimum(found, cycle.ledger, preemptor)
            judgement = self._rules().judge(preemptor, found.rows)
            lacking = Hunt(proof, preemptor, judgement, self.work).run()
            if isinstance(lacking, Found):
                return Outcome(found=lacking)
            if not inside or found.count:
                spared = (*found.spared, *judgement.spared)
                none.append(NoVictims(action.value, found.count, spared, lacking))
        return Outcome(none=tuple(none))

    def _outranked_by_ended(self, gang: Gang) -> bool:
        """Whether a gang of its queue and of higher priority has just lost its minimum.

        That gang takes the room that is left first, or would evict `gang` from there.
        """
        cycle = self.cycle
        victims = (victim for plan in cycle.evictions for victim in plan.victims)
        keys = {victim.gang for victim in victims if victim.queue == gang.queue}
        others = (cycle.snapshot.gangs.get(key) for key in keys)
        return any(
            other is not None and other.priority > gang.priority and not is_reached(cycle, other)
            for other in others
        )

    def _may_preempt_inside(self, proof: Proof) -> bool:
        """Whether members of the gang itself may have to go for others of it."""
        counts = proof.gang.counts
        return not self.action.reclaims and counts.bound + counts.running > 0

    def _may_not_reclaim(self, preemptor: Preemptor) -> str:
        """Why the queue takes nothing from other queues; empty: it may."""
        opened = self.cycle.opened
        if opened.queue_shares is None:
            return "no plugin says what queues deserve"
        with self.cycle.ahead():  # what terminates of the queue is free without any victim
            refusal = opened.preemptive(preemptor)
        if refusal is None:
            return ""
        short = ", ".join(map(_shortfall, refusal.shortfalls))
        return f"queue {refusal.where} would hold more than it deserves: {short}"

    def _rules(self) -> Evicting:
        opened = self.cycle.opened
        if self.action is EvictionAction.PREEMPT:
            return opened.preemptable
        if self.action is EvictionAction.RECLAIM:
            return opened.reclaimable
        return opened.unified_evictable

    def _evict(self, found: Found) -> None:
        proof, judgement = found.search.proof, found.search.judgement
        certificate = found.search.certificate(found.solution, found.places)
        positions = pods_of(found.solution.units)
        pods = tuple((at, self._victim(at, judgement.rule(at))) for at in positions)
        self._keep(proof, pods, found.places, certificate)

    def _keep(
        self,
        proof: Proof,
        victims: Sequence[tuple[int, VictimPod]],
        places: Places,
        certificate: Mapping[str, object],
    ) -> None:
        """Let the gang have its places once the victims, or other pods that go, have gone.

        Without a plan that remembers them other gangs would be given the room as it comes free.
        """
        cycle, gang = self.cycle, proof.gang
        admits = not cycle.in_play(gang)
        proof.keep([at for at, _ in victims], places)
        if admits:
            cycle.admit(gang)
        cycle.ledger.commit(gang)
        pods, kept = tuple(victim for _, victim in victims), self._pipelined(places)
        plan = EvictionPlan(self.action, gang.key, pods, kept, admits, certificate)
        cycle.evict(plan, gang, waits_for(gang, [f"{pod.namespace}/{pod.name}" for pod in pods]))

    def _victim(self, at: int, rule: str) -> VictimPod:
        snapshot = self.cycle.snapshot
        pod, key = snapshot.running.pods[at], snapshot.running.gangs[at]
        queue = snapshot.gangs[key].queue
        return VictimPod(pod.uid, pod.namespace, pod.name, pod.node, key, queue, rule)

    def _pipelined(self, places: Places) -> tuple[PipelinedPlace, ...]:
        nodes = self.cycle.snapshot.table.nodes
        return tuple(
            PipelinedPlace(place.task, nodes[place.row].name, place.exchange) for place in places
        )


def _admission(gang: Gang) -> Hashable:
    """What the votes on its admission depend on beside its queue and how long it waited."""
    asked = None if gang.min_request is None else gang.min_request.tobytes()
    return gang.namespace, gang.counts.tasks, asked, gang.min_limits


def _shortfall(lack: Shortfall) -> str:
    """``cpu asked 3, left 2 of 4``."""
    amounts = (lack.asked, lack.free, lack.limit or 0)
    asked, left, limit = (amount_text(lack.resource, amount) for amount in amounts)
    return f"{lack.resource} asked {asked}, left {left} of {limit}"
