"""A member's life on our side: who gets a place, who keeps it, and who is told that it is lost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.members import Stage
from app.cache.reserved.unused import overdue
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.node import Taint
from app.model.plan import GangPlacement, Placement
from app.model.pod import EXCHANGE, GROUP_ANNOTATION
from app.model.shape import PodShape, Toleration
from tests.builders import ALONE, make_amounts, make_node, make_pod, make_shape
from tests.cache.rig import KEY, OTHER, Rig, group

REPELLING = make_shape(cpu=1, pod_anti_affinity=(ALONE,))


@pytest.fixture
def rig() -> Rig:
    return Rig()


# --- getting a place ------------------------------------------------------------------------------


def test_a_place_is_charged_from_the_reservation_until_the_pod_is_done(rig: Rig) -> None:
    pod = rig.pod("a")
    assert rig.used("n") == 0
    rig.stage("a", Stage.BINDING)
    assert rig.used("n") == 1000
    for phase in ("Pending", "Running"):
        rig.cache.set_pod(replace(pod, node=NodeName("n"), phase=phase), now=rig.now)
        assert rig.used("n") == 1000
    rig.cache.set_pod(replace(pod, node=NodeName("n"), phase="Succeeded"), now=rig.now)
    assert rig.used("n") == 0
    assert rig.lost() == []


def test_a_gang_gets_all_its_places_or_none(rig: Rig) -> None:
    for name in "abc":
        rig.pod(name)
    assert not rig.place(a="n", b="n", c="n")
    assert rig.used("n") == 0
    assert rig.place(a="n", b="n", c="m")
    assert (rig.used("n"), rig.used("m")) == (2000, 1000)


REFUSED: dict[str, Callable[[Rig], object]] = {
    "the node went": lambda r: r.cache.drop_node(NodeName("n")),
    "the node was cordoned": lambda r: r.cache.set_node(
        make_node("n", cpu=2000, unschedulable=True)
    ),
    "the node is not ready": lambda r: r.cache.set_node(make_node("n", cpu=2000, ready=False)),
    "the node shrank": lambda r: r.cache.set_node(make_node("n", cpu=500)),
    "another pod took the room": lambda r: r.cache.set_pod(
        make_pod("x", scheduler=OTHER, node=NodeName("n"), shape=make_shape(cpu=1500)), now=1.0
    ),
    "the pod was bound elsewhere": lambda r: r.pod("a", node=NodeName("m")),
    "the pod is being deleted": lambda r: r.pod("a", deleting=True),
    "somebody gated the pod": lambda r: r.pod("a", gates=("other.io/gate",)),
    "the pod has a place already": lambda r: r.place(a="m"),
    "the group went": lambda r: r.cache.drop_group(KEY),
    "the group is being deleted": lambda r: r.cache.set_group(group(deleting=True)),
}


@pytest.mark.parametrize("what", REFUSED.values(), ids=REFUSED.keys())
def test_a_plan_that_is_not_true_any_more_is_not_published(
    rig: Rig, what: Callable[[Rig], object]
) -> None:
    rig.pod("a")
    task = rig.member("a").task
    what(rig)
    before = dict(rig.cache.node_usage.charges)
    stale = GangPlacement(KEY, (Placement(task, NodeName("n")),), whole=True)
    assert not rig.cache.reservations.reserve(stale, now=rig.now)
    assert rig.cache.node_usage.charges == before


def test_a_planned_member_can_be_moved_where_there_is_room(rig: Rig) -> None:
    for name in "ab":
        rig.pod(name)
    rig.stage("a", Stage.PLANNED, node="n")
    assert rig.cache.reservations.move(rig.uid("a"), NodeName("m"), now=rig.now)
    assert not rig.cache.reservations.move(rig.uid("b"), NodeName("m"), now=rig.now)
    assert rig.where("a", "b") == [(Stage.PLANNED, "m"), (Stage.WAITING, "")]
    assert (rig.used("n"), rig.used("m")) == (0, 1000)


@pytest.mark.parametrize("stage", [Stage.ASSUMED, Stage.BINDING])
def test_a_member_that_came_to_bind_is_not_moved(rig: Rig, stage: Stage) -> None:
    rig.pod("a")
    rig.stage("a", stage)
    assert not rig.cache.reservations.move(rig.uid("a"), NodeName("m"), now=rig.now)


def test_equal_members_of_full_nodes_change_places(rig: Rig) -> None:
    for name in "abc":
        rig.pod(name)
    assert rig.place(a="n", b="n", c="m")
    rig.cache.signals.taken_up()
    assert rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now + 5)
    assert not rig.cache.signals.may_place, "nothing is free that was not before"
    assert rig.where("a", "c") == [(Stage.PLANNED, "m"), (Stage.PLANNED, "n")]
    assert (rig.used("n"), rig.used("m")) == (2000, 1000)
    assert rig.lost() == []


@pytest.mark.parametrize(
    "fields",
    [{"shape": make_shape(cpu=500)}, {"pinned": NodeName("m")}],
    ids=["of another shape", "pinned"],
)
def test_members_that_are_not_equal_keep_their_places(rig: Rig, fields: dict[str, Any]) -> None:
    rig.pod("a")
    rig.pod("b", **fields)
    assert rig.place(a="n", b="m")
    assert not rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now)
    assert rig.where("a", "b") == [(Stage.PLANNED, "n"), (Stage.PLANNED, "m")]


def test_a_member_whose_place_was_told_keeps_it(rig: Rig) -> None:
    for name in "ab":
        rig.pod(name)
    assert rig.place(a="n", b="m")
    rig.cache.members[rig.uid("b")].told = True
    assert not rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now)
    assert rig.where("a", "b") == [(Stage.PLANNED, "n"), (Stage.PLANNED, "m")]


def put(rig: Rig, name: str, node: str, exchange: Exchange = ANY_EQUAL) -> None:
    """Give a member a place of that class."""
    member = rig.member(name)
    placement = Placement(member.task, NodeName(node), exchange)
    assert rig.cache.reservations.reserve(
        GangPlacement(member.group, (placement,), whole=False), now=rig.now
    )


EAST, WEST = ANY_EQUAL.within("zone east"), ANY_EQUAL.within("zone west")


@pytest.mark.parametrize(
    ("mine", "theirs", "are_exchanged"),
    [
        (ANY_EQUAL, ANY_EQUAL, True),
        (EAST, ANY_EQUAL.within("zone east"), True),
        (EAST, WEST, False),
        (EAST, ANY_EQUAL, False),
        (ANY_EQUAL, EAST, False),
        (NO_EXCHANGE, NO_EXCHANGE, False),
        (NO_EXCHANGE, ANY_EQUAL, False),
    ],
)
def test_equal_members_exchange_places_of_one_class_only(
    rig: Rig, mine: Exchange, theirs: Exchange, *, are_exchanged: bool
) -> None:
    for name in "ab":
        rig.pod(name)
    put(rig, "a", "n", mine)
    put(rig, "b", "m", theirs)
    assert (
        rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now) is are_exchanged
    )
    assert (
        rig.cache.reservations.change_places(rig.uid("a"), rig.uid("b"), now=rig.now)
        is are_exchanged
    )
    rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now)
    assert rig.member("a").node == ("m" if are_exchanged else "n")


@pytest.mark.parametrize("exchange", [ANY_EQUAL, EAST, NO_EXCHANGE])
def test_only_a_place_of_the_widest_class_is_exchanged_for_free_room(
    rig: Rig, exchange: Exchange
) -> None:
    rig.pod("a")
    put(rig, "a", "n", exchange)
    assert rig.cache.reservations.move(rig.uid("a"), NodeName("n"), now=rig.now), (
        "it is where it was"
    )
    assert rig.member("a").exchange == exchange
    assert rig.cache.reservations.move(rig.uid("a"), NodeName("m"), now=rig.now) is (
        exchange == ANY_EQUAL
    )


def test_the_class_goes_with_the_place(rig: Rig) -> None:
    rig.pod("a")
    put(rig, "a", "n", NO_EXCHANGE)
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now)
    put(rig, "a", "n")
    assert rig.member("a").exchange_class == ANY_EQUAL


def test_a_pod_that_says_so_keeps_the_place_it_has(rig: Rig) -> None:
    pod = rig.pod("a")
    rig.pod("b")
    put(rig, "a", "n")
    put(rig, "b", "m")
    settled = {**pod.annotations, EXCHANGE: "false"}
    rig.cache.set_pod(replace(pod, annotations=settled), now=rig.now)
    assert not rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now)
    assert not rig.cache.reservations.exchange(rig.uid("b"), {NodeName("n")}, now=rig.now)
    rig.cache.set_pod(pod, now=rig.now)
    assert rig.cache.reservations.exchange(rig.uid("a"), {NodeName("m")}, now=rig.now)


@pytest.fixture(name="two")
def _two(rig: Rig) -> Rig:
    """A member ``a`` has its place on n, and a pod ``b`` of no group on m."""
    rig.pod("a")
    alone(rig)
    assert rig.place(a="n")
    member = rig.member("b")
    placed = GangPlacement(member.group, (Placement(member.task, NodeName("m")),), whole=True)
    assert rig.cache.reservations.reserve(placed, now=rig.now)
    return rig


def alone(rig: Rig, **fields: Any) -> None:
    rig.cache.set_pod(make_pod("b", **fields), now=rig.now)


def test_equal_pods_of_two_groups_change_places(two: Rig) -> None:
    assert two.cache.reservations.change_places(two.uid("a"), two.uid("b"), now=two.now + 5)
    assert two.where("a", "b") == [(Stage.PLANNED, "m"), (Stage.PLANNED, "n")]
    assert (two.used("n"), two.used("m")) == (1000, 1000)
    assert two.lost() == []


KEEPING: dict[str, Callable[[Rig], object]] = {
    "the other is pinned": lambda r: alone(r, pinned=NodeName("m")),
    "the other's place was told": lambda r: setattr(r.member("b"), "told", True),
    "the other came to Bind": lambda r: r.cache.bind_steps.assume(r.uid("b"), now=r.now),
    "it came to Bind itself": lambda r: r.cache.bind_steps.assume(r.uid("a"), now=r.now),
    "the other lost its place": lambda r: r.cache.reservations.withdraw(r.uid("b"), now=r.now),
    "it lost its place": lambda r: r.cache.reservations.withdraw(r.uid("a"), now=r.now),
    "the other is gone": lambda r: r.cache.drop_pod(r.uid("b")),
    "it is gone": lambda r: r.cache.drop_pod(r.uid("a")),
    "a rule says who may be beside whom": lambda r: r.cache.set_pod(
        make_pod("x", scheduler=OTHER, node=NodeName("n"), shape=REPELLING), now=r.now
    ),
}


@pytest.mark.parametrize("what", KEEPING.values(), ids=KEEPING.keys())
def test_places_are_kept_when(two: Rig, what: Callable[[Rig], object]) -> None:
    what(two)
    there = [name for name in "ab" if two.uid(name) in two.cache.members]
    before = two.where(*there)
    assert not two.cache.reservations.change_places(two.uid("a"), two.uid("b"), now=two.now)
    assert two.where(*there) == before


def test_no_pod_changes_places_with_itself(two: Rig) -> None:
    assert not two.cache.reservations.change_places(two.uid("a"), two.uid("a"), now=two.now)


# --- keeping it and losing it ---------------------------------------------------------------------

TAINT = Taint("example.com/going", "", "NoSchedule")
FOREIGN = make_pod("x", scheduler=OTHER, node=NodeName("n"), shape=make_shape(cpu=1500))

EVENTS: dict[str, tuple[Callable[[Rig], object], str]] = {
    "node deleted": (lambda r: r.cache.drop_node(NodeName("n")), "node is gone"),
    "node cordoned": (
        lambda r: r.cache.set_node(make_node("n", cpu=2000, unschedulable=True)),
        "node does not take pods any more",
    ),
    "node tainted": (
        lambda r: r.cache.set_node(make_node("n", cpu=2000, taints=(TAINT,))),
        "node does not take pods any more",
    ),
    "node smaller": (
        lambda r: r.cache.set_node(make_node("n", cpu=500)),
        "node became smaller",
    ),
    "room taken": (
        lambda r: r.cache.set_pod(FOREIGN, now=1.0),
        "another pod took the room",
    ),
    "group deleted": (lambda r: r.cache.drop_group(KEY), "PodGroup was deleted"),
    "given up": (lambda r: r.cache.reservations.release(KEY, why="too late"), "too late"),
}


@pytest.mark.parametrize("stage", [Stage.PLANNED, Stage.ASSUMED])
@pytest.mark.parametrize(("event", "why"), EVENTS.values(), ids=EVENTS.keys())
def test_a_place_that_became_void_is_given_back_and_told(
    rig: Rig, event: Callable[[Rig], object], why: str, stage: Stage
) -> None:
    rig.pod("a")
    rig.stage("a", stage)
    event(rig)
    assert rig.where("a") == [(Stage.WAITING, NO_NODE)]
    assert rig.lost() == [("a", why)]


@pytest.mark.parametrize(("event", "_why"), EVENTS.values(), ids=EVENTS.keys())
def test_a_binding_under_way_is_never_taken_back(
    rig: Rig, event: Callable[[Rig], object], _why: str
) -> None:
    """The API server may have accepted it: the room stays charged until the watch says."""
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    event(rig)
    assert rig.where("a") == [(Stage.BINDING, "n")]
    assert rig.lost() == []
    assert rig.cache.node_usage.charges[rig.uid("a")].node == "n"


BEARING: dict[str, dict[str, Any]] = {
    "taint": {"tolerations": (Toleration(exists=True),)},
    "selector": {"node_selector": (("pool", "b"),), "tolerations": (Toleration(exists=True),)},
}


@pytest.mark.parametrize("fields", BEARING.values(), ids=BEARING.keys())
def test_a_place_stays_with_who_bears_what_the_node_says(rig: Rig, fields: dict[str, Any]) -> None:
    """And is lost by who must have the label that the node had."""
    rig.cache.set_node(make_node("n", cpu=2000, labels={"pool": "b"}))
    rig.pod("a", shape=make_shape(**fields))
    rig.stage("a", Stage.ASSUMED)
    rig.cache.set_node(make_node("n", cpu=2000, labels={"pool": "b"}, taints=(TAINT,)))
    assert rig.where("a") == [(Stage.ASSUMED, "n")]
    rig.cache.set_node(make_node("n", cpu=2000, labels={"pool": "c"}, taints=(TAINT,)))
    kept = (Stage.ASSUMED, "n") if "node_selector" not in fields else (Stage.WAITING, NO_NODE)
    assert rig.where("a") == [kept]


def test_room_kept_on_a_node_whose_label_changes_goes_with_it(rig: Rig) -> None:
    rig.cache.set_node(make_node("n", cpu=2000, labels={"pool": "a"}))
    assert rig.slot("n", shape=make_shape(node_selector=(("pool", "a"),)))
    rig.cache.set_node(make_node("n", cpu=2000, labels={"pool": "b"}))
    assert rig.cache.groups[KEY].slots == {}


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "deleted gracefully": ({"deleting": True}, "pod is being deleted"),
    "failed": ({"phase": "Failed"}, "pod is over"),
}


@pytest.mark.parametrize("stage", [Stage.PLANNED, Stage.ASSUMED, Stage.BINDING])
@pytest.mark.parametrize(("fields", "why"), ENDS.values(), ids=ENDS.keys())
def test_a_pod_that_ends_loses_its_place_whatever_its_stage(
    rig: Rig, fields: dict[str, Any], why: str, stage: Stage
) -> None:
    pod = rig.pod("a")
    rig.stage("a", stage)
    rig.cache.set_pod(replace(pod, **fields), now=rig.now)
    assert rig.used("n") == 0
    assert rig.lost() == [("a", why)]


@pytest.mark.parametrize("stage", [Stage.PLANNED, Stage.ASSUMED, Stage.BINDING])
def test_a_pod_that_is_gone_frees_its_room_at_once(rig: Rig, stage: Stage) -> None:
    rig.pod("a")
    rig.stage("a", stage)
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.used("n") == 0
    assert rig.lost() == [("a", "pod was deleted")]


def test_a_pod_that_waits_is_missed_by_nobody(rig: Rig) -> None:
    rig.pod("a")
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.lost() == []


def test_the_latest_reservation_goes_first_when_room_is_taken(rig: Rig) -> None:
    for name in "ab":
        rig.pod(name)
    rig.stage("a", Stage.PLANNED)
    rig.now += 1
    rig.stage("b", Stage.PLANNED)
    taker = make_pod("x", scheduler=OTHER, node=NodeName("n"), shape=make_shape(cpu=500))
    rig.cache.set_pod(taker, now=rig.now)
    assert rig.where("a", "b") == [(Stage.PLANNED, "n"), (Stage.WAITING, "")]


def test_a_pod_bound_elsewhere_moves_its_charge(rig: Rig) -> None:
    pod = rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    rig.cache.set_pod(replace(pod, node=NodeName("m")), now=rig.now)
    assert (rig.used("n"), rig.used("m")) == (0, 1000)
    assert rig.lost() == []


def test_a_pod_bound_elsewhere_squeezes_the_one_that_the_room_was_reserved_for(rig: Rig) -> None:
    pod = rig.pod("a")
    rig.pod("b")
    assert rig.place(a="n", b="m")
    rig.cache.set_pod(replace(pod, node=NodeName("m")), now=rig.now)
    assert rig.where("b") == [(Stage.WAITING, "")]
    assert rig.lost() == [("b", "another pod took the room")]


def test_a_bind_call_that_is_given_up_leaves_the_pod_planned(rig: Rig) -> None:
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    rig.cache.bind_steps.unassume(rig.uid("a"), now=rig.now)
    assert rig.where("a") == [(Stage.PLANNED, "n")]


def test_a_binding_that_failed_on_a_node_that_is_gone_leaves_the_pod_waiting(rig: Rig) -> None:
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    rig.cache.drop_node(NodeName("n"))
    rig.cache.bind_steps.unassume(rig.uid("a"), now=rig.now)
    assert rig.where("a") == [(Stage.WAITING, "")]


def test_a_binding_that_failed_on_a_node_without_room_leaves_the_pod_waiting(rig: Rig) -> None:
    """The room was taken while the Binding was under way: it could not be taken back then."""
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    rig.cache.set_pod(FOREIGN, now=rig.now)
    assert rig.where("a") == [(Stage.BINDING, "n")]
    rig.cache.bind_steps.unassume(rig.uid("a"), now=rig.now)
    assert rig.where("a") == [(Stage.WAITING, "")]


def test_only_a_member_with_a_place_may_send_its_binding(rig: Rig) -> None:
    rig.pod("a")
    assert not rig.cache.bind_steps.binding(rig.uid("a"), now=rig.now)
    assert not rig.cache.bind_steps.binding(PodUid("nobody"), now=rig.now)


@pytest.mark.parametrize(
    ("stage", "told"), [(Stage.PLANNED, []), (Stage.ASSUMED, [("a", "place was taken back")])]
)
def test_a_withdrawal_is_told_to_the_held_call_only(
    rig: Rig, stage: Stage, told: list[tuple[str, str]]
) -> None:
    rig.pod("a")
    rig.stage("a", stage)
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now)
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.lost() == told


def test_who_got_a_place_and_did_not_come_is_overdue(rig: Rig) -> None:
    for name in "ab":
        rig.pod(name)
    rig.stage("a", Stage.PLANNED)
    rig.stage("b", Stage.ASSUMED)
    assert (
        overdue(rig.cache.registry.reserved.values(), before=rig.now, prebind_before=rig.now) == []
    )
    [(late, uids)] = overdue(
        rig.cache.registry.reserved.values(), before=rig.now + 1, prebind_before=rig.now
    )
    assert (late.key, uids) == (KEY, ("uid-a",))


def test_a_pod_of_another_group_leaves_its_reservation_behind(rig: Rig) -> None:
    pod = rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    rig.cache.set_pod(replace(pod, annotations={GROUP_ANNOTATION: "h"}), now=rig.now)
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.lost() == [("a", "pod moved to another group")]
    assert KEY not in rig.cache.registry.reserved


# --- a resource that nobody knew ------------------------------------------------------------------


def test_a_new_resource_changes_no_reservation(rig: Rig) -> None:
    rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    gpu = PodShape(requests=make_amounts(cpu=1000, pods=1, **{"nvidia.com/gpu": 1}))
    rig.pod("b", shape=gpu)
    assert rig.used("n") == 1000
    assert not rig.place(b="n")
    rig.cache.set_node(make_node("n", cpu=2000, extra={"nvidia.com/gpu": 1}))
    assert rig.place(b="n")
    assert rig.used("n") == 2000
