"""enqueue: who comes in, in which order, and why others do not."""

from dataclasses import replace
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.gang import Counts
from app.model.ids import QueueName
from app.model.reason import Cause, Holder, Shortfall
from app.model.workload import GroupPhase, Queue, QueueState, Quota
from tests.builders import make_gang, make_queue, make_task
from tests.core.actions.rigs import HELM, amounts_of, cores, cycle, newcomer, policies, used, vector

ENQUEUE = ("enqueue",)


def test_a_group_that_says_nothing_of_resources_comes_in() -> None:
    outcome = cycle(newcomer("g", cpu=None), nodes=(), by=policies(HELM, ENQUEUE))
    assert outcome.admitted == ["g"]


@pytest.mark.parametrize("phase", [GroupPhase.INQUEUE, GroupPhase.RUNNING, GroupPhase.UNKNOWN])
def test_a_group_that_is_in_is_not_voted_on(phase: GroupPhase) -> None:
    group = newcomer("g", cpu=100)
    there = make_gang("g", min_member=1, phase=phase, min_request=group.min_request)
    outcome = cycle(there, nodes=cores(4), by=policies(HELM, ENQUEUE))
    assert outcome.admitted == []


@pytest.mark.parametrize(
    "state", [QueueState.CLOSED, QueueState.CLOSING, QueueState.UNKNOWN], ids=str
)
@pytest.mark.parametrize("cpu", [None, 1.0], ids=["without minResources", "with minResources"])
def test_a_queue_that_is_not_open_takes_nobody(state: QueueState, cpu: float | None) -> None:
    outcome = cycle(
        newcomer("g", cpu=cpu, queue="q"), nodes=cores(4), queues=[make_queue("q", state=state)]
    )
    assert outcome.admitted == []
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED
    assert outcome.text("g") == "queue q is not open"


def test_a_new_queue_that_nobody_has_opened_yet_takes_groups() -> None:
    queue = make_queue("q", state=QueueState.NEW)
    outcome = cycle(newcomer("g", cpu=1, queue="q"), nodes=cores(4), queues=[queue])
    assert outcome.admitted == ["g"]


def test_a_queue_on_its_way_out_takes_nobody() -> None:
    queue = make_queue("q", deleting=True)
    outcome = cycle(newcomer("g", cpu=1, queue="q"), nodes=cores(4), queues=[queue])
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED


def test_a_group_of_a_missing_queue_waits_for_it() -> None:
    outcome = cycle(newcomer("g", cpu=1, queue="nowhere"), nodes=cores(4))
    assert outcome.admitted == []
    assert outcome.refusal("g").cause is Cause.QUEUE_MISSING
    assert outcome.text("g") == "queue nowhere not found"


def test_a_group_that_is_cooling_down_is_left_out_until_its_time() -> None:
    group = newcomer("g", cpu=1, cool_down_until=10.0)
    assert cycle(group, nodes=cores(4), now=9.9).refusal("g").cause is Cause.COOLING_DOWN
    assert cycle(group, nodes=cores(4), now=10.0).admitted == ["g"]


