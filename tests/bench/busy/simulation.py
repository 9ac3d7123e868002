"""A run of the real planner on the real cache, in virtual time.

Gangs are those of vcjobs: their pods are created when the group is admitted, or when a slot is kept
for them. Pods are bound as soon as they have a place, run for their time and go together with their
group. A cycle runs after everything that happens, and every second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.statics import ShapeCache
from app.core.planner import plan
from app.core.policy import Policies
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName, group_key
from app.model.plan import Plan
from app.model.pod import GROUP_ANNOTATION, Pod
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Namespace, PodGroup, Queue
from tests.bench.busy.figures import Run
from tests.bench.busy.load import CORES, NODES, Arrival
from tests.builders import GIB, make_amounts, make_node, make_pod, make_queue, make_shape

SHAPE: Final[PodShape] = make_shape(cpu=1000, memory=GIB)
_TICK_S = 1.0
_MOST_CYCLES = 50
"""Cycles in a row after one event; more means that decisions do not settle."""


@dataclass(slots=True, eq=False)
class Simulation:
    """One run; ``queues`` share the cluster as ``policies`` say."""

    policies: Policies
    queues: Sequence[Queue]
    cache: ClusterCache = field(
        default_factory=lambda: ClusterCache(schedulers=frozenset({"volcano"}))
    )
    now: float = 0.0
    started: dict[str, float] = field(default_factory=dict)
    partial: int = 0
    plans: list[Plan] = field(default_factory=list)
    _by_key: dict[GroupKey, Arrival] = field(default_factory=dict)
    _pods: dict[GroupKey, list[Pod]] = field(default_factory=dict)
    _ends: list[tuple[float, GroupKey]] = field(default_factory=list)
    _shapes: ShapeCache = field(default_factory=ShapeCache)
    _snapshotter: Snapshotter = field(init=False)

    def __post_init__(self) -> None:
        self._snapshotter = Snapshotter(self.cache)
        for number in range(NODES):
            self.cache.set_node(make_node(f"n{number:02}", cpu=CORES * 1000 // NODES))
        self.cache.set_namespace(Namespace("default", {}, {}))
        for queue in (make_queue("root"), make_queue("default"), *self.queues):
            self.cache.set_queue(queue)

    def run(self, arrivals: Sequence[Arrival], *, seconds: float) -> Run:
        """All that happens until ``seconds``."""
        coming = list(reversed(arrivals))
        tick = 0.0
        while True:
            events = [each.at for each in coming[-1:]] + [end for end, _ in self._ends[:1]]
            self.now = min([*events, tick])
            if self.now >= seconds:
                return Run(arrivals, self.started, seconds, self.partial)
            while self._ends and self._ends[0][0] <= self.now:
                self._end(heappop(self._ends)[1])
            while coming and coming[-1].at <= self.now:
                self._arrive(coming.pop())
            self.settle()
            tick = min(tick + _TICK_S if self.now >= tick else tick, seconds)

    def settle(self) -> None:
        """Plan until nothing changes any more."""
        for _ in range(_MOST_CYCLES):
            if not self._cycle():
                return
        raise AssertionError(f"decisions did not settle at {self.now}")

    def snapshot(self) -> Snapshot:
        """The cluster as the planner would see it now."""
        return self._snapshotter.snapshot()

    def _cycle(self) -> bool:
        """Plan once; whether that changed anything."""
        if not self.cache.registry.pending:
            return False
        decided = plan(self.snapshot(), self.policies, now=self.now, shapes=self._shapes)
        for key in decided.admitted:
            self.cache.decisions.admit(key)
        taken = [self.cache.reservations.reserve(each, now=self.now) for each in decided.placed]
        assert all(taken)
        self.cache.collect(decided.collected, now=self.now)
        known = len(self._pods)
        for key in (*decided.admitted, *(each.gang for each in decided.placed)):
            self._create_pods(key)
        for each in decided.placed:
            self._bind(each.gang)
        return bool(decided.placed) or len(self._pods) > known

    def _arrive(self, arrival: Arrival) -> None:
        key = group_key("default", arrival.name)
        self._by_key[key] = arrival
        asked = make_amounts(cpu=1000 * arrival.size, memory=GIB * arrival.size, pods=arrival.size)
        self.cache.set_group(
            PodGroup(
                namespace="default",
                name=arrival.name,
                uid=f"uid-{arrival.name}",
                resource_version="1",
                created=self.now,
                min_member=arrival.size,
                queue=QueueName(arrival.queue),
                min_resources=asked,
                phase=GroupPhase.PENDING,
            )
        )

    def _create_pods(self, key: GroupKey) -> None:
        """What the job controller does for a group that is admitted."""
        if key in self._pods:
            return
        arrival = self._by_key[key]
        self._pods[key] = [
            make_pod(
                f"{arrival.name}-{number}",
                annotations={GROUP_ANNOTATION: arrival.name},
                shape=SHAPE,
                created=self.now,
            )
            for number in range(arrival.size)
        ]
        for pod in self._pods[key]:
            self.cache.set_pod(pod, now=self.now)

    def _bind(self, key: GroupKey) -> None:
        """What kube-scheduler and kubelet do for members that have places."""
        placed = [pod for pod in self._pods[key] if self.cache.members[pod.uid].node]
        for pod in placed:
            node = self.cache.members[pod.uid].node
            self.cache.set_pod(replace(pod, node=node, phase="Running"), now=self.now)
        arrival = self._by_key[key]
        self.partial += len(placed) < arrival.size
        self.cache.decisions.set_phase(key, GroupPhase.RUNNING)
        if arrival.name not in self.started:
            self.started[arrival.name] = self.now
            heappush(self._ends, (self.now + arrival.run_s, key))

    def _end(self, key: GroupKey) -> None:
        for pod in self._pods.pop(key):
            self.cache.drop_pod(pod.uid)
        self.cache.drop_group(key)


def waiting(simulation: Simulation) -> list[Gang]:
    """The gangs that wait."""
    return list(simulation.snapshot().pending)
