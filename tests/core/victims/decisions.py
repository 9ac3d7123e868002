"""Decisions of the solver on small clusters, with their certificates."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.policy import QueueShare
from app.core.victim_rules import Preemptor
from app.core.victims.certificate import Decision, certificate_of
from app.core.victims.problem import Limit, Places, Problem, Solution, Wanted
from app.core.victims.solver import solve
from app.core.victims.units import Unit, lost_work, units_of
from app.model.amounts import UNLIMITED
from app.model.disruption import DisruptionBudget
from app.model.eviction import EvictionAction
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName, QueueName
from app.model.parts import Part
from app.model.resources import Mask, Vector
from app.model.running import NO_GROUP
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_node, make_pod, make_queue, make_snapshot
from tests.core.actions.rigs import members, sized, vector
from tests.running import Runs, make_running

NOW = 1000.0
PREEMPT, RECLAIM = EvictionAction.PREEMPT, EvictionAction.RECLAIM
OWN, OTHER = QueueName("own"), QueueName("other")


@dataclass(frozen=True)
class Runner:
    """A gang that runs: members of ``cpu`` cores on the nodes of these rows."""

    name: str
    rows: tuple[int, ...]
    cpu: int = 1
    minimum: int = 1
    priority: int = 0
    queue: QueueName = OWN
    started: float = 0.0

    @property
    def gang(self) -> Gang:
        count = len(self.rows)
        return make_gang(
            self.name,
            queue=self.queue,
            priority=self.priority,
            min_member=self.minimum,
            phase=GroupPhase.RUNNING,
            counts=Counts(running=count),
            role_ready={"": count},
            allocated=vector(cpu=self.cpu, pods=1) * count,
        )

    @property
    def pods(self) -> list[Runs]:
        return [
            Runs(
                make_pod(
                    f"{self.name}-{number}",
                    shape=sized(self.cpu),
                    node=NodeName(f"n{row}"),
                    phase="Running",
                    labels={"of": self.name},
                    started=self.started,
                    priority=self.priority,
                ),
                row,
                gang=self.gang.key,
                queue=self.queue,
                part=Part(""),
                counted=True,
            )
            for number, row in enumerate(self.rows)
        ]


@dataclass(frozen=True)
class Case:
    """A gang wants ``wanted`` (cores of its members), where these run on nodes of ``cores``."""

    cores: tuple[int, ...]
    runners: tuple[Runner, ...]
    wanted: tuple[int, ...]
    action: EvictionAction = PREEMPT
    priority: int = 10
    deserved: tuple[int, int] = (100, 0)
    """Of the queue of the preemptor, and of the other one, in cores."""
    limit: int = UNLIMITED
    """Of the queue of the preemptor, in milli-cores."""
    foreign: Mapping[int, int] | None = None
    """Cores that pods of other schedulers have, by row."""
    caps: tuple[tuple[str, int], ...] = ()
    """Of pods of a gang so many may go."""
    queues: tuple[Queue, ...] = (make_queue("own"), make_queue("other"))

    @property
    def gang(self) -> Gang:
        """The preemptor."""
        waiting: tuple[Task, ...] = ()
        for cpu in sorted(set(self.wanted)):
            some = members(f"new{cpu}", self.wanted.count(cpu), cpu=cpu)
            waiting += some
        return make_gang("new", queue=OWN, priority=self.priority, waiting=waiting)

    @property
    def snapshot(self) -> Snapshot:
        """The cluster."""
        pods = [pod for runner in self.runners for pod in runner.pods]
        pods += [
            Runs(make_pod(f"foreign-{row}", shape=sized(cpu)), row, gang=NO_GROUP)
            for row, cpu in (self.foreign or {}).items()
        ]
        running = make_running(pods)
        nodes = tuple(make_node(f"n{i}", cpu=size * 1000) for i, size in enumerate(self.cores))
        used = np.zeros((len(nodes), 3), dtype=np.int64)
        np.add.at(used, running.nodes, running.requests)
        return make_snapshot(
            nodes=nodes,
            gangs=(*(runner.gang for runner in self.runners), self.gang),
            queues=self.queues,
            used=used,
            running=running,
            budgets=tuple(
                DisruptionBudget("default", f"pdb-{name}", _named(name), allowed)
                for name, allowed in self.caps
            ),
        )

    def queue_share(self, queue: QueueName) -> QueueShare:
        """What the queue deserves."""
        limit = np.full(3, UNLIMITED, dtype=np.int64)
        if queue == OWN:
            limit[0] = self.limit
        deserved = dict(zip((OWN, OTHER), self.deserved, strict=True)).get(queue, 0)
        return QueueShare(vector(cpu=deserved), limit, share=0.0)


@dataclass(frozen=True)
class Decided:
    """What the solver found for a case."""

    case: Case
    problem: Problem
    solution: Solution
    certificate: dict[str, Any]


def decided(case: Case, *, refused: Collection[frozenset[str]] = ()) -> Decided | None:
    """The solver's decision; None: it found none. The planner has no places for ``refused``."""
    snapshot, gang = case.snapshot, case.gang
    ledger = Ledger(snapshot)
    running = snapshot.running
    lost = lost_work(running, total=snapshot.total, saved=running.started, now=NOW)
    units = units_of(
        np.array(_candidates(case, snapshot), dtype=np.intp),
        running,
        snapshot.gangs,
        account_of=ledger.gang,
        lost=lost,
    )
    tasks: list[list[Task]] = []
    for task in gang.waiting:
        if not (tasks and tasks[-1][0].shape is task.shape):
            tasks.append([])
        tasks[-1].append(task)
    everywhere = np.ones(len(case.cores), dtype=np.bool_)

    def prove(chosen: Sequence[Unit], hint: Places | None) -> Places | None:
        pods = [running.pods[at] for unit in chosen for at in unit.pods]
        if frozenset(pod.name for pod in pods) in refused:
            return None
        own = [dict(pod.shape.requests)["cpu"] for pod in pods if case.action is PREEMPT]
        held = int(ledger.queue(OWN).allocated[0]) - sum(own) + sum(case.wanted) * 1000
        return hint if held <= case.limit else None

    mine = running.queues.codes == running.queues.values.get(OWN, len(running))
    held = int(ledger.queue(OWN).allocated[0]) + sum(case.wanted) * 1000
    short = np.array([max(held - case.limit, 0), 0, 0], dtype=np.int64)
    problem = Problem(
        units=units,
        running=running,
        room=ledger.future_idle,
        wanted=[Wanted(everywhere, some[0].request, len(some)) for some in tasks],
        together=lambda: nullcontext(Going(case, ledger, units)),
        prove=prove,
        limits=[Limit(mine, short)],
    )
    solution = solve(problem)
    if not isinstance(solution, Solution) or not solution.units:
        return None
    asked: Vector = sum((task.request for task in gang.waiting), vector())
    decision = Decision(
        preemptor=Preemptor(case.action, gang, gang.waiting, asked),
        problem=problem,
        solution=solution,
        tasks=tasks,
        rule=lambda _at: "proportion" if case.action is RECLAIM else "gang+priority",
        lost=lost,
        saved=running.started,
        queue_shares=case.queue_share,
    )
    written = json.loads(json.dumps(certificate_of(decision, ledger, now=NOW)))
    return Decided(case, problem, solution, written)


