"""Which groups a plan sets aside: those that no end of other pods helps."""

from dataclasses import replace

import pytest

from app.core.sums import part_of, with_part
from app.model.reason import Cause, Never
from app.model.snapshot import QueueUsage
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_gang, make_queue
from tests.core.actions.rigs import (
    HELM,
    cores,
    cycle,
    gang_of,
    members,
    policies,
    sized,
    used,
    vector,
)

PROPORTION = policies((("proportion",),), ("enqueue", "allocate"))
HELMED = policies(HELM)
CAPACITY = policies((("capacity",),), ("enqueue", "allocate"))


@pytest.mark.parametrize(("cpu", "aside"), [(4, False), (5, True)])
def test_a_gang_that_fits_no_node_is_set_aside_one_that_waits_is_not(cpu: int, aside: bool) -> None:
    nodes = cores(4, 4)
    outcome = cycle(gang_of("g", 1, cpu=cpu), nodes=nodes, used=used(nodes, n0=1, n1=1))
    assert ("default/g" in outcome.plan.set_aside) is aside


def test_a_gang_larger_than_the_cluster_is_set_aside() -> None:
    assert cycle(gang_of("g", 9), nodes=cores(4, 4)).plan.set_aside == {"default/g"}


def test_a_gang_that_can_do_without_the_member_that_fits_no_node_is_not() -> None:
    """Its other members may get places when there is room."""
    nodes = cores(4)
    able, unable = members("g", 2), members("h", 1, cpu=9)
    full = used(nodes, n0=3)
    for least, aside in ((2, False), (3, True)):
        gang = make_gang("g", waiting=(*unable, *able), min_member=least)
        assert bool(cycle(gang, nodes=nodes, used=full).plan.set_aside) is aside


def test_the_first_member_that_fits_no_node_is_told_of_whatever_their_order() -> None:
    queue = make_queue("default", capability=make_amounts(cpu=4000))
    four = vector(cpu=4, pods=4)
    has = make_gang("has", phase=GroupPhase.RUNNING, allocated=four, min_request=four)
    unable = members("a", 1, cpu=9, role="a") + members("b", 1, cpu=8, role="b")
    for waiting in (unable, unable[::-1]):
        gang = make_gang(
            "g", waiting=waiting, phase=GroupPhase.PENDING, min_request=vector(cpu=1, pods=2)
        )
        nodes = cores(4, 4)
        outcome = cycle(
            has, gang, nodes=nodes, queues=(queue,), used=used(nodes, n0=4), by=CAPACITY
        )
        refusal = outcome.refusal("g")
        assert refusal.never is Never.NODES
        assert [lack.asked for lack in refusal.shortfalls] == [9000]


def test_a_group_is_not_set_aside_by_the_size_of_members_that_do_not_exist() -> None:
    """What a driver and its executors ask for is more than a node has; the driver alone is not."""
    driver = make_gang("spark", min_member=1, min_request=vector(cpu=6))
    outcome = cycle(driver, nodes=cores(4, 4))
    assert outcome.text("spark") == "group default/spark: pods asked 1, present 0"
    assert not outcome.plan.set_aside


def test_what_such_a_group_claims_is_kept_from_others() -> None:
    """Else both drivers would run, and find no room for their executors."""
    first, second = (
        make_gang(
            name,
            min_member=1,
            min_request=vector(cpu=6),
            created=at,
            phase=GroupPhase.PENDING,
        )
        for at, name in enumerate(("first", "second"))
    )
    outcome = cycle(first, second, nodes=cores(4, 4), by=PROPORTION)
    assert outcome.plan.admitted == ("default/first",)


@pytest.mark.parametrize("pods_of", ["first", "second"])
def test_what_such_a_group_claims_is_kept_from_others_whose_pods_come_before_its_own(
    pods_of: str,
) -> None:
    """Whichever is looked at first in the cycle in which the claim begins to count."""
    first, second = (
        make_gang(
            name,
            min_member=1,
            min_request=vector(cpu=6),
            created=at,
            phase=GroupPhase.INQUEUE if name != pods_of else GroupPhase.PENDING,
            waiting=members(name, 1, cpu=2) if name == pods_of else (),
        )
        for at, name in enumerate(("first", "second"))
    )
    usage: dict[str, QueueUsage] = {}
    for gang in (first, second):
        usage["default"] = usage["root"] = with_part(usage.get("default"), part_of(gang)[1])
    outcome = cycle(first, second, nodes=cores(4, 4), by=HELMED, usage=usage)
    assert not outcome.plan.placed
    assert outcome.refusal(pods_of).cause is Cause.CLUSTER_OVERUSED
    assert len(outcome.plan.unplaced_claims) == 1


def test_such_a_claim_is_kept_from_others_no_more_than_room_is() -> None:
    """What is not free now keeps no group out that could run."""
    left = make_gang("left", min_member=1, min_request=vector(cpu=6), phase=GroupPhase.INQUEUE)
    small = gang_of("small", 1, phase=GroupPhase.PENDING, min_request=vector(cpu=1))
    nodes = cores(4, 4)
    outcome = cycle(left, small, nodes=nodes, used=used(nodes, n0=3), by=HELMED)
    assert outcome.order == ["small"]
    assert not outcome.plan.unplaced_claims


def test_a_group_that_asks_for_more_than_its_queue_may_hold_is_set_aside() -> None:
    small = make_queue("default", capability=make_amounts(cpu=2000))
    gang = gang_of("g", 3)
    outcome = cycle(gang, nodes=cores(4), queues=(small,), by=CAPACITY)
    assert outcome.refusal("g").never is Never.QUEUE
    assert outcome.plan.set_aside == {"default/g"}


def test_a_gang_is_not_set_aside_for_a_guess_at_members_that_nobody_has_created() -> None:
    """Of the 4 cores that its queue may hold it asks for 3; two of `a` and one of `b` were 5."""
    small = make_queue("default", capability=make_amounts(cpu=4000))
    shapes = {"a": sized(1), "b": sized(3)}
    gang = make_gang("g", min_member=3, min_request=vector(cpu=3, pods=3), role_shapes=shapes)
    outcome = cycle(gang, nodes=cores(8), queues=(small,), by=CAPACITY)
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA
    assert not outcome.plan.set_aside


@pytest.mark.parametrize(("replicas", "aside"), [(2, True), (3, False)])
def test_nor_for_members_in_whose_stead_its_owner_will_make_others(
    replicas: int, aside: bool
) -> None:
    gang = make_gang(
        "g",
        min_member=3,
        phase=GroupPhase.PENDING,
        min_request=vector(cpu=11, pods=3),
        role_shapes={"a": sized(9), "b": sized(1)},
        role_replicas={"a": 1, "b": replicas},
    )
    assert bool(cycle(gang, nodes=cores(4, 4, 4)).plan.set_aside) is aside


def test_gangs_bound_in_part_and_those_that_wait_for_an_autoscaler_are_not() -> None:
    torn = replace(gang_of("torn", 1, cpu=5), partial=True)
    shown = replace(gang_of("shown", 1, cpu=5), waits_for_nodes=True)
    assert not cycle(torn, shown, nodes=cores(4)).plan.set_aside