def test_a_rejected_group_does_not_stop_the_next_one_of_its_queue() -> None:
    big, small = newcomer("big", cpu=100, priority=9), newcomer("small", cpu=1)
    outcome = cycle(big, small, nodes=cores(4), by=policies(HELM, ENQUEUE))
    assert outcome.admitted == ["small"]
    assert outcome.refused == {"big"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 5, "created": 9.0}, {"created": 1.0}),
        ({"created": 1.0}, {"created": 9.0}),
        ({"uid": "a"}, {"uid": "b"}),
    ],
    ids=["priority", "age", "uid"],
)
def test_of_two_claims_that_do_not_fit_together_the_first_in_order_comes_in(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    one, other = newcomer("one", cpu=3, **first), newcomer("other", cpu=3, **second)
    by = policies((("priority", "gang"), (PluginConf("overcommit"),)), ENQUEUE)
    for gangs in ((one, other), (other, one)):
        outcome = cycle(*gangs, nodes=cores(4), by=by)
        assert outcome.admitted == ["one"]
        assert outcome.refused == {"other"}


def test_the_refusal_of_an_overused_cluster_has_its_numbers() -> None:
    running = make_gang("old", phase=GroupPhase.RUNNING, allocated=vector(cpu=2))
    outcome = cycle(
        running,
        newcomer("g", cpu=4),
        nodes=cores(4),
        pending=(newcomer("g", cpu=4),),
        used=used(cores(4), n0=2),
        by=policies((("overcommit",),), ENQUEUE),
    )
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.CLUSTER_OVERUSED
    assert refusal.shortfalls == (
        Shortfall("cpu", asked=4000, free=2800, limit=4800, stretched_from=4000, idle=2000),
    )
    assert refusal.holders == (Holder("default/old", "cpu", 2000),)
    assert refusal.detail == "resource in cluster is overused: overused cpu"


def quota_queue(**fields: object) -> Queue:
    return make_queue("q", capability=amounts_of(cpu=4), **fields)


def test_claims_add_up_against_the_capability_of_the_queue() -> None:
    one, other = newcomer("one", cpu=3, queue="q"), newcomer("other", cpu=2, queue="q", created=1.0)
    by = policies((("gang",), ("proportion",)), ENQUEUE)
    outcome = cycle(one, other, nodes=cores(100), queues=[quota_queue()], by=by)
    assert outcome.admitted == ["one"]
    refusal = outcome.refusal("other")
    assert refusal.cause is Cause.QUEUE_QUOTA
    assert refusal.where == "q"
    assert refusal.shortfalls == (Shortfall("cpu", asked=2000, free=1000, limit=4000),)
    assert refusal.holders == (Holder("default/one", "cpu", 3000),)
    assert refusal.detail == "queue resource quota insufficient: insufficient cpu"
    assert outcome.text("other") == (
        "queue q: cpu asked 2, free 1 of 4; held by default/one (cpu 3)"
    )


def test_groups_and_guarantees_of_others_hold_the_room_together() -> None:
    one, other = newcomer("one", cpu=3, queue="q"), newcomer("other", cpu=2, queue="q", created=1.0)
    by = policies((("gang",), ("proportion",)), ENQUEUE)
    sure = make_queue("sure", guarantee=amounts_of(cpu=4))
    outcome = cycle(one, other, nodes=cores(8), queues=[make_queue("q"), sure], by=by)
    assert outcome.refusal("other").cause is Cause.QUEUE_ROOM
    assert outcome.text("other") == (
        "queue q: cpu asked 2, free 1 of 4; "
        "held by guarantee of queue sure (cpu 4), default/one (cpu 3)"
    )


def test_members_held_by_foreign_gates_claim_nothing() -> None:
    held = newcomer("held", cpu=3, queue="q", gated_request=vector(cpu=3))
    other = newcomer("other", cpu=4, queue="q", created=1.0)
    by = policies((("gang",), ("proportion",)), ENQUEUE)
    outcome = cycle(held, other, nodes=cores(100), queues=[quota_queue()], by=by)
    assert outcome.admitted == ["held", "other"]


def test_the_queue_of_higher_priority_is_asked_first() -> None:
    queues = (make_queue("low"), make_queue("high", priority=1, created=5.0))
    low, high = newcomer("low", cpu=3, queue="low"), newcomer("high", cpu=3, queue="high")
    by = policies((("overcommit", "proportion"),), ENQUEUE)
    outcome = cycle(low, high, nodes=cores(4), queues=queues, by=by)
    assert outcome.admitted == ["high"]


def test_queues_without_plugins_are_asked_by_age_then_name() -> None:
    queues = (make_queue("b"), make_queue("c"), make_queue("a", created=1.0))
    gangs = tuple(newcomer(f"g{q}", cpu=1, queue=q) for q in "abc")
    outcome = cycle(*gangs, nodes=cores(100), queues=queues, by=policies((), ENQUEUE))
    assert outcome.admitted == ["gb", "gc", "ga"]


def test_a_group_that_has_waited_long_enough_comes_in_whatever_is_free() -> None:
    late = newcomer(
        "late", cpu=100, annotations={"volcano.sh/sla-waiting-time": "10s"}, created=0.0
    )
    by = policies((("sla",), ("overcommit",)), ENQUEUE)
    assert cycle(late, nodes=cores(4), by=by, now=9.0).admitted == []
    assert cycle(late, nodes=cores(4), by=by, now=11.0).admitted == ["late"]


def test_a_resource_quota_of_the_namespace_is_kept() -> None:
    quota = Quota(
        namespace="default",
        name="compute",
        hard=(("requests.cpu", 4000),),
        used=(("requests.cpu", 1000),),
    )
    one, other = newcomer("one", cpu=2), newcomer("other", cpu=2, created=1.0)
    by = policies((("resourcequota",),), ENQUEUE)
    outcome = cycle(one, other, nodes=cores(100), quotas=(quota,), by=by)
    assert outcome.admitted == ["one"]
    assert outcome.refusal("other").cause is Cause.NAMESPACE_QUOTA


def pods_quota(hard: int, *, used: int = 0, name: str = "pods") -> Quota:
    return Quota(namespace="default", name="pods", hard=((name, hard),), used=((name, used),))


CORES = Quota(namespace="default", name="cpu", hard=(("cpu", 4000),), used=(("cpu", 2000),))
BY_QUOTA = policies((("resourcequota",),), ENQUEUE)


@pytest.mark.parametrize("name", ["pods", "count/pods"])
def test_a_resource_quota_counts_the_pods_that_a_group_needs(name: str) -> None:
    gang = newcomer("g", cpu=1, min_member=3)
    tight, wide = pods_quota(4, used=2, name=name), pods_quota(5, used=2, name=name)
    outcome = cycle(gang, nodes=cores(100), quotas=(tight,), by=BY_QUOTA)
    assert outcome.refusal("g").shortfalls == (Shortfall(name, asked=3, free=2, limit=4),)
    assert cycle(gang, nodes=cores(100), quotas=(wide,), by=BY_QUOTA).admitted == ["g"]


def test_pods_that_a_quota_counts_are_not_asked_for_again() -> None:
    """Those of an operator are there before their PodGroup is let in."""
    there = make_gang(
        "there",
        waiting=(make_task("a"), make_task("b")),
        phase=GroupPhase.PENDING,
        min_request=vector(cpu=2),
    )
    full = (CORES, pods_quota(2, used=2))
    assert cycle(there, nodes=cores(100), quotas=full, by=BY_QUOTA).admitted == ["there"]
    more = replace(there, min_member=3, min_request=vector(cpu=5))
    outcome = cycle(more, nodes=cores(100), quotas=full, by=BY_QUOTA)
    assert outcome.refusal("there").shortfalls == (
        Shortfall("cpu", asked=3000, free=2000, limit=4000),
    )


def test_a_group_asks_a_quota_for_nothing_once_all_its_members_exist() -> None:
    """Whatever its minResources say."""
    pods = (make_task("a"), make_task("b"))
    there = make_gang("g", waiting=pods, phase=GroupPhase.PENDING, min_request=vector(cpu=9))
    full = pods_quota(2, used=2)
    assert cycle(there, nodes=cores(100), quotas=(CORES, full), by=BY_QUOTA).admitted == ["g"]


def test_a_quota_that_is_exceeded_already_keeps_out_who_asks_for_that_only() -> None:
    over = Quota(namespace="default", name="m", hard=(("memory", 1),), used=(("memory", 2),))
    unsaid = make_gang("unsaid", min_member=1)
    outcome = cycle(unsaid, newcomer("g", cpu=1), nodes=cores(100), quotas=(over,), by=BY_QUOTA)
    assert outcome.admitted == ["g"]


@pytest.mark.parametrize("slots", [0, 2])
def test_groups_of_earlier_cycles_keep_their_part_of_a_quota(slots: int) -> None:
    """Until their pods exist, and whether or not they have their places."""
    wide = Quota(namespace="default", name="cpu", hard=(("cpu", 6000),), used=(("cpu", 2000),))
    before = make_gang(
        "before",
        min_member=2,
        min_request=vector(cpu=2),
        allocated=vector(cpu=slots),
        kept=vector(cpu=slots),
        counts=Counts(slots=slots),
    )
    late = newcomer("late", cpu=3, created=1.0)
    outcome = cycle(before, late, nodes=cores(100), quotas=(wide,), by=BY_QUOTA)
    assert outcome.admitted == []
    assert outcome.refusal("late").shortfalls == (Shortfall("cpu", 3000, free=2000, limit=6000),)


def test_pods_that_the_status_does_not_show_yet_are_taken_for_counted() -> None:
    pods = tuple(make_task(name) for name in "abc")
    before = make_gang("before", waiting=pods, min_request=vector(cpu=3))
    late = newcomer("late", cpu=2, created=1.0)
    outcome = cycle(before, late, nodes=cores(100), quotas=(CORES,), by=BY_QUOTA)
    assert outcome.refusal("late").shortfalls == (Shortfall("cpu", 2000, free=1000, limit=4000),)


def test_pods_of_earlier_groups_are_not_counted_twice() -> None:
    pods = (make_task("a"), make_task("b"))
    before = make_gang("before", waiting=pods, min_request=vector(cpu=2))
    late = newcomer("late", cpu=2, created=1.0)
    outcome = cycle(before, late, nodes=cores(100), quotas=(CORES,), by=BY_QUOTA)
    assert outcome.admitted == ["late"]


def test_a_queue_with_children_takes_no_groups() -> None:
    tree = PluginConf("capacity", switches={"enableHierarchy": True})
    queues = (make_queue("top"), make_queue("leaf", parent=QueueName("top")))
    above, below = newcomer("above", cpu=1, queue="top"), newcomer("below", cpu=1, queue="leaf")
    by = policies(((tree,),), ENQUEUE)
    assert cycle(below, nodes=cores(4), queues=queues, by=by).admitted == ["below"]
    outcome = cycle(above, below, nodes=cores(4), queues=queues, by=by)
    assert outcome.admitted == []
    assert outcome.refusal("below").cause is Cause.QUEUE_BROKEN
