"""A small cache to make, use and lose reservations in."""

from typing import Any

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage
from app.model.ids import NodeName, PodUid, group_key
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, Pod
from app.model.shape import PodShape
from app.model.workload import GroupPhase, Namespace, PodGroup
from tests.builders import make_node, make_pod, make_shape, make_task

KEY = group_key("default", "g")
OTHER = "default-scheduler"


class Rig:
    """Node ``n`` has room for two members, ``m`` for one; the group ``g`` is let in."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}), clock=lambda: self.now)
        self.cache.set_node(make_node("n", cpu=2000))
        self.cache.set_node(make_node("m", cpu=1000))
        self.cache.set_namespace(Namespace("default", {}, {}))
        self.cache.set_group(group())
        self.cache.losses.lost.clear()

    def pod(self, name: str, **fields: Any) -> Pod:
        annotations = {GROUP_ANNOTATION: "g"} | fields.pop("annotations", {})
        pod = make_pod(name, annotations=annotations, **fields)
        self.cache.set_pod(pod, now=self.now)
        return pod

    def see(self, **fields: Any) -> None:
        """The group is changed."""
        self.cache.set_group(group(**fields))

    def place(self, **nodes: str) -> bool:
        """Publish a place for each of these pods, all or none."""
        placements = [
            Placement(self.member(name).task, NodeName(node)) for name, node in nodes.items()
        ]
        return self.cache.reservations.reserve(
            GangPlacement(KEY, tuple(placements), whole=True), now=self.now
        )

    def slot(self, node: str, *, role: str = "", shape: PodShape | None = None) -> bool:
        """Publish room for a member that does not exist."""
        task = make_task("", uid=PodUid(""), role=role, shape=shape or make_shape())
        placed = GangPlacement(KEY, (Placement(task, NodeName(node)),), whole=True)
        return self.cache.reservations.reserve(placed, now=self.now)

    def stage(self, name: str, stage: Stage, node: str = "n") -> None:
        """Bring a waiting pod that far."""
        assert self.place(**{name: node})
        if stage in (Stage.ASSUMED, Stage.BINDING):
            self.cache.bind_steps.assume(self.uid(name), now=self.now)
        if stage is Stage.BINDING:
            assert self.cache.bind_steps.binding(self.uid(name), now=self.now)

    @staticmethod
    def uid(name: str) -> PodUid:
        return PodUid(f"uid-{name}")

    def member(self, name: str) -> Member:
        return self.cache.members[self.uid(name)]

    def where(self, *names: str) -> list[tuple[Stage, str]]:
        return [(self.member(name).stage, self.member(name).node) for name in names]

    def used(self, node: str) -> int:
        """Promised and taken CPU."""
        node_usage = self.cache.node_usage
        row = node_usage.table().index[NodeName(node)]
        return int(node_usage.sorted_used()[0][row][0])

    def lost(self) -> list[tuple[str, str]]:
        return [(loss.uid.removeprefix("uid-"), loss.why) for loss in self.cache.losses.lost]

    def slots(self) -> list[tuple[str, str]]:
        found = self.cache.groups[KEY].slots.values()
        return sorted((slot.role, slot.node) for slot in found)


def group(**fields: Any) -> PodGroup:
    defaults: dict[str, Any] = {
        "uid": "uid-g",
        "resource_version": "1",
        "created": 0.0,
        "min_member": 2,
        "phase": GroupPhase.INQUEUE,
    }
    return PodGroup("default", "g", **(defaults | fields))
