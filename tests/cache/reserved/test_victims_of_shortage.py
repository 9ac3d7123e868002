"""A node becomes short while Bindings are under way to it: whose places are void, who goes on."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Answer, Member
from app.cache.reserved.shortages import Shortage
from app.model.ids import NodeName, PodUid, group_key
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC
from app.model.shape import PodShape
from app.model.workload import GroupPhase, Namespace, PodGroup
from tests.builders import make_amounts, make_node, make_pod, make_shape

N, ELSEWHERE = NodeName("n"), NodeName("elsewhere")
GPU = "example.com/gpu"


class Rig:
    """All members are on their way to ``n``, unless they are ``elsewhere``."""

    def __init__(self, cpu: int = 8000) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))
        self.cache.set_namespace(Namespace("default", {}, {}))
        self.cache.set_node(make_node(N, cpu=cpu, extra={GPU: 4}))
        self.cache.set_node(make_node(ELSEWHERE, cpu=100_000))
        self.now = 100.0

    def gang(
        self,
        name: str,
        size: int,
        *,
        minimum: int | None = None,
        elsewhere: Sequence[int] = (),
        roles: str = "",
        role_minimum: dict[str, int] | None = None,
        shape: PodShape | None = None,
    ) -> None:
        self.now += 1
        self.cache.set_group(
            PodGroup(
                "default",
                name,
                uid=f"uid-{name}",
                resource_version="1",
                created=0.0,
                min_member=size if minimum is None else minimum,
                role_minimum=role_minimum or {},
                phase=GroupPhase.INQUEUE,
            )
        )
        for number in range(size):
            annotations = {GROUP_ANNOTATION: name, TASK_SPEC: roles[number : number + 1]}
            pod = make_pod(f"{name}{number}", annotations=annotations, shape=shape or make_shape())
            self.cache.set_pod(pod, now=self.now)
            self.let_go(pod.uid, ELSEWHERE if number in elsewhere else N)

    def alone(self, *names: str, cpu: int = 1000) -> None:
        for name in names:
            self.now += 1
            pod = make_pod(name, shape=make_shape(cpu=cpu))
            self.cache.set_pod(pod, now=self.now)
            self.let_go(pod.uid, N)

    def let_go(self, uid: PodUid, node: NodeName) -> None:
        member = self.cache.members[uid]
        placed = GangPlacement(member.group, (Placement(member.task, node),), whole=True)
        assert self.cache.reservations.reserve(placed, now=self.now)
        self.cache.bind_steps.assume(uid, now=self.now)
        assert self.cache.bind_steps.binding(uid, now=self.now)

    def send(self, *names: str) -> None:
        for name in names:
            self.cache.bind_steps.sent(self.member(name).pod.uid)

    def answer(self, answer: Answer, *names: str) -> None:
        self.send(*names)
        for name in names:
            self.cache.bind_steps.answered(self.member(name).pod.uid, answer)

    def shrink(self, cpu: int, *, gpu: int = 4) -> None:
        self.cache.set_node(make_node(N, cpu=cpu, extra={GPU: gpu}))

    def member(self, name: str) -> Member:
        return self.cache.members[PodUid(f"uid-{name}")]

    def void(self) -> set[str]:
        return {member.pod.name for member in self.cache.members.values() if member.void}

    def room(self, name: str) -> Shortage:
        return self.cache.shortages.room_of(self.member(name))


def test_the_latest_reservation_falls_and_no_more_than_must() -> None:
    rig = Rig()
    rig.alone("p", "q", "r")
    rig.shrink(2000)
    assert rig.void() == {"r"}
    rig.shrink(1000)
    assert rig.void() == {"q", "r"}


def test_the_fall_of_a_large_reservation_spares_small_ones() -> None:
    rig = Rig()
    rig.alone("large", cpu=3000)
    rig.alone("small")
    rig.shrink(2000)
    assert rig.void() == {"large"}


def test_all_reservations_fall_of_what_there_is_none_of() -> None:
    """But not who asks for something else."""
    rig = Rig()
    gpu = PodShape(requests=make_amounts(cpu=1000, pods=1, **{GPU: 1}))
    rig.gang("g", 2, shape=gpu)
    rig.alone("plain")
    taker = PodShape(requests=make_amounts(cpu=1000, pods=1, **{GPU: 4}))
    rig.cache.set_pod(make_pod("x", scheduler="other", node=N, shape=taker), now=rig.now)
    assert rig.void() == {"g0", "g1"}
    assert rig.room("plain") is Shortage.THERE


def test_who_can_be_spared_goes_before_who_cannot() -> None:
    rig = Rig()
    rig.gang("a", 3, minimum=2)
    rig.gang("b", 2)
    rig.shrink(4000)
    assert rig.void() == {"a2"}
    rig.shrink(3000)
    assert rig.void() == {"a2", "b0", "b1"}, "a gang of which nobody is bound stops whole"


def test_each_role_keeps_its_minimum() -> None:
    rig = Rig()
    rig.gang("a", 3, minimum=2, roles="wwm", role_minimum={"m": 1, "w": 1})
    rig.shrink(2000)
    assert rig.void() == {"a1"}


def test_the_smaller_gang_stops_then_the_later() -> None:
    rig = Rig()
    rig.gang("a", 2)
    rig.gang("b", 2)
    rig.gang("c", 3, elsewhere=[0, 1])
    rig.shrink(4000)
    assert rig.void() == {"b0", "b1"}


def test_a_gang_that_stops_anyway_goes_first() -> None:
    rig = Rig()
    rig.gang("a", 2)
    rig.gang("b", 2)
    rig.gang("c", 1)
    rig.cache.drop_pod(PodUid("uid-a0"))
    rig.shrink(3000)
    assert rig.void() == {"a1"}


def test_members_of_a_group_that_is_gone_are_void_anyway() -> None:
    rig = Rig()
    rig.gang("a", 2, minimum=1)
    rig.alone("p", "q")
    rig.cache.drop_group(group_key("default", "a"))
    rig.shrink(2000)
    assert rig.void() == {"a0", "a1"}


def test_a_pod_that_moved_to_a_group_nobody_knows_goes_first() -> None:
    rig = Rig()
    rig.alone("p", "q")
    member = rig.member("p")
    member.pod = make_pod("p")
    rig.cache.groups[member.group].awaits = "uid-owner"
    rig.shrink(1000)
    assert rig.void() == {"p"}


@pytest.mark.parametrize("answer", [Answer.YES, Answer.OPEN, Answer.NO])
def test_a_gang_that_may_be_begun_is_the_last_to_lose_somebody(answer: Answer) -> None:
    rig = Rig()
    rig.alone("p")
    rig.gang("a", 3, elsewhere=[0])
    rig.answer(answer, "a0")
    rig.shrink(2000)
    assert rig.void() == {"p"}
    rig.shrink(1000)
    assert rig.void() == ({"p", "a1", "a2"} if answer is Answer.NO else {"p", "a2"})


def test_one_in_doubt_loses_somebody_before_one_that_is_begun() -> None:
    rig = Rig()
    rig.gang("a", 2, elsewhere=[0])
    rig.gang("b", 2, elsewhere=[0])
    rig.answer(Answer.OPEN, "a0")
    rig.answer(Answer.YES, "b0")
    rig.shrink(1000)
    assert rig.void() == {"a1"}


def test_one_whose_binding_has_not_left_goes_before_one_that_may_arrive() -> None:
    rig = Rig()
    rig.gang("a", 3, minimum=2)
    rig.send("a2")
    rig.shrink(2000)
    assert rig.void() == {"a1"}


def test_one_that_may_arrive_does_not_take_its_gang_along() -> None:
    """If it arrives the others have to follow."""
    rig = Rig()
    rig.gang("a", 2)
    rig.send("a1")
    rig.shrink(1000)
    assert rig.void() == {"a1"}


def test_the_place_of_a_bound_member_never_falls() -> None:
    rig = Rig()
    rig.alone("p", "q")
    rig.answer(Answer.YES, "q")
    rig.shrink(0)
    assert rig.void() == {"p"}


def test_who_stays_waits_until_it_is_known_of_one_that_is_void() -> None:
    rig = Rig()
    rig.alone("p", "q")
    rig.send("p", "q")
    rig.shrink(1000)
    assert (rig.room("p"), rig.room("q")) == (Shortage.IN_DOUBT, Shortage.GONE)
    rig.answer(Answer.NO, "q")
    assert rig.room("p") is Shortage.THERE


@pytest.mark.parametrize("shown", [False, True])
def test_another_reservation_falls_for_a_member_that_is_bound_all_the_same(shown: bool) -> None:
    rig = Rig()
    rig.gang("a", 2, elsewhere=[0])
    rig.alone("q")
    rig.send("q")
    rig.shrink(1000)
    assert rig.void() == {"q"}
    if shown:
        rig.cache.set_pod(make_pod("q", node=N), now=rig.now)
    else:
        rig.answer(Answer.YES, "q")
    assert "a1" in rig.void()
    assert rig.room("a1") is Shortage.GONE


def test_a_binding_that_leaves_is_nobody_s_when_its_pod_is_gone() -> None:
    rig = Rig()
    rig.cache.bind_steps.sent(PodUid("nobody"))
    assert rig.cache.members == {}


SIZES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)), max_size=5)


@given(gangs=SIZES, left=st.integers(0, 30))
def test_no_single_one_can_be_spared(gangs: list[tuple[int, int, int]], left: int) -> None:
    """Neither a member nor a gang gave way for nothing, and those that stay fit."""
    rig = Rig(cpu=100_000)
    for number, (size, minimum, cpu) in enumerate(gangs):
        shape = make_shape(cpu=1000 * cpu)
        rig.gang(f"g{number}-", size, minimum=min(minimum, size), shape=shape)
    rig.shrink(1000 * left)
    members = list(rig.cache.members.values())
    stay = sum(_cpu(member) for member in members if not member.void)
    assert stay <= 1000 * left
    for key, group in rig.cache.groups.items():
        void = [member for member in members if member.void and member.group == key]
        if not void:
            continue
        least = min(map(_cpu, void)) if group.complete else sum(map(_cpu, void))
        assert stay + least > 1000 * left


def _cpu(member: Member) -> int:
    return dict(member.pod.shape.requests)["cpu"]
