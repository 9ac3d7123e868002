"""*Never* or *not yet*: what no end of other pods changes is said as such."""

from __future__ import annotations

import pytest

from app.model.gang import Counts
from app.model.ids import QueueName
from app.model.node import Node, Taint
from app.model.reason import Cause, Never
from app.model.workload import GroupPhase
from tests.builders import AXIS, make_gang, make_node, make_queue, make_task
from tests.core.actions.rigs import (
    amounts_of,
    cores,
    cycle,
    gang_of,
    members,
    newcomer,
    policies,
    sized,
    used,
    vector,
)

ENQUEUE = ("enqueue",)
PROPORTION = policies((("proportion",),), ENQUEUE)
OVERCOMMIT = policies((("overcommit",),), ENQUEUE)


def test_a_gang_that_would_fit_the_empty_cluster_waits() -> None:
    nodes = cores(4, 4)
    refusal = cycle(gang_of("g", 8), nodes=nodes, used=used(nodes, n0=1)).refusal("g")
    assert (refusal.cause, refusal.never) == (Cause.NOT_ENOUGH_RESOURCES, None)


def test_a_gang_larger_than_the_cluster_never_runs() -> None:
    nodes = cores(4, 4)
    outcome = cycle(gang_of("g", 9), nodes=nodes, used=used(nodes, n0=1))
    assert outcome.refusal("g").never is Never.CLUSTER
    assert outcome.text("g").endswith("; never: more than the whole cluster has")


def test_what_a_part_of_the_gang_holds_belongs_to_what_it_asks() -> None:
    held = make_gang(
        "g",
        waiting=members("g", 4),
        allocated=vector(cpu=2),
        min_member=6,
        counts=Counts(pending=4, running=2),
    )
    nodes = cores(5)
    assert cycle(held, nodes=nodes, used=used(nodes, n0=2)).refusal("g").never is Never.CLUSTER


@pytest.mark.parametrize(
    ("least", "never"), [(8, None), (10, Never.CLUSTER), (None, Never.CLUSTER)]
)
def test_what_is_guessed_of_a_member_that_does_not_exist_never_makes_it_never(
    least: int | None, never: Never | None
) -> None:
    """Two members of 4 and 3 cores are there: a third like them is too much, one of 1 is not."""
    known = members("big", 1, cpu=4, role="worker") + members("small", 1, cpu=3, role="worker")
    gang = make_gang(
        "g",
        waiting=known,
        min_member=3,
        counts=Counts(pending=2),
        min_request=None if least is None else vector(cpu=least),
        role_shapes={"worker": known[0].shape},
    )
    assert cycle(gang, nodes=cores(4, 4)).refusal("g").never is never


@pytest.mark.parametrize(("cpu", "never"), [(4, None), (5, Never.NODES)])
def test_a_pod_larger_than_any_node_never_runs(cpu: int, never: Never | None) -> None:
    nodes = cores(4, 4, 4)
    outcome = cycle(gang_of("g", 1, cpu=cpu), nodes=nodes, used=used(nodes, n0=1, n1=1, n2=1))
    assert outcome.refusal("g").never is never
    if never:
        assert outcome.text("g").startswith("group default/g: cpu asked 5, free 3 of 4; ")


def test_a_node_that_is_away_or_cordoned_may_come_back() -> None:
    nodes = (
        make_node("n0", cpu=1000),
        make_node("n1", cpu=8000, ready=False),
        make_node("n2", cpu=8000, unschedulable=True),
    )
    for gang in (gang_of("g", 1, cpu=8), gang_of("g", 16)):
        assert cycle(gang, nodes=nodes).refusal("g").never is None
    assert cycle(gang_of("g", 18), nodes=nodes).refusal("g").never is Never.CLUSTER


@pytest.mark.parametrize(
    ("key", "never"),
    [("dedicated", Never.RULED_OUT), ("node.kubernetes.io/memory-pressure", None)],
)
def test_a_taint_of_a_nodes_state_goes_by_itself(key: str, never: Never | None) -> None:
    nodes = (make_node("n0", taints=(Taint(key, "", "NoSchedule"),)),)
    assert cycle(gang_of("g", 1), nodes=nodes).refusal("g").never is never


def test_a_selector_that_no_node_has_rules_out_every_node() -> None:
    task = make_task("g-0", shape=sized(1, node_selector=(("zone", "x"),)))
    outcome = cycle(make_gang("g", waiting=(task,)), nodes=cores(4))
    assert outcome.refusal("g").never is Never.RULED_OUT
    assert outcome.text("g").endswith("; never: selector, affinity or taints rule out every node")


