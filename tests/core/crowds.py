"""A full cluster, and what the planner evicts in it, round by round, until it evicts no pod more.

Each round is a cycle whose plan comes true. What becomes of the pods that are made in the stead of
victims is for the test to say: they are *frozen*, so that they wait and never get a place, or they
wait like others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.cache.gangs.sums import QueueSums
from app.core import texts
from app.core.planner import plan
from app.core.policy import Policies
from app.core.sums import part_of
from app.model.eviction import EvictionPlan
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName, PodUid, QueueName, group_key
from app.model.node import Node
from app.model.parts import Part
from app.model.plan import Plan
from app.model.resources import Vector
from app.model.running import Protection
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import (
    AXIS,
    GIB,
    make_gang,
    make_node,
    make_pod,
    make_shape,
    make_snapshot,
    make_task,
)
from tests.evictions import assert_certified
from tests.running import Runs, make_running

ROUND_S = 10.0
"""Seconds between two rounds."""


@dataclass(frozen=True)
class Job:
    """``members`` equal pods of ``cpu`` cores and ``gib``; the first of them run on ``rows``.

    The others wait. ``minimum`` 0: all are needed.
    """

    name: str
    members: int
    cpu: float = 1
    gib: int = 0
    minimum: int = 0
    queue: str = "default"
    priority: int = 0
    rows: tuple[int, ...] = ()
    ends_whole: bool = False
    shape: PodShape = field(init=False)
    request: Vector = field(init=False)

    def __post_init__(self) -> None:
        shape = make_shape(cpu=int(self.cpu * 1000), memory=self.gib * GIB)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "request", AXIS.vector(shape.requests))

    @property
    def needs(self) -> int:
        return self.minimum or self.members


@dataclass(eq=False)
class Member:
    """A pod of ``job``; ``row`` None: it waits, or it never gets a place, being ``frozen``."""

    name: str
    job: Job
    row: int | None = None
    frozen: bool = False
    created: float = 0.0
    started: float = 0.0


Held = Mapping[str, Vector]
"""What each job holds."""


@dataclass(frozen=True)
class Eviction:
    """A decision that came true in ``round``, and what jobs held before and after it."""

    round: int
    plan: EvictionPlan
    before: Held
    after: Held

    @property
    def preemptor(self) -> str:
        return self.plan.preemptor.partition("/")[2]

    @property
    def victims(self) -> list[str]:
        return sorted(victim.name for victim in self.plan.victims)

    @property
    def jobs(self) -> set[str]:
        """The jobs of its victims."""
        return {victim.gang.partition("/")[2] for victim in self.plan.victims}

    def __str__(self) -> str:
        return f"round {self.round}: {self.plan.action} for {self.preemptor}: {self.victims}"


class Crowd:
    """A cluster with ``jobs``, some of which run."""

    def __init__(
        self,
        jobs: Sequence[Job],
        nodes: Sequence[Node],
        by: Policies,
        *,
        queues: Sequence[Queue] = (),
        freezes: bool = True,
    ) -> None:
        self.nodes, self.queues, self.by = tuple(nodes), tuple(queues), by
        self.freezes = freezes
        self.jobs: dict[str, Job] = {}
        self.members: dict[str, list[Member]] = {}
        self.created: dict[str, float] = {}
        self.refused_since: dict[str, float] = {}
        self.evictions: list[Eviction] = []
        self.rounds = 0
        self.last: Plan | None = None
        for job in jobs:
            self.submit(job)
        self.ran = sum(self.runs(job.name) for job in jobs)

    def submit(self, job: Job) -> None:
        """``job`` comes, and its pods run as it says."""
        assert job.name not in self.jobs
        self.jobs[job.name] = job
        self.created[job.name] = self.now + (len(self.created) + 1) / 1000
        self.members[job.name] = [
            Member(
                f"{job.name}-{number}",
                job,
                job.rows[number] if number < len(job.rows) else None,
                created=self.now,
                started=self.now,
            )
            for number in range(job.members)
        ]

    def end(self, *jobs: str) -> None:
        """These jobs end, and what they had is free."""
        for name in jobs:
            del self.jobs[name], self.members[name]

    # --- what runs -------------------------------------------------------------------------------

    def runs(self, job: str) -> int:
        """How many members of ``job`` run."""
        return len(self.where(job))

    def where(self, job: str) -> list[int]:
        """The rows of the nodes where members of ``job`` run."""
        return sorted(each.row for each in self.members[job] if each.row is not None)

    def held(self) -> Held:
        """What each job holds."""
        return {name: job.request * self.runs(name) for name, job in self.jobs.items()}

    def held_by_queues(self) -> dict[str, Vector]:
        """What the jobs of each queue hold."""
        nothing = np.zeros(len(AXIS), dtype=np.int64)
        sums = {str(queue.name): nothing for queue in self.queues}
        for name, amounts in self.held().items():
            queue = self.jobs[name].queue
            sums[queue] = sums.get(queue, nothing) + amounts
        return sums

    def evicted(self) -> Counter[str]:
        """How often each pod was evicted."""
        return Counter(v.name for each in self.evictions for v in each.plan.victims)

    def text(self, job: str) -> str:
        """Why ``job`` waited in the last round."""
        assert self.last is not None
        return texts.describe(self.last.refused[group_key("default", job)])

    # --- rounds ----------------------------------------------------------------------------------

    def until_quiet(self, *, most: int) -> None:
        """Rounds until the planner neither evicts nor places; fails after ``most``."""
        for _ in range(most):
            decided = self.round()
            if not decided.evictions and not decided.placed:
                return
        raise AssertionError(f"not quiet after {most} rounds: {self.told()}")

    def told(self) -> str:
        """All evictions in words."""
        return "\n".join(str(each) for each in self.evictions)

    def round(self) -> Plan:
        """Plan once and carry it all out."""
        decided = self.decide()
        self.rounds += 1
        for key, refusal in decided.refused.items():
            if refusal.no_victims:
                self.refused_since.setdefault(key.partition("/")[2], self.now)
        for placed in decided.placed:
            for place in placed.placements:
                self._start(place.task, place.node)
        for evicts in decided.evictions:
            before = self.held()
            self.go(victim.name for victim in evicts.victims)
            self.take(evicts)
            if not evicts.victims:
                continue
            self.evictions.append(Eviction(self.rounds, evicts, before, self.held()))
        self._check(decided)
        return decided

    def decide(self, begun: Sequence[EvictionPlan] = ()) -> Plan:
        """What the planner decides now; ``begun`` are plans whose victims have not all gone."""
        self.last = plan(self.snapshot(begun), self.by, now=self.now, shapes=None)
        for evicts in self.last.evictions:
            assert_certified(evicts)
        return self.last

    @property
    def now(self) -> float:
        return ROUND_S * (self.rounds + 1)

    def snapshot(self, begun: Sequence[EvictionPlan] = ()) -> Snapshot:
        """The cluster as the planner sees it."""
        gangs = [self._gang(job) for job in self.jobs.values()]
        sums = QueueSums()
        for gang in gangs:
            sums.put(part_of(gang))
        there = [
            _runs(each) for some in self.members.values() for each in some if each.row is not None
        ]
        snapshot = make_snapshot(
            nodes=self.nodes,
            gangs=tuple(gangs),
            queues=self.queues,
            usage={str(name): usage for name, usage in sums.usage().items()},
            generation=self.rounds + 1,
            running=make_running(there),
            pending=tuple(gang for gang in gangs if gang.waiting),
            begun=tuple(begun),
        )
        used = np.zeros_like(snapshot.used)
        for one in there:
            used[one.node] += one.request
        return replace(snapshot, used=used)

    # --- how a plan comes true -------------------------------------------------------------------

    def go(self, names: Iterable[str]) -> None:
        """The pods of these names are gone, and others are made in their stead."""
        for name in names:
            job = name.rpartition("-")[0]
            [gone] = [each for each in self.members[job] if each.name == name]
            assert gone.row is not None, f"{name} does not run"
            again = Member(f"{name}x", gone.job, frozen=self.freezes, created=self.now)
            self.members[job].remove(gone)
            self.members[job].append(again)

    def take(self, evicts: EvictionPlan) -> None:
        """The preemptor of a plan gets its places."""
        for place in evicts.places:
            self._start(place.task, place.node)

    def _start(self, task: Task, node: NodeName) -> None:
        [starts] = [
            each for each in self.members[task.name.rpartition("-")[0]] if each.name == task.name
        ]
        assert starts.row is None
        assert not starts.frozen
        self.refused_since.pop(starts.job.name, None)
        starts.row, starts.started = int(node[1:]), self.now

    def _check(self, decided: Plan) -> None:
        """No gang runs in part, each preemptor has its minimum, and no node has too many pods."""
        for name, job in self.jobs.items():
            assert self.runs(name) == 0 or self.runs(name) >= job.needs, f"{name} runs in part"
        for evicts in decided.evictions:
            assert self.runs(evicts.preemptor.partition("/")[2]) > 0
        used: Counter[tuple[int, str]] = Counter()
        for job in self.jobs.values():
            for row in self.where(job.name):
                used.update({(row, name): amount for name, amount in job.shape.requests})
        room = [dict(node.allocatable) for node in self.nodes]
        assert all(amount <= room[row][name] for (row, name), amount in used.items())

    def _gang(self, job: Job) -> Gang:
        members = self.members[job.name]
        waiting = tuple(
            make_task(
                each.name,
                shape=job.shape,
                priority=job.priority,
                created=each.created,
            )
            for each in members
            if each.row is None and not each.frozen
        )
        frozen = sum(each.frozen for each in members)
        runs = self.runs(job.name)
        return make_gang(
            job.name,
            waiting=waiting,
            queue=QueueName(job.queue),
            priority=job.priority,
            created=self.created[job.name],
            min_member=job.needs,
            phase=GroupPhase.RUNNING if runs >= job.needs else GroupPhase.INQUEUE,
            counts=Counts(running=runs, pending=len(waiting) + frozen, gated=frozen),
            allocated=job.request * runs,
            request=job.request * len(members),
            gated_request=job.request * frozen,
            role_ready={"": runs} if runs else {},
            role_valid={"": len(members)},
            role_hidden={"": frozen} if frozen else {},
            role_shapes={"": job.shape},
            ends_whole=job.ends_whole,
            refused_since=self.refused_since.get(job.name, 0.0),
        )


def boards(*sizes: int | tuple[int, int]) -> tuple[Node, ...]:
    """Nodes ``n0``, ``n1``, … with that many cores, and GiB where told (else 1,000)."""
    both = [size if isinstance(size, tuple) else (size, 1000) for size in sizes]
    return tuple(
        make_node(f"n{row}", cpu=cpu * 1000, memory=gib * GIB)
        for row, (cpu, gib) in enumerate(both)
    )


def _runs(each: Member) -> Runs:
    job = each.job
    assert each.row is not None
    pod = make_pod(
        each.name,
        uid=PodUid(f"uid-{each.name}"),
        shape=job.shape,
        node=NodeName(f"n{each.row}"),
        phase="Running",
        priority=job.priority,
        created=each.created,
        started=each.started,
    )
    return Runs(
        pod,
        each.row,
        group_key("default", job.name),
        QueueName(job.queue),
        Part(""),
        counted=True,
        protected=Protection.NONE,
    )
