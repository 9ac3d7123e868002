"""Claims that pods share: only what changed is looked at, and the outcome is that of all claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.shared_claims import Shared, SharedClaims
from app.cache.snapshots.snapshotter import Snapshotter
from app.model.device_claims import CountedClaims
from app.model.ids import NodeName
from app.model.plan import GangPlacement, Placement
from app.model.shape import PodClaim, PodClaims, PodShape
from app.model.workload import Namespace, PriorityClass
from tests.builders import make_queue, make_shape
from tests.cache.rig import Rig
from tests.device_claims import asks, claim, claiming
from tests.scale import examples

GPU = "deviceclass/gpu"
QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = "scheduling.k8s.io/group-name"
CLAIMS = ("c0", "c1", "c2")


def shape_of(names: tuple[str, ...]) -> PodShape:
    each = tuple(PodClaim(f"of-{name}", claim=name) for name in names)
    return make_shape(claims=PodClaims("default", each) if each else None)


@dataclass
class World:
    """Pods of a group and single ones, in two queues, that share claims."""

    rig: Rig = field(default_factory=Rig)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rig.cache.set_queue(make_queue("q"))
        for name in CLAIMS:
            self.rig.cache.device_claims.set_claim(claim(name, asks(2)))
        self.rig.see(min_member=2)

    @property
    def shared(self) -> SharedClaims:
        return self.rig.cache.device_claims._shared

    def show(self, name: str, **fields: Any) -> None:
        known = self.pods[name] = self.pods.get(name, {}) | fields
        self.rig.pod(name, **known)

    def create(self, name: str, group: str, queue: str, claims: tuple[str, ...]) -> None:
        if name not in self.pods:
            self.show(name, shape=shape_of(claims), annotations={GROUP: group, QUEUE: queue})

    def place(self, name: str) -> None:
        member = self.rig.cache.members.get(self.rig.uid(name))
        if member is not None and name in self.pods and not self.pods[name].get("node"):
            place = Placement(member.task, NodeName("n"))
            decided = GangPlacement(member.group, (place,), whole=True)
            self.rig.cache.reservations.reserve(decided, now=self.rig.now)

    def withdraw(self, name: str) -> None:
        if name in self.pods and not self.pods[name].get("node"):
            self.rig.cache.reservations.withdraw(self.rig.uid(name), now=self.rig.now)

    def change(self, name: str, **fields: Any) -> None:
        if name in self.pods:
            self.show(name, **fields)

    def bind(self, name: str) -> None:
        self.change(name, node="n", phase="Running")

    def terminate(self, name: str) -> None:
        self.change(name, deleting=True)

    def end(self, name: str) -> None:
        self.change(name, node="n", phase="Succeeded")

    def prefer(self, name: str, priority: int) -> None:
        self.change(name, priority=priority)

    def set_class(self, value: int) -> None:
        self.rig.cache.registry.set_class(PriorityClass("p", value))

    def drop(self, name: str) -> None:
        if self.pods.pop(name, None) is not None:
            self.rig.cache.drop_pod(self.rig.uid(name))

    def move_group(self, queue: str) -> None:
        self.rig.see(min_member=2, queue=queue)

    def move_queue_of_namespace(self, queue: str) -> None:
        self.rig.cache.set_namespace(Namespace("default", {}, {QUEUE: queue}))

    def check(self) -> None:
        """Another look at all claims would choose the same pods, and these ask for the devices."""
        Snapshotter(self.rig.cache).snapshot()
        for shared in self.shared.each.values():
            assert self.shared.chosen(shared) == (shared.charged, shared.before)
        for member in self.rig.cache.members.values():
            asked = dict(member.pod.shape.requests).get(GPU, 0)
            charged = [s for s in self.shared.each.values() if member.pod.uid in s.charged]
            assert asked == 2 * len(charged)
        users = {uid for shared in self.shared.each.values() for uid in shared.users}
        assert users == {
            self.rig.uid(name)
            for name, pod in self.pods.items()
            if pod["shape"].claims is not None and pod.get("phase") != "Succeeded"
        }


NAMES = st.sampled_from([f"p{n}" for n in range(4)])
QUEUES = st.sampled_from(("default", "q"))
PODS = st.tuples(
    st.sampled_from(("g", "g", "")),
    st.sampled_from(("default", "q", "")),
    st.lists(st.sampled_from(CLAIMS), unique=True, min_size=1, max_size=2).map(tuple),
)
STEPS = st.one_of(
    st.tuples(st.sampled_from(("place", "withdraw", "bind")), NAMES),
    st.tuples(st.sampled_from(("terminate", "end", "drop")), NAMES),
    st.tuples(st.just("prefer"), NAMES, st.integers(0, 9)),
    st.tuples(st.just("move_group"), QUEUES),
    st.tuples(st.just("move_queue_of_namespace"), QUEUES),
    st.tuples(st.just("set_class"), st.integers(0, 9)),
)


@given(st.lists(PODS, min_size=4, max_size=4), st.lists(STEPS, max_size=12), PODS)
@examples(100)
def test_a_look_at_what_changed_is_as_good_as_one_at_all_claims(
    pods: list[Any], steps: list[Any], late: Any
) -> None:
    world = World()
    for number, pod in enumerate(pods):
        world.create(f"p{number}", *pod)
    world.check()
    for kind, *rest in steps:
        getattr(world, kind)(*rest)
        world.check()
    world.create("late", *late)
    world.check()


def test_claims_of_which_nothing_changed_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    for number in range(50):
        world.rig.cache.device_claims.set_claim(claim(f"x{number}", asks(1)))
        world.create(f"p{number}", "", "default", (f"x{number}",))
    Snapshotter(world.rig.cache).snapshot()
    Snapshotter(world.rig.cache).snapshot()
    looked: list[Shared] = []
    choose = SharedClaims.chosen

    def noted(self: SharedClaims, shared: Shared) -> Any:
        looked.append(shared)
        return choose(self, shared)

    monkeypatch.setattr(SharedClaims, "chosen", noted)
    Snapshotter(world.rig.cache).snapshot()
    assert looked == []
    world.place("p7")
    Snapshotter(world.rig.cache).snapshot()
    assert looked == [world.shared.each["default/x7"]]


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (CountedClaims(), {GPU: 2, "memory.deviceclass/gpu": 4}),
        (CountedClaims(amounts=False), {GPU: 2}),
        (CountedClaims(devices=False), {}),
        (CountedClaims(devices=False, amounts=False), {}),
    ],
    ids=["all", "no amounts", "no devices", "neither"],
)
def test_only_what_is_counted_of_claims_is_room_of_a_queue(
    counted: CountedClaims, expected: dict[str, int]
) -> None:
    rig = Rig()
    rig.cache.device_claims.set_claim(claim("c", asks(2, capacity=(("memory", 2),))))
    rig.pod("a", shape=claiming("c"))

    def asked() -> dict[str, int]:
        Snapshotter(rig.cache).snapshot()
        requests = dict(rig.member("a").pod.shape.requests)
        return {name: n for name, n in requests.items() if "deviceclass/" in name}

    everything = asked()
    rig.cache.set_counted_claims(counted)
    assert asked() == expected
    rig.cache.set_counted_claims(CountedClaims())
    assert asked() == everything
