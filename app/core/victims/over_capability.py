"""What a queue gives up that holds more than its capability: the pods whose loss costs least.

No gang asks for the room, so only the sums of the queue count, on whatever nodes its pods run. What
protects pods from every preemptor protects them here. Where the protected pods hold more than the
capability, the queue gives up as much as it may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.shares import limits
from app.core.victim_rules import Preemptor
from app.core.victims.candidates import Candidates, among, in_victim_order
from app.core.victims.certificate import Decision, certificate_of
from app.core.victims.going import going
from app.core.victims.problem import Limit, NoSolution, Places, Problem, Solution
from app.core.victims.search import all_together
from app.core.victims.solver import solve
from app.core.victims.stock import Stock
from app.core.victims.units import Unit, lost_work, pods_of, units_of, work_since
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.gang import Counts, Gang
from app.model.ids import QueueName
from app.model.reason import Spared
from app.model.resources import Mask, Vector
from app.model.running import NO_GROUP
from app.model.workload import EVICT_OVER_CAPABILITY, GroupPhase


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """What ``queue`` holds, and by how much that is ``over`` its ``capability``.

    Vectors have the shape ``(R,)``; ``UNLIMITED`` where the capability names no limit. ``tree``:
    the queues below count with it.
    """

    queue: QueueName
    capability: Vector
    held: Vector
    over: Vector
    tree: bool


@dataclass(frozen=True, slots=True, eq=False)
class GivenUp:
    """The ``units`` go; after that the queue still holds ``kept`` over its capability.

    ``candidates`` counts the pods that were looked at, ``spared`` those that may not go.
    ``certificate`` is empty where no pod goes.
    """

    units: tuple[Unit, ...]
    kept: Vector
    candidates: int
    spared: tuple[Spared, ...]
    certificate: Mapping[str, object]


def excess_of(ledger: Ledger, opened: Opened, queue: QueueName) -> Excess | None:
    """What ``queue`` holds over its capability; None: no plugin heeds the limits of queues.

    Raises ``KeyError`` for a queue that does not exist.
    """
    about, account = ledger.snapshot.queues[queue], ledger.queue(queue)
    if opened.queue_shares is None:
        return None
    tree = opened.queue_shares(queue).with_children
    held = account.tree_allocated if tree else account.allocated
    most = limits.capability(about, ledger.snapshot.axis)
    return Excess(queue, most, held, limits.excess(held, limit=most), tree)


def give_up(excess: Excess, ledger: Ledger, opened: Opened, *, now: float) -> GivenUp:
    """The cheapest units found without which the queue keeps its capability.

    The ledger is as before. ``now`` is seconds since the epoch.
    """
    return _Search(excess, ledger, opened, now).run()


def plan_of(given_up: GivenUp, ledger: Ledger) -> EvictionPlan:
    """The decision to evict these units."""
    snapshot = ledger.snapshot
    running = snapshot.running
    victims = []
    for at in pods_of(given_up.units):
        pod, key = running.pods[at], running.gangs[at]
        queue = snapshot.gangs[key].queue
        names = (pod.uid, pod.namespace, pod.name, pod.node)
        victims.append(VictimPod(*names, key, queue, EVICT_OVER_CAPABILITY))
    return EvictionPlan(
        EvictionAction.OVER_CAPABILITY,
        NO_GROUP,
        tuple(victims),
        certificate=given_up.certificate,
    )


class _Search:
    """The solver's problem for one queue: victims on whatever node, and a limit to keep."""

    def __init__(self, excess: Excess, ledger: Ledger, opened: Opened, now: float) -> None:
        self._excess = excess
        self._ledger = ledger
        self._now = now
        self._running = running = ledger.snapshot.running
        self._rules = opened.reclaimable
        self._counts = self._of_queue() & running.counted
        self._found: Candidates = among(ledger, self._counts)
        self._saved = work_since(running, now=now)
        self._lost = lost_work(running, total=ledger.snapshot.total, saved=self._saved, now=now)
        nothing = np.zeros(len(ledger.snapshot.axis), dtype=np.int64)
        self._for = Preemptor(
            EvictionAction.OVER_CAPABILITY, of_no_members(excess.queue, nothing), (), nothing
        )
        self._judgement = self._rules.unprotected(self._for, self._found.rows)
        self._units = units_of(
            in_victim_order(opened, ledger.snapshot, self._for, self._judgement.allowed),
            running,
            ledger.snapshot.gangs,
            account_of=ledger.gang,
            coming_to=self._for.coming_to,
            lost=self._lost,
        )
        self._shares = opened.queue_shares

    def run(self) -> GivenUp:
        over = self._excess.over
        problem = self._problem(self._units, over)
        outcome = solve(problem)
        if isinstance(outcome, NoSolution):
            most = all_together(Stock.of(problem))
            problem = self._problem(most, np.minimum(over, self._freed_by(most)))
            outcome = solve(problem) if problem.limits[0].short.any() else outcome
        units = outcome.units if isinstance(outcome, Solution) else ()
        kept = np.maximum(over - self._freed_by(units), 0)
        certificate = {}
        if isinstance(outcome, Solution):
            certificate = dict(self._certificate(problem, outcome))
        spared = (*self._found.spared, *self._judgement.spared)
        return GivenUp(units, kept, self._found.count, spared, certificate)

    def _of_queue(self) -> Mask:
        """The pods that the queue holds."""
        queues, mine = self._running.queues, self._excess.queue
        path = self._ledger.path
        inside = [
            mine in path(name) if self._excess.tree else name == mine for name in queues.values
        ]
        mask: Mask = np.array([*inside, False], dtype=np.bool_)[queues.codes]
        return mask

    def _problem(self, units: Sequence[Unit], short: Vector) -> Problem:
        return Problem(
            units=units,
            running=self._running,
            room=np.zeros((0, len(short)), dtype=np.int64),
            wanted=(),
            together=lambda: going(self._judgement, units),
            prove=_no_places,
            limits=(Limit(self._counts, short),),
        )

    def _freed_by(self, units: Sequence[Unit]) -> Vector:
        pods = list(dict.fromkeys(pods_of(units)))
        freed: Vector = self._running.requests[pods].sum(axis=0)
        return freed

    def _certificate(self, problem: Problem, solution: Solution) -> Mapping[str, object]:
        excess = self._excess
        left = excess.held - problem.limits[0].short
        decision = Decision(
            preemptor=self._for,
            problem=problem,
            solution=solution,
            tasks=(),
            rule=lambda _at: EVICT_OVER_CAPABILITY,
            lost=self._lost,
            saved=self._saved,
            may_go_from=self._rules.disruptions.may_go_from,
            queue_shares=self._shares,
            limit=np.where(excess.over > 0, left, excess.capability),
        )
        return certificate_of(decision, self._ledger, now=self._now)


def _no_places(_units: Sequence[Unit], _hint: Places | None) -> Places | None:
    """No member wants a place."""
    return ()


def of_no_members(queue: QueueName, nothing: Vector) -> Gang:
    """What stands for a queue itself, in whose name its pods go; ``nothing`` is of shape (R,)."""
    return Gang(
        key=NO_GROUP,
        uid="",
        namespace="",
        name="",
        queue=queue,
        priority=0,
        created=0.0,
        min_member=0,
        phase=GroupPhase.NEW,
        counts=Counts(),
        allocated=nothing,
        kept=nothing,
        request=nothing,
        min_request=None,
        gated_request=nothing,
        releasing=nothing,
    )
