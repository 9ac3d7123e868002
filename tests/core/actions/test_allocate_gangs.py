"""allocate: gangs get their minimum whole or not at all, in their order."""

from dataclasses import replace
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.gang import Counts, Gang
from app.model.ids import GroupKey, QueueName
from app.model.reason import Cause, Holder, NodeCount, Shortfall
from app.model.workload import GroupPhase, QueueState
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import (
    HELM,
    amounts_of,
    cores,
    counts_of,
    cycle,
    gang_of,
    members,
    newcomer,
    policies,
    used,
    vector,
)


def test_a_gang_is_placed_whole() -> None:
    outcome = cycle(gang_of("g", 4), nodes=cores(3, 2))
    (decided,) = outcome.decisions("g")
    assert decided.whole
    assert sorted(outcome.nodes("g").values()) == ["n0", "n0", "n0", "n1"]
    assert outcome.refused == set()


def test_a_gang_without_room_for_all_of_it_holds_nothing() -> None:
    outcome = cycle(gang_of("g", 4), nodes=cores(3))
    assert outcome.order == []
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    assert refusal.where == "default/g"
    assert refusal.shortfalls == (Shortfall("cpu", asked=4000, free=3000, limit=3000),)
    assert refusal.lacking == 1
    assert outcome.text("g").startswith("group default/g: cpu asked 4, free 3 of 3")


def test_of_two_gangs_that_each_need_more_than_half_one_runs_whole_and_one_waits_whole() -> None:
    one, other = gang_of("one", 6), gang_of("other", 6, created=1.0)
    for gangs in ((one, other), (other, one)):
        outcome = cycle(*gangs, nodes=cores(5, 5))
        assert outcome.order == ["one"]
        assert len(outcome.nodes("one")) == 6
        assert outcome.refused == {"other"}


def test_a_gang_that_does_not_fit_leaves_its_room_to_the_next() -> None:
    big, small = gang_of("big", 6, priority=5), gang_of("small", 4)
    outcome = cycle(big, small, nodes=cores(5))
    assert outcome.order == ["small"]
    assert outcome.refused == {"big"}


def test_what_others_hold_is_told() -> None:
    running = make_gang(
        "old", phase=GroupPhase.RUNNING, allocated=vector(cpu=3), min_member=1, created=-1.0
    )
    waiting = gang_of("g", 2)
    nodes = cores(4)
    outcome = cycle(running, waiting, nodes=nodes, pending=(waiting,), used=used(nodes, n0=3))
    assert outcome.refusal("g").holders == (Holder("default/old", "cpu", 3000),)
    assert outcome.text("g") == (
        "group default/g: cpu asked 2, free 1 of 4; "
        "0/1 nodes are available: 1 Insufficient cpu; held by default/old (cpu 3)"
    )


def test_room_that_is_there_in_sum_but_not_where_it_is_needed_is_told_per_node() -> None:
    outcome = cycle(gang_of("g", 1, cpu=3), nodes=cores(2, 2))
    refusal = outcome.refusal("g")
    assert refusal.shortfalls == (Shortfall("cpu", asked=3000, free=2000, limit=2000),)
    assert refusal.nodes == (NodeCount("Insufficient cpu", 2),)
    assert refusal.total_nodes == 2