def _named(gang: str) -> LabelSelector:
    return LabelSelector((Requirement("of", Operator.IN, (gang,)),))


def _candidates(case: Case, snapshot: Snapshot) -> list[int]:
    running = snapshot.running
    gangs = [snapshot.gangs.get(key) for key in running.gangs]
    if case.action is RECLAIM:
        return [at for at, gang in enumerate(gangs) if gang and gang.queue == OTHER]
    return [
        at
        for at, gang in enumerate(gangs)
        if gang and gang.queue == OWN and gang.priority < case.priority
    ]


@dataclass
class Going:
    """Some of ``units`` go together, asked about one by one."""

    case: Case
    ledger: Ledger
    units: Sequence[Unit]
    gone: tuple[Unit, ...] = ()

    def take(self, units: Sequence[Unit]) -> int | None:
        """Let all of these go as well, if they may."""
        gone = self.gone
        for number, unit in enumerate(units):
            gone = (*gone, unit)
            if not _compatible(self.case, self.ledger, gone):
                return number
        self.gone = gone
        return None

    def still_may(self) -> Mask:
        """Which units may go yet, each by itself."""
        rest = [(*self.gone, unit) for unit in self.units]
        return np.array([_compatible(self.case, self.ledger, each) for each in rest])


def _compatible(case: Case, ledger: Ledger, chosen: Sequence[Unit]) -> bool:
    running = ledger.snapshot.running
    gone = [at for unit in chosen for at in unit.pods]
    for budget in ledger.snapshot.budgets:
        if sum(budget.covers(running.pods[at]) for at in gone) > budget.allowed:
            return False
    with ledger.trial():
        for unit in chosen:
            held = ledger.queue(OTHER).allocated
            if case.action is RECLAIM and held[0] <= case.deserved[1] * 1000:
                return False
            for at in unit.pods:
                ledger.evict(at)
    return True


@st.composite
def cases(draw: st.DrawFn, *, least: int = 1, pods: int = 8) -> Case:
    """Up to four nodes full of gangs, of which some may be evicted."""
    nodes = draw(st.integers(1, 4))
    action = draw(st.sampled_from((PREEMPT, PREEMPT, RECLAIM)))
    count = draw(st.integers(least, pods))
    runners: list[Runner] = []
    while count:
        size = draw(st.integers(1, min(count, 3)))
        count -= size
        runners.append(
            Runner(
                f"r{len(runners)}",
                tuple(draw(st.integers(0, nodes - 1)) for _ in range(size)),
                cpu=draw(st.integers(1, 3)),
                minimum=draw(st.integers(1, size)),
                priority=draw(st.integers(0, 2)),
                queue=draw(st.sampled_from((OWN, OWN, OTHER) if action is PREEMPT else (OTHER,))),
                started=draw(st.sampled_from((0.0, 500.0, 990.0))),
            )
        )
    idle = [draw(st.integers(0, 2)) for _ in range(nodes)]
    cores = [
        idle[row] + sum(runner.cpu * runner.rows.count(row) for runner in runners)
        for row in range(nodes)
    ]
    sizes = draw(st.sampled_from(((1, 1), (2, 2), (3, 3), (1, 2), (2, 3))))
    wanted = tuple(sorted(draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=4))))
    caps = draw(st.lists(st.tuples(st.sampled_from(runners), st.integers(0, 2)), max_size=1))
    return Case(
        tuple(cores),
        tuple(runners),
        wanted,
        action=action,
        deserved=(100, draw(st.integers(0, 3))),
        limit=draw(st.sampled_from((UNLIMITED, UNLIMITED, 4000, 8000))),
        caps=tuple((runner.name, allowed) for runner, allowed in caps),
    )
