"""A full cluster, a gang that pods are to be evicted for, and plans made by hand.

Nodes ``n1`` and ``n2`` have four cores each, and ``low`` has one pod of two cores on each half of
both. ``high`` is a gang of two pods of two cores that wait behind our gate.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from app.model.eviction import EvictionAction, EvictionPlan, PipelinedPlace, VictimPod
from app.model.gang import Task
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.plan import Plan
from app.model.pod import GATE, Pod
from app.service.activity import Activity
from app.service.cycle.begun_eviction import BegunEviction
from app.service.limits import Limits
from tests.builders import make_shape
from tests.service.rig import Rig

TWO = make_shape(cpu=2000)
PLACES = (("high-0", "n1"), ("high-1", "n1"))
VICTIMS = ("low-0", "low-1")
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
"""


class Contended(Rig):
    """See the module."""

    def __init__(
        self, limits: Limits | None = None, *, activity: Activity | None = None, taken: bool = True
    ) -> None:
        super().__init__(limits, activity=activity)
        self.parts.configuration.load(CONF)
        self.node("n1", "n2", cpu=4000)
        self.group("low", minimum=1)
        for number in range(4 if taken else 0):
            node = NodeName(f"n{number // 2 + 1}")
            self.pod(f"low-{number}", group="low", node=node, phase="Running", shape=TWO)
        self.gang("high", size=2, gated=True, shape=TWO)

    @property
    def evictions(self) -> Any:
        return self.planning.evictions

    def victim(self, name: str) -> VictimPod:
        """The pod of that name as it is now."""
        pod = self.api.pods[f"default/{name}"]
        return VictimPod(
            pod.uid, "default", name, pod.node, pod.group, QueueName("default"), "priority"
        )

    def pipelined(self, name: str, node: str) -> PipelinedPlace:
        """A place of a pod that waits; of a slot, if there is no pod of that name."""
        member = self.cache.members.get(PodUid(f"uid-{name}"))
        if member is not None:
            return PipelinedPlace(member.task, NodeName(node))
        request = self.cache.node_usage.vector(TWO.requests)
        slot = Task(PodUid(""), name, "", TWO, request, 0, 0.0, best_effort=False)
        return PipelinedPlace(slot, NodeName(node))

    def plan(
        self,
        victims: Iterable[str] = VICTIMS,
        places: Iterable[tuple[str, str]] = PLACES,
        *,
        group: str = "high",
        action: EvictionAction = EvictionAction.PREEMPT,
        **fields: Any,
    ) -> EvictionPlan:
        """A plan for ``group``."""
        return EvictionPlan(
            action,
            self.key(group) if group else GroupKey(""),
            tuple(map(self.victim, victims)),
            tuple(self.pipelined(*each) for each in places),
            **fields,
        )

    def decide(self, *plans: EvictionPlan) -> bool:
        """A cycle has decided so, on the cluster as it is now; whether it is to plan anew."""
        now = self.clock()
        token = self.planning.cycle.input.token(now)
        plan = Plan(token.snapshot.generation, evictions=plans)
        return self.planning.publisher.publish(plan, token, now=now)

    def begun(self, group: str = "high") -> BegunEviction | None:
        """The plan whose victims the group waits for."""
        return self.planning.evictions.of(self.key(group))

    def evicted(self) -> list[str]:
        """Names of the pods that were evicted, in that order."""
        return [write.target.partition("/")[2] for write in self.api.of("evict")]

    def terminate(self, *names: str) -> None:
        """The watch shows that these pods are being deleted."""
        self.store(*(replace(self.api.pods[f"default/{name}"], deleting=True) for name in names))

    def foreign(self, name: str, node: str, **fields: Any) -> Pod:
        """A pod of another scheduler is bound."""
        pod = replace(
            self.api.pods["default/high-0"],
            uid=PodUid(f"uid-{name}"),
            name=name,
            scheduler="default-scheduler",
            node=NodeName(node),
            annotations={},
            gates=(),
            **fields,
        )
        self.store(pod)
        return pod

    def more_waiting(self, *names: str, gated: bool = True) -> None:
        """Members of ``high`` come."""
        for name in names:
            self.pod(name, group="high", shape=TWO, gates=(GATE,) if gated else ())

    def events(self, about: str) -> list[tuple[str, str, str]]:
        """Type, reason and message of the events about that object."""
        return [(e.event_type, e.reason, e.message) for e in self.api.events if e.about == about]