@pytest.mark.parametrize(("cpu", "never"), [(3, None), (5, Never.QUEUE)])
def test_a_group_larger_than_its_queues_capability_never_runs(
    cpu: int, never: Never | None
) -> None:
    queue = make_queue("q", capability=amounts_of(cpu=4))
    two = vector(cpu=2)
    holds = make_gang(
        "old", queue="q", allocated=two, min_request=two, min_member=1, counts=Counts(running=1)
    )
    outcome = cycle(
        holds,
        newcomer("g", cpu=cpu, queue="q"),
        pending=(newcomer("g", cpu=cpu, queue="q"),),
        nodes=cores(10),
        queues=(queue,),
        by=PROPORTION,
    )
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA
    assert outcome.refusal("g").never is never
    assert bool(outcome.refusal("g").holders) is not bool(never)


def test_members_that_exist_are_compared_with_the_capability_as_one_gang() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=4))
    outcome = cycle(
        gang_of("g", 5, queue="q"),
        nodes=cores(10),
        queues=(queue,),
        by=policies((("proportion",),)),
    )
    assert outcome.text("g") == (
        "queue q: cpu asked 5, free 4 of 4; never: more than the queue may hold"
    )


def test_what_is_guaranteed_to_others_is_never_left() -> None:
    other = make_queue("other", guarantee=amounts_of(cpu=6))
    refusal = cycle(newcomer("g", cpu=5), nodes=cores(10), queues=(other,), by=PROPORTION).refusal(
        "g"
    )
    assert refusal.never is Never.GUARANTEES
    assert [holder.who for holder in refusal.holders] == ["guarantee of queue other"]


@pytest.mark.parametrize(
    ("nodes", "never"), [(cores(4), Never.ABSENT), ((), Never.CLUSTER)], ids=["nodes", "no node"]
)
def test_a_resource_that_no_node_has_is_absent(nodes: tuple[Node, ...], never: Never) -> None:
    axis = AXIS.covering(("example.com/gpu",))
    asked = axis.vector((("example.com/gpu", 1),))
    gang = make_gang("g", axis=axis, min_member=1, min_request=asked, phase=GroupPhase.NEW)
    outcome = cycle(gang, nodes=nodes, axis=axis, by=PROPORTION)
    assert "asked 1, free 0 of 0" in outcome.text("g")
    assert outcome.refusal("g").never is never


def test_numbers_stretched_by_overcommit_say_so_and_are_not_the_clusters() -> None:
    nodes = cores(40)
    outcome = cycle(newcomer("g", cpu=50), nodes=nodes, by=OVERCOMMIT)
    assert outcome.text("g") == (
        "cluster: cpu asked 50, free 48 of 48 (40 stretched by overcommit, 40 idle); "
        "never: more than the whole cluster has"
    )
    taken = cycle(newcomer("g", cpu=38), nodes=nodes, used=used(nodes, n0=12), by=OVERCOMMIT)
    assert taken.refusal("g").never is None


def test_members_that_are_not_there_are_not_a_matter_of_size() -> None:
    pods = members("g", 1)
    gang = make_gang("g", waiting=pods, min_member=200, given_up=True)
    refusal = cycle(gang, nodes=cores(4), by=policies((("gang",),))).refusal("g")
    assert (refusal.cause, refusal.never) == (Cause.NOT_ENOUGH_TASKS, None)


def test_what_all_groups_of_a_queue_ask_for_makes_no_group_impossible() -> None:
    """The queue holds its share, and its groups together ask for more than the cluster has."""
    a, b = QueueName("a"), QueueName("b")
    has = make_gang("has", queue=a, phase=GroupPhase.RUNNING, allocated=vector(cpu=2, pods=2))
    more = tuple(gang_of(f"a{i}", 2, queue=a, created=float(i)) for i in range(9))
    rival = gang_of("b0", 4, queue=b)
    nodes = cores(4, pods=4)
    outcome = cycle(
        has,
        *more,
        rival,
        nodes=nodes,
        queues=(make_queue("a"), make_queue("b")),
        used=used(nodes, n0=2),
        pending=(*more, rival),
        by=policies((("gang",), ("proportion",))),
    )
    refusal = outcome.refusal("a2")
    assert (refusal.cause, refusal.never) == (Cause.QUEUE_OVERUSED, None)
    assert [lack.asked for lack in refusal.shortfalls if lack.resource == "cpu"] == [18_000]
    assert not outcome.plan.set_aside