def test_room_in_pods_is_room_too() -> None:
    outcome = cycle(gang_of("g", 3), nodes=cores(10, pods=2))
    assert outcome.order == []
    assert outcome.text("g").startswith(
        "group default/g: pods asked 3, free 2 of 2; "
        "0/1 nodes are available: 1 node(s) pod number exceeded"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"partial": True}, {"priority": 100}),
        ({"priority": 5, "created": 9.0}, {"created": 1.0}),
        ({"created": 1.0}, {"created": 9.0}),
        ({"uid": "a"}, {"uid": "b"}),
    ],
    ids=["broken off by a crash", "priority", "age", "uid"],
)
def test_gangs_of_a_queue_go_in_their_order(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = gang_of("one", 3, **first), gang_of("other", 3, **second)
    assert cycle(other, one, nodes=cores(4)).order == ["one"]


def test_gangs_that_have_their_minimum_come_after_those_that_do_not() -> None:
    waiting = members("has", 1)
    has = make_gang(
        "has",
        waiting=waiting,
        min_member=1,
        counts=replace(counts_of(waiting), running=1),
        phase=GroupPhase.RUNNING,
    )
    lacks = gang_of("lacks", 1, created=5.0)
    assert cycle(has, lacks, nodes=cores(1)).order == ["lacks"]


def test_with_drf_the_gang_that_holds_less_goes_first() -> None:
    def running(name: str, cpu: int) -> Gang:
        waiting = members(name, 1)
        return make_gang(
            name,
            waiting=waiting,
            min_member=0,
            allocated=vector(cpu=cpu),
            phase=GroupPhase.RUNNING,
        )

    nodes = cores(10)
    outcome = cycle(
        running("much", 5),
        running("some", 3),
        nodes=nodes,
        used=used(nodes, n0=8),
        by=policies((("drf",),)),
    )
    assert outcome.order == ["some", "much"]


def test_queues_take_turns_by_what_they_hold_of_their_share() -> None:
    queues = (make_queue("a", weight=3), make_queue("b"))
    gangs = tuple(
        gang_of(f"{q}{i}", 1, queue=QueueName(q), created=float(i)) for q in "ab" for i in range(4)
    )
    by = policies((("gang",), ("proportion",)))
    outcome = cycle(*gangs, nodes=cores(4), queues=queues, by=by)
    assert outcome.order == ["a0", "b0", "a1", "a2"]


def test_a_queue_that_holds_all_it_deserves_gets_no_more() -> None:
    queues = (make_queue("a"), make_queue("b"))
    gangs = tuple(
        gang_of(f"{q}{i}", 2, queue=QueueName(q), created=float(i)) for q in "ab" for i in range(3)
    )
    by = policies((("gang",), ("proportion",)))
    outcome = cycle(*gangs, nodes=cores(4, 4), queues=queues, by=by)
    assert sorted(outcome.order) == ["a0", "a1", "b0", "b1"]
    refusal = outcome.refusal("a2")
    assert refusal.cause is Cause.QUEUE_OVERUSED
    assert refusal.where == "a"
    assert refusal.holders == ()
    assert outcome.text("a2") == "share of queue a: cpu asked 2, free 0 of 4"


@pytest.mark.parametrize("held", [0, 2], ids=["in its turn", "from the start"])
def test_a_queue_without_anything_left_of_its_share_has_no_turns(held: int) -> None:
    queues = (make_queue("a"), make_queue("b"))
    a, b = QueueName("a"), QueueName("b")
    has = make_gang("has", queue=a, phase=GroupPhase.RUNNING, allocated=vector(cpu=held, pods=held))
    more = tuple(gang_of(f"a{i}", 2 - held // 2, queue=a, created=float(i)) for i in range(3))
    nodes = cores(4, pods=4)
    outcome = cycle(
        has,
        *more,
        gang_of("b0", 2, queue=b),
        nodes=nodes,
        queues=queues,
        used=used(nodes, n0=held),
        pending=(*more, gang_of("b0", 2, queue=b)),
        by=policies((("gang",), ("proportion",))),
    )
    assert outcome.order == (["b0"] if held else ["a0", "b0"])
    last = outcome.refusal("a2")
    assert last.cause is Cause.QUEUE_OVERUSED
    assert outcome.text("a2").startswith("share of queue a: cpu asked ")


def test_a_gate_of_others_is_told_whatever_is_left_of_the_queues_share() -> None:
    queue = QueueName("q")
    has = make_gang("has", queue=queue, phase=GroupPhase.RUNNING, allocated=vector(cpu=4, pods=4))
    waiting = members("g", 2, role="a")
    gated = make_gang(
        "g",
        queue=queue,
        waiting=waiting,
        min_member=2,
        counts=Counts(pending=3, gated=1),
        role_minimum={"a": 1, "b": 1},
        role_valid={"a": 2, "b": 1},
    )
    nodes = cores(4, pods=4)
    outcome = cycle(
        has,
        gated,
        nodes=nodes,
        queues=[make_queue("q")],
        used=used(nodes, n0=4),
        pending=(gated,),
        by=policies((("gang",), ("proportion",))),
    )
    assert outcome.refusal("g").cause is Cause.GATED


def test_a_gang_that_its_queue_cannot_take_whole_holds_nothing() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=3))
    small = gang_of("small", 2, queue=QueueName("q"), created=1.0)
    big = gang_of("big", 4, queue=QueueName("q"))
    by = policies((("gang",), ("capacity",)))
    outcome = cycle(big, small, nodes=cores(10), queues=[queue], by=by)
    assert outcome.order == ["small"]
    refusal = outcome.refusal("big")
    assert refusal.cause is Cause.QUEUE_QUOTA
    assert refusal.shortfalls == (Shortfall("cpu", asked=4000, free=3000, limit=3000),)


@pytest.mark.parametrize("state", [QueueState.CLOSED, QueueState.CLOSING], ids=str)
def test_a_queue_that_closed_since_takes_no_members(state: QueueState) -> None:
    gang = gang_of("g", 1, queue=QueueName("q"))
    outcome = cycle(gang, nodes=cores(4), queues=[make_queue("q", state=state)])
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED


def test_a_queue_that_is_gone_takes_no_members() -> None:
    outcome = cycle(gang_of("g", 1, queue=QueueName("nowhere")), nodes=cores(4))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.QUEUE_MISSING


def test_a_gang_whose_reservation_was_not_used_waits_a_while() -> None:
    gang = gang_of("g", 1, cool_down_until=10.0)
    assert cycle(gang, nodes=cores(4), now=9.9).refusal("g").cause is Cause.COOLING_DOWN
    assert cycle(gang, nodes=cores(4), now=10.0).order == ["g"]


def torn(name: str, **fields: Any) -> Gang:
    """One of two members is bound, as a crash in the middle of binding leaves it."""
    rest = gang_of(name, 1, partial=True, min_member=2, **fields)
    return replace(rest, counts=replace(rest.counts, bound=1))


def test_the_rest_of_a_gang_that_is_bound_in_part_does_not_wait() -> None:
    gang = torn("g", cool_down_until=10.0)
    other = gang_of("other", 1, priority=9)
    assert cycle(gang, other, nodes=cores(1)).order == ["g"]


def test_the_rest_of_a_gang_that_is_bound_in_part_is_not_put_to_the_vote_again() -> None:
    gang = torn("g", phase=GroupPhase.PENDING, min_request=vector(cpu=100))
    outcome = cycle(gang, nodes=cores(4), by=policies(HELM))
    assert outcome.admitted == outcome.order == ["g"]


def test_the_rest_of_a_gang_that_is_bound_in_part_goes_before_all_queues() -> None:
    queues = [make_queue("first"), make_queue("second")]
    other = gang_of("other", 1, priority=9, queue=QueueName("first"))
    outcome = cycle(other, torn("g", queue=QueueName("second")), nodes=cores(1), queues=queues)
    assert outcome.order == ["g"]
    assert outcome.refused == {"other"}


def test_gangs_that_are_bound_in_part_keep_their_order() -> None:
    low, high = torn("low", created=-1.0), torn("high", priority=9)
    assert cycle(low, high, nodes=cores(1)).order == ["high"]


@pytest.mark.parametrize("queue", ["first", "second"])
def test_a_gang_that_was_bound_in_part_takes_turns_for_what_is_beyond_its_minimum(
    queue: str,
) -> None:
    queues = [make_queue("first"), make_queue("second")]
    gang = replace(torn("g", queue=QueueName("second")), waiting=members("g", 3))
    other = gang_of("other", 2, queue=QueueName(queue))
    outcome = cycle(other, gang, nodes=cores(3), queues=queues)
    assert outcome.order == ["g", "other"]
    assert len(outcome.nodes("g")) == 1


def test_a_gang_takes_turns_from_the_moment_when_the_rest_of_its_minimum_has_a_place() -> None:
    waiting = members("g", 2)
    counts = replace(counts_of(waiting), bound=1, placed=1)
    gang = replace(torn("g"), waiting=waiting, counts=counts)
    assert cycle(gang_of("other", 2, created=5.0), gang, nodes=cores(2)).order == ["other"]


def test_a_group_that_comes_in_is_placed_in_the_same_cycle() -> None:
    gang = gang_of("g", 2, phase=GroupPhase.PENDING, min_request=vector(cpu=2))
    outcome = cycle(gang, nodes=cores(4), by=policies(HELM))
    assert outcome.admitted == ["g"]
    assert outcome.order == ["g"]


def test_a_group_that_is_not_in_is_not_placed() -> None:
    gang = gang_of("g", 2, phase=GroupPhase.PENDING, min_request=vector(cpu=100))
    outcome = cycle(gang, nodes=cores(4), by=policies(HELM))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.CLUSTER_OVERUSED


def test_without_enqueue_everybody_is_in() -> None:
    gang = gang_of("g", 2, phase=GroupPhase.PENDING, min_request=vector(cpu=2))
    outcome = cycle(gang, nodes=cores(4), by=policies(actions=("allocate",)))
    assert outcome.admitted == ["g"]
    assert outcome.order == ["g"]


def test_without_enqueue_a_closed_queue_is_closed_still() -> None:
    gang = newcomer("g", cpu=1, queue="q")
    queue = make_queue("q", state=QueueState.CLOSED)
    outcome = cycle(gang, nodes=cores(4), queues=[queue], by=policies(actions=("allocate",)))
    assert outcome.admitted == []
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED


def test_without_allocate_nobody_is_placed_and_all_are_told() -> None:
    gang = gang_of("g", 2)
    outcome = cycle(gang, nodes=cores(4), by=policies(actions=("enqueue",)))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.NOT_ADMITTED
    assert "no action of this cycle places these members" in outcome.text("g")


def test_actions_that_are_not_ours_are_passed_over() -> None:
    by = policies(actions=("enqueue", "allocate", "preempt", "reclaim", "backfill"))
    assert cycle(gang_of("g", 1), nodes=cores(4), by=by).order == ["g"]


def test_only_the_members_that_are_lacking_are_needed() -> None:
    waiting = members("g", 1)
    gang = make_gang(
        "g",
        waiting=waiting,
        min_member=3,
        counts=replace(counts_of(waiting), bound=2),
        partial=True,
    )
    outcome = cycle(gang, nodes=cores(1))
    assert outcome.members("g") == ["g-0"]
    assert outcome.decisions("g")[0].whole


def test_a_cluster_without_nodes_has_room_for_nobody() -> None:
    outcome = cycle(gang_of("g", 1), nodes=())
    assert outcome.order == []
    assert outcome.refusal("g").cause in (Cause.NOT_ENOUGH_RESOURCES, Cause.NO_NODE_FITS)


def test_a_closed_tree_of_queues_is_told_to_all() -> None:
    tree = PluginConf("capacity", switches={"enableHierarchy": True})
    queues = (make_queue("q", parent=QueueName("missing")),)
    outcome = cycle(gang_of("g", 1), nodes=cores(4), queues=queues, by=policies(((tree,),)))
    assert outcome.order == []
    assert outcome.text("g") == "queue q names missing as its parent, which does not exist"


def test_a_gang_is_not_told_that_it_is_in_its_own_way() -> None:
    gang = replace(gang_of("g", 4), min_request=vector(cpu=4))
    assert cycle(gang, nodes=cores(3)).refusal("g").holders == ()


def test_nor_is_a_single_pod_that_is_called_by_its_name() -> None:
    alone = replace(gang_of("p", 1, cpu=4), key=GroupKey("default/pod:uid-p"), solo=True)
    outcome = cycle(replace(alone, min_request=vector(cpu=4)), nodes=cores(3))
    assert outcome.plan.refused[alone.key].holders == ()
