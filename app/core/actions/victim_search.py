"""The search for the victims of one gang: the solver's problem, and the ledger's answers to it.

A gang of hard topology needs all its places inside one domain of the network. There only the nodes
of that domain count, and only units go that have a pod there, or free what a queue may hold.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.core.actions.areas import area_of
from app.core.actions.cycle import Cycle
from app.core.actions.proof import Places, Proof, ProvenPlace
from app.core.evicting import Judgement
from app.core.placement.arrays import Counts
from app.core.victim_rules import Preemptor
from app.core.victims.bounds import places_on
from app.core.victims.candidates import in_victim_order
from app.core.victims.certificate import Decision, certificate_of
from app.core.victims.certificate_facts import QueueFacts
from app.core.victims.going import going
from app.core.victims.least import least_cost
from app.core.victims.problem import (
    Bound,
    BoundKind,
    Limit,
    NoSolution,
    Problem,
    Solution,
    Wanted,
)
from app.core.victims.problem import Places as RowsByShape
from app.core.victims.solver import bound_on, solve
from app.core.victims.stock import freeing, room_without
from app.core.victims.units import SetCost, Unit, lost_work, pods_of, units_of, work_since
from app.kit.quantities import amount_text
from app.model.amounts import is_best_effort
from app.model.domains import Domain
from app.model.gang import Task
from app.model.ids import NodeName, PodUid, QueueName
from app.model.resources import Mask, Matrix
from app.model.shape import PodShape
from app.model.snapshot import Snapshot

_Alike = tuple[int, NodeName]
"""What equal members have in common: the identity of their shape, and their pin."""
_MOST_SHAPES = 100
"""Of the members of one gang: with more of them a search could take half a minute."""


_WANTED_BY_OTHER_SCHEDULERS_S = 600.0
"""By how much older a pod counts if pods of another scheduler wait for its room."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The work that running pods lose if they go, shape ``(P,)`` each.

    ``since`` when it counts, in seconds since the epoch; ``lost`` as of
    :func:`~app.core.victims.units.lost_work`. The room of a pod may be taken by another scheduler
    where a pod of that one waits which may go to the node: such a pod counts for so much older.
    """

    since: NDArray[np.float64]
    lost: NDArray[np.int64]

    @classmethod
    def of(cls, cycle: Cycle) -> "Work":
        """The work that pods of the cycle's snapshot lose."""
        running, now = cycle.snapshot.running, cycle.now
        since = work_since(running, now=now) - _WANTED_BY_OTHER_SCHEDULERS_S * _are_coveted(cycle)
        return cls(since, lost_work(running, total=cycle.snapshot.total, saved=since, now=now))


def _are_coveted(cycle: Cycle) -> Mask:
    """Which running pods are on nodes that waiting pods of other schedulers may go to."""
    snapshot = cycle.snapshot
    coveted = np.zeros(len(snapshot.table.nodes) + 1, dtype=np.bool_)
    known = snapshot.axis.index.keys()
    for shape in snapshot.coveting:
        if not all(name in known for name, _ in shape.requests):
            continue  # no node has what it asks for
        task = _foreign(shape, snapshot)
        large_enough = (snapshot.table.allocatable >= task.request).all(axis=1)
        coveted[:-1] |= large_enough & cycle.room_ahead.admits(task)
    mask: Mask = coveted[snapshot.running.nodes]
    return mask


def _foreign(shape: PodShape, snapshot: Snapshot) -> Task:
    return Task(
        uid=PodUid(""),
        name="",
        role="",
        shape=shape,
        request=snapshot.axis.vector(shape.requests),
        priority=0,
        created=0.0,
        best_effort=is_best_effort(shape.requests),
    )


