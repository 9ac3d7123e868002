"""Room that begun evictions are to free: whose it is, and what of it others may have meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.model.eviction import EvictionAction, EvictionPlan, PipelinedPlace, VictimPod
from app.model.gang import Task
from app.model.ids import GroupKey, NodeName, PodUid, QueueName, group_key
from app.model.parts import SubGroupPolicy
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, Pod
from app.model.workload import GroupPhase, Namespace, PodGroup
from tests.builders import make_node, make_pod, make_queue, make_shape

N1, N2 = NodeName("n1"), NodeName("n2")
LOW, HIGH = group_key("default", "low"), group_key("default", "high")


class Cluster:
    """Two nodes of four cores; ``low-0`` and ``low-1`` have all of the first one but one core."""

    def __init__(self) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))
        self.cache.registry.set_namespace("default", Namespace("default", {}, {}))
        self.cache.set_queue(make_queue("default"))
        for name in (N1, N2):
            self.cache.set_node(make_node(name, cpu=4000))
        self.group("low", 0)
        self.group("high", 2)
        for number, cpu in enumerate((2000, 1000)):
            self.pod(f"low-{number}", "low", node=N1, phase="Running", shape=make_shape(cpu=cpu))

    def group(self, name: str, minimum: int, **fields: Any) -> None:
        self.cache.set_group(
            PodGroup(
                "default",
                name,
                uid=f"uid-{name}",
                resource_version="1",
                created=0.0,
                phase=GroupPhase.INQUEUE,
                min_member=minimum,
                **fields,
            )
        )

    def pod(self, name: str, group: str, **fields: Any) -> Pod:
        pod = make_pod(name, annotations={GROUP_ANNOTATION: group}, **fields)
        self.cache.set_pod(pod, now=1.0)
        return pod

    def place(self, name: str, *, cpu: int = 1500, node: NodeName = N1) -> PipelinedPlace:
        """A place of a pod that waits, or of a slot if there is no such pod."""
        member = self.cache.members.get(PodUid(f"uid-{name}"))
        if member is not None:
            return PipelinedPlace(member.task, node)
        shape = make_shape(cpu=cpu)
        request = self.cache.node_usage.vector(shape.requests)
        slot = Task(PodUid(""), name, "", shape, request, 0, 0.0, best_effort=False)
        return PipelinedPlace(slot, node)

    def plan(self, *places: PipelinedPlace, victims: tuple[str, ...]) -> EvictionPlan:
        return EvictionPlan(
            EvictionAction.PREEMPT, HIGH, tuple(map(victim, victims)), places=places
        )

    def begin(self, *places: PipelinedPlace, victims: tuple[str, ...]) -> None:
        self.cache.pipelined.begin("x", self.plan(*places, victims=victims))

    def has_room(self, cpu: int, *, owner: GroupKey = LOW) -> bool:
        request = self.cache.node_usage.vector(make_shape(cpu=cpu).requests)
        return self.cache.node_usage.has_room(N1, request, owner=owner)

    def nodes(self) -> list[tuple[str, str]]:
        """Where whose places are; a slot has no name."""
        placements = self.cache.pipelined.placements("x")
        return [(p.task.name if p.task.uid else "", p.node) for p in placements]


def victim(name: str) -> VictimPod:
    return VictimPod(
        PodUid(f"uid-{name}"), "default", name, N1, LOW, QueueName("default"), "priority"
    )


def waiting(cluster: Cluster, *names: str, cpu: int = 1500) -> None:
    for name in names:
        cluster.pod(name, "high", shape=make_shape(cpu=cpu))


def test_idle_room_that_the_places_count_on_is_kept_from_others() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    assert cluster.has_room(1000)
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0",))
    # three cores are asked for, and two are about to be free: the idle one is needed too
    assert not cluster.has_room(1000)
    assert cluster.has_room(1000, owner=HIGH)


def test_what_the_places_do_not_need_is_free_for_others() -> None:
    cluster = Cluster()
    waiting(cluster, "a")
    cluster.begin(cluster.place("a"), victims=("low-0",))
    assert cluster.has_room(1000)
    cluster.cache.drop_pod(PodUid("uid-low-0"))
    assert cluster.has_room(1500)
    assert not cluster.has_room(1600)


def test_room_that_a_victim_has_left_is_kept_from_others_until_the_plan_ends() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0", "low-1"))
    cluster.cache.drop_pod(PodUid("uid-low-0"))
    assert not cluster.has_room(2000)
    assert cluster.has_room(2000, owner=HIGH)
    cluster.cache.pipelined.end("x")
    assert cluster.has_room(3000)


def test_no_node_is_the_best_one_for_room_that_is_kept() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0",))
    request = cluster.cache.node_usage.vector(make_shape(cpu=1000).requests)
    assert cluster.cache.node_usage.best_of([N1], request, pack=True) is None
    assert cluster.cache.node_usage.best_of([N1, N2], request, pack=True) == N2


def test_only_the_owner_may_reserve_that_room() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.pod("c", "other", shape=make_shape(cpu=1500))
    cluster.group("other", 1)
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0",))
    cluster.cache.drop_pod(PodUid("uid-low-0"))
    other = GangPlacement(
        group_key("default", "other"),
        (Placement(cluster.cache.members[PodUid("uid-c")].task, N1),),
        whole=True,
    )
    assert not cluster.cache.reservations.reserve(other, now=2.0)
    mine = GangPlacement(HIGH, cluster.cache.pipelined.placements("x"), whole=True)
    assert cluster.cache.reservations.reserve(mine, now=2.0)


@pytest.mark.parametrize(
    ("cpu", "victims", "bears"),
    [
        pytest.param(2000, ("low-0",), False, id="one victim is too little"),
        pytest.param(2000, ("low-0", "low-1"), True, id="two are enough"),
        pytest.param(1500, ("low-0",), True, id="one and the idle core"),
    ],
)
def test_a_plan_whose_victims_leave_too_little_room_is_told(
    cpu: int, victims: tuple[str, ...], bears: bool
) -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b", cpu=cpu)
    plan = cluster.plan(cluster.place("a"), cluster.place("b"), victims=victims)
    assert cluster.cache.pipelined.bears(plan) is bears


@pytest.mark.parametrize(("cpu", "bears"), [(2500, True), (2600, False)])
def test_room_that_another_plan_counts_on_is_not_there_for_a_second_one(
    cpu: int, bears: bool
) -> None:
    cluster = Cluster()
    waiting(cluster, "a")
    waiting(cluster, "b", cpu=cpu)
    cluster.begin(cluster.place("a"), victims=("low-0",))
    plan = cluster.plan(cluster.place("b"), victims=("low-1",))
    other = replace(plan, preemptor=group_key("default", "other"))
    assert cluster.cache.pipelined.bears(other) is bears


def test_snapshots_tell_of_the_plan_and_of_who_still_has_room() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0", "low-1"))
    cluster.cache.drop_pod(PodUid("uid-low-1"))
    snapshot = Snapshotter(cluster.cache).snapshot()
    [plan] = snapshot.begun
    assert [v.name for v in plan.victims] == ["low-0"]
    assert PodUid("uid-low-0") in snapshot.running.index
    assert [p.task.uid for p in plan.places] == ["uid-a", "uid-b"]


def test_requests_of_places_are_as_long_as_the_axis() -> None:
    cluster = Cluster()
    waiting(cluster, "a")
    cluster.begin(cluster.place("a"), cluster.place("slot"), victims=("low-0",))
    cluster.cache.set_node(make_node("gpu", extra={"nvidia.com/gpu": 8}))
    snapshot = Snapshotter(cluster.cache).snapshot()
    [plan] = snapshot.begun
    assert {len(p.task.request) for p in plan.places} == {len(snapshot.axis)}


def test_a_member_that_comes_has_the_place_of_a_slot() -> None:
    cluster = Cluster()
    cluster.begin(cluster.place("s0"), cluster.place("s1", node=N2), victims=("low-0",))
    waiting(cluster, "a")
    assert cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("a", "n1"), ("", "n2")]


def test_a_member_that_is_pinned_has_the_place_on_its_node() -> None:
    cluster = Cluster()
    cluster.begin(cluster.place("s0"), cluster.place("s1", node=N2), victims=("low-0",))
    cluster.pod("a", "high", shape=make_shape(cpu=1500), pinned=N2)
    assert cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("", "n1"), ("a", "n2")]


def test_a_member_that_asks_for_something_else_fits_no_place() -> None:
    cluster = Cluster()
    cluster.begin(cluster.place("s0"), cluster.place("s1"), victims=("low-0",))
    waiting(cluster, "a", cpu=2000)
    assert not cluster.cache.pipelined.follow("x")


def test_a_member_that_goes_leaves_its_place_to_the_next_one() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b", node=N2), victims=("low-0",))
    cluster.cache.drop_pod(PodUid("uid-a"))
    assert cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("", "n1"), ("b", "n2")]
    waiting(cluster, "c")
    assert cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("c", "n1"), ("b", "n2")]


def test_the_place_of_a_member_that_goes_is_for_its_sub_group() -> None:
    cluster = Cluster()
    pairs = SubGroupPolicy("pairs", keys=("pair",), size=2, least=1)
    cluster.group("high", 2, sub_groups=(pairs,))
    shape = make_shape(cpu=1500)
    for name in ("x-0", "x-1"):
        cluster.pod(name, "high", shape=shape, labels={"pair": "x"})
    cluster.begin(cluster.place("x-0"), cluster.place("x-1", node=N2), victims=("low-0",))
    cluster.cache.drop_pod(PodUid("uid-x-1"))
    cluster.pod("y-0", "high", shape=shape, labels={"pair": "y"})
    cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("x-0", N1), ("", N2)]
    cluster.pod("x-2", "high", shape=shape, labels={"pair": "x"})
    cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("x-0", N1), ("x-2", N2)]


def test_a_member_that_is_bound_elsewhere_needs_its_place_no_more() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b"), victims=("low-0",))
    cluster.pod("a", "high", shape=make_shape(cpu=1500), node=N2)
    assert cluster.cache.pipelined.follow("x")
    assert cluster.nodes() == [("b", "n1")]


def test_nothing_is_left_of_a_plan_that_ended() -> None:
    cluster = Cluster()
    waiting(cluster, "a", "b")
    cluster.begin(cluster.place("a"), cluster.place("b", node=N2), victims=("low-0",))
    cluster.cache.pipelined.end("x")
    assert not len(cluster.cache.pipelined)
    assert not cluster.cache.node_usage.kept_on
    assert not cluster.cache.pipelined.is_victim(PodUid("uid-low-0"))