class VictimSearch:
    """Looks for the units that ``judgement`` lets go for the gang of ``proof``.

    The gang gets its places inside ``domain``; None: anywhere. ``anywhere`` is the search for the
    same gang without a domain: what does not depend on that is worked out once.
    """

    def __init__(
        self,
        proof: Proof,
        preemptor: Preemptor,
        judgement: Judgement,
        *,
        work: Work,
        domain: Domain | None = None,
        anywhere: "VictimSearch | None" = None,
    ) -> None:
        self._cycle = proof.cycle
        self._domain = domain
        self._anywhere = anywhere
        self.proof = proof
        self._preemptor = preemptor
        self.judgement = judgement
        alike: defaultdict[_Alike, list[Task]] = defaultdict(list)
        for task in proof.tasks:
            alike[id(task.shape), task.pinned].append(task)
        self._alike = alike
        self._work = work
        self._proven: tuple[list[int], Places] | None = None
        if anywhere is None:
            self._area = area_of(proof.cycle, proof.gang)
            self._limits = dict(self._full_limits())
            self._room = proof.cycle.ledger.future_idle.copy()
        else:
            self._area = anywhere._area
            self._limits, self._room = anywhere._limits, anywhere._room
        self._wanted = [
            Wanted(self._admits(some[0]), some[0].request, len(some)) for some in alike.values()
        ]

    def inside(self, domain: Domain) -> "VictimSearch":
        """The search for the same gang inside ``domain``."""
        return VictimSearch(
            self.proof,
            self._preemptor,
            self.judgement,
            work=self._work,
            domain=domain,
            anywhere=self,
        )

    def least_cost(self) -> SetCost:
        """What no solution costs less than, from sums over the nodes that members may go to."""
        running, units = self._cycle.snapshot.running, self._units
        usable = np.logical_or.reduce([wanted.mask for wanted in self._wanted])
        short = self._preemptor.asked - np.maximum(self._room[usable], 0).sum(axis=0)
        pods = np.array(pods_of(units), dtype=np.intp)
        of = np.repeat(np.arange(len(units)), [len(unit.pods) for unit in units])
        frees = freeing(running, len(usable))[pods]
        frees[frees] = usable[running.nodes[pods[frees]]]
        freed = np.zeros((len(units), len(short)), dtype=np.int64)
        np.add.at(freed, of[frees], running.requests[pods[frees]])
        return least_cost(units, freed, short)

    def run(self) -> Solution | NoSolution:
        """What the solver finds; candidates are not even put in order where a bound says no."""
        if len(self._wanted) > _MOST_SHAPES:
            return NoSolution()
        running, limits = self._cycle.snapshot.running, list(self._limits.values())
        bound = bound_on(running, self._room, self._wanted, may_go=self._may_go, limits=limits)
        return solve(self._problem) if bound is None else NoSolution(bound)

    def most_places(self, task: Task) -> Counts:
        """At most how many members like ``task`` each node takes when all that may go is gone.

        Shape ``(N,)``; the domain is left out of account.
        """
        admits = self._cycle.room_ahead.admits(task)
        if self._area is not None:
            admits = admits & self._area
        wanted = Wanted(admits, task.request, len(self.proof.tasks))
        return places_on(self._room_at_most, wanted)

    @cached_property
    def _may_go(self) -> Mask:
        may_go = np.zeros(len(self._cycle.snapshot.running), dtype=np.bool_)
        may_go[self.judgement.allowed] = True
        return may_go

    @cached_property
    def _room_at_most(self) -> Matrix:
        return room_without(self._cycle.snapshot.running, self._room, self._may_go)

    def _admits(self, task: Task) -> Mask:
        """The nodes that ``task`` may go to, whatever runs there, shape ``(N,)``."""
        admits = self._cycle.room_ahead.admits(task)
        if self._area is not None:
            admits = admits & self._area
        return admits if self._domain is None else admits & self._in_domain

    @cached_property
    def _in_domain(self) -> Mask:
        """The nodes of the domain, shape ``(N,)``."""
        inside = np.zeros(len(self._room), dtype=np.bool_)
        inside[slice(None) if self._domain is None else self._domain.rows] = True
        return inside

    def places_of(self, solution: Solution) -> Places | None:
        """The places of ``solution`` on which all filters agree; None: they agree on none."""
        pods = pods_of(solution.units)
        if self._proven is not None and self._proven[0] == pods:
            return self._proven[1]
        return self.proof.places(pods, hint=self._hint(solution.places), domain=self._domain)

    def certificate(self, solution: Solution, places: Places) -> Mapping[str, object]:
        """The certificate of the decision. Call it before the decision is put on the ledger."""
        cycle, grouped = self._cycle, self._grouped(places)
        decision = Decision(
            preemptor=self._preemptor,
            problem=self._problem,
            solution=replace(solution, places=_rows(grouped)),
            tasks=[[place.task for place in some] for some in grouped],
            rule=self.judgement.rule,
            lost=self._work.lost,
            saved=self._work.since,
            may_go_from=self.judgement.may_go_from,
            queue_shares=cycle.opened.queue_shares,
            admits=not cycle.in_play(self.proof.gang),
            domain=self._domain,
        )
        return certificate_of(decision, cycle.ledger, now=cycle.now)

    def lacking(self, outcome: Solution | NoSolution) -> str:
        """What there is too little of even without all candidates; empty: none may go."""
        if not len(self.judgement.allowed):
            return ""
        bound = outcome.bound if isinstance(outcome, NoSolution) else None
        told = self._told(bound)
        of_queue = bound is not None and bound.kind is BoundKind.LIMIT
        return told if of_queue or self._domain is None else f"{self._domain.name} is best: {told}"

    def _told(self, bound: Bound | None) -> str:
        if bound is None:
            return self._not_found()
        if bound.kind is BoundKind.PLACES:
            told = f"there are places for {bound.there} of {bound.asked} members"
            return f"with all candidates gone, {told}"
        name = self._cycle.snapshot.axis.names[bound.resource]
        asked, there = amount_text(name, bound.asked), amount_text(name, bound.there)
        if bound.kind is BoundKind.LIMIT:
            queue = list(self._limits)[bound.wanted]
            return f"they hold {name} {there} of queue {queue}, whose limit is short of {asked}"
        told = f"{name} {there} is free, and the members ask {asked}"
        if bound.kind is BoundKind.NODE:
            told = f"no node has more than {name} {there}, and a member asks {asked}"
        return f"with all candidates gone, {told}"

    def _not_found(self) -> str:
        """What is told where no sum says no: a budget may let too few of the candidates go."""
        shapes = len(self._wanted)
        if shapes > _MOST_SHAPES:
            return f"members of {shapes} shapes, no pod is evicted for more than {_MOST_SHAPES}"
        members, candidates = len(self.proof.tasks), len(self.judgement.allowed)
        what = "no place was found" if members == 1 else f"no {members} places together were found"
        if budget := self.judgement.budget():
            return f"{what}: {budget}"
        pods = f"whichever of {candidates} pods go" if candidates > 1 else "also with that pod gone"
        return f"{what}, {pods}"

    @cached_property
    def _problem(self) -> Problem:
        units = self._units
        return Problem(
            units=units,
            running=self._cycle.snapshot.running,
            room=self._room,
            wanted=self._wanted,
            together=lambda: going(self.judgement, units),
            prove=self._prove,
            limits=list(self._limits.values()),
        )

    @cached_property
    def _units(self) -> tuple[Unit, ...]:
        if self._anywhere is not None:
            units = self._anywhere._units
            if self._limits:
                return units
            there = np.append(self._in_domain, False)[self._cycle.snapshot.running.nodes].tolist()
            return tuple(unit for unit in units if any(there[at] for at in unit.pods))
        cycle, snapshot = self._cycle, self._cycle.snapshot
        found = units_of(
            in_victim_order(cycle.opened, snapshot, self._preemptor, self.judgement.allowed),
            snapshot.running,
            snapshot.gangs,
            account_of=cycle.ledger.gang,
            coming_to=self._preemptor.coming_to,
            lost=self._work.lost,
        )
        whole = cycle.opened.gang_eviction(self._preemptor.action).whole
        return found if whole else tuple(unit for unit in found if not unit.whole)

    def _full_limits(self) -> Iterator[tuple[QueueName, Limit]]:
        """What victims must free of the preemptor's queue, and in a tree of those above it."""
        cycle, asked = self._cycle, self._preemptor.asked
        facts = QueueFacts(cycle.ledger, cycle.opened.queue_shares, preemptor=self.proof.gang)
        running = cycle.snapshot.running
        lines = [facts.line(name) for name in running.queues.values]
        for queue in facts.line(self.proof.gang.queue):
            short = facts.before(queue) + asked - facts.limit(queue)
            short[(asked <= 0) | (short < 0)] = 0
            if short.any():
                mine = np.array([*(queue in line for line in lines), False], dtype=np.bool_)
                yield queue, Limit(mine[running.queues.codes] & running.counted, short)

    def _prove(self, units: Sequence[Unit], hint: RowsByShape | None) -> RowsByShape | None:
        known, pods = None if hint is None else self._hint(hint), pods_of(units)
        found = self.proof.places(pods, hint=known, domain=self._domain)
        if found is None:
            return None
        self._proven = pods, found
        return _rows(self._grouped(found))

    def _hint(self, rows: RowsByShape) -> Mapping[_Alike, Sequence[int]]:
        return dict(zip(self._alike, rows, strict=True))

    def _grouped(self, places: Places) -> list[list[ProvenPlace]]:
        """``places`` by what members are alike, as the problem has them."""
        grouped: dict[_Alike, list[ProvenPlace]] = {alike: [] for alike in self._alike}
        for place in places:
            grouped[id(place.task.shape), place.task.pinned].append(place)
        return list(grouped.values())


def _rows(grouped: Sequence[Sequence[ProvenPlace]]) -> RowsByShape:
    return tuple(tuple(place.row for place in some) for some in grouped)
