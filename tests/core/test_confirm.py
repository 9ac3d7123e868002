"""What of an older plan still fits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import planner
from app.core.confirm import confirmed
from app.core.policy import Policies
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang
from app.model.ids import NodeName, QueueName, group_key
from app.model.numa import Cpus, NumaLayout, NumaNeed, NumaNode, NumaPolicy
from app.model.plan import GangPlacement, Placement, Plan
from app.model.snapshot import MemberPlace, NominatedRoom, Snapshot
from app.model.workload import NODE_GROUP, GroupPhase, NodeGroupRules, QueueState
from tests.builders import (
    AXIS,
    make_amounts,
    make_gang,
    make_node,
    make_queue,
    make_snapshot,
    make_task,
)
from tests.core.actions import rigs
from tests.core.actions.rigs import HELM, cores, gang_of, vector
from tests.core.placement.strategies import Theme
from tests.core.worlds import NOW, World, worlds

LIMIT = 10


def policies() -> Policies:
    tiers = ((PluginConf("capacity", switches={"enableHierarchy": True}),),)
    return build(SchedulerConf(actions=("allocate",), tiers=tiers))


def world(sizes: Sequence[int], *, held: int = 0) -> Snapshot:
    """Gangs of that many cores in two queues in turn, below one that may hold ten."""
    queues = (
        make_queue("top", capability=make_amounts(cpu=LIMIT * 1000)),
        make_queue("left", parent=QueueName("top")),
        make_queue("right", parent=QueueName("top")),
    )
    gangs = tuple(
        make_gang(
            f"g{i}",
            queue=QueueName("left" if i % 2 else "right"),
            waiting=tuple(make_task(f"g{i}-{n}") for n in range(size)),
        )
        for i, size in enumerate(sizes)
    )
    holder = make_gang("holder", queue=QueueName("left"), allocated=vector(cpu=held))
    return make_snapshot(
        nodes=(make_node("n", cpu=100_000),), gangs=(*gangs, holder), queues=queues
    )


def placed(snapshot: Snapshot, *names: str, node: str = "n") -> tuple[GangPlacement, ...]:
    """Decisions that give all members of these gangs room on a node."""
    return tuple(
        GangPlacement(gang.key, tuple(Placement(t, NodeName(node)) for t in gang.waiting), True)
        for gang in (snapshot.gangs[group_key("default", name)] for name in names)
    )


def names_of(decided: Iterable[GangPlacement]) -> list[str]:
    return [each.gang.partition("/")[2] for each in decided]


def confirm(placements: Sequence[GangPlacement], snapshot: Snapshot) -> list[str]:
    plan = Plan(1, placed=tuple(placements))
    return names_of(confirmed(plan, policies(), snapshot=snapshot, now=0.0).placed)


def test_what_fits_stands_and_a_later_one_that_still_fits_too() -> None:
    before = world([4, 4, 2])
    assert confirm(placed(before, "g0", "g1", "g2"), world([4, 4, 2], held=2)) == ["g0", "g1"]
    assert confirm(placed(before, "g0", "g1", "g2"), world([4, 4, 2], held=4)) == ["g0", "g2"]


def test_a_gang_or_a_node_that_is_gone_drops_out() -> None:
    before = world([1, 1])
    assert confirm(placed(before, "g0", "g1"), world([1])) == ["g0"]
    assert confirm(placed(before, "g0", node="gone"), before) == []


def test_decisions_from_before_a_new_kind_of_resource_are_made_again() -> None:
    decided = placed(world([1]), "g0")
    axis = AXIS.covering(("nvidia.com/gpu",))
    gang = make_gang("g0", axis=axis, waiting=(make_task("g0-0", axis=axis),))
    node = make_node("n", extra={"nvidia.com/gpu": 8})
    assert confirm(decided, make_snapshot(nodes=(node,), gangs=(gang,), axis=axis)) == []


def wanting(*names: str, limit: int = LIMIT, **fields: Any) -> Snapshot:
    """Gangs of four cores each that are not let in, in a queue that may hold so many."""
    defaults: dict[str, Any] = {
        "queue": QueueName("q"),
        "phase": GroupPhase.PENDING,
        "min_request": vector(cpu=4),
    }
    gangs = tuple(
        make_gang(name, waiting=(make_task(f"{name}-0"),), **(defaults | fields)) for name in names
    )
    queue = make_queue("q", capability=make_amounts(cpu=limit * 1000))
    return make_snapshot(nodes=(make_node("n", cpu=100_000),), gangs=gangs, queues=(queue,))


def confirm_all(snapshot: Snapshot, *names: str) -> tuple[list[str], list[str]]:
    """Who of those that are let in and placed stays so, and who stays placed."""
    plan = Plan(
        1,
        admitted=tuple(group_key("default", name) for name in names),
        placed=placed(wanting(*names), *names),
    )
    voting = build(
        SchedulerConf(actions=("enqueue", "allocate"), tiers=((PluginConf("capacity"),),))
    )
    left = confirmed(plan, voting, snapshot=snapshot, now=0.0)
    return [key.partition("/")[2] for key in left.admitted], names_of(left.placed)


def test_an_admitted_gang_is_voted_on_again_and_is_not_placed_when_it_is_refused() -> None:
    assert confirm_all(wanting("a", "b", limit=8), "a", "b") == (["a", "b"], ["a", "b"])
    assert confirm_all(wanting("a", "b", limit=7), "a", "b") == (["a"], ["a"])
    assert confirm_all(wanting("a", "b", limit=3), "a", "b") == ([], [])


def test_a_gang_admitted_on_demand_meanwhile_is_not_voted_on_nor_counted_twice() -> None:
    admitted = wanting("a", limit=1, phase=GroupPhase.INQUEUE)
    assert confirm_all(admitted, "a") == (["a"], ["a"])


def test_a_gang_with_nominated_room_is_admitted_without_a_vote() -> None:
    before = wanting("a", limit=1, min_member=1)
    (gang,) = before.pending
    made = {gang.key: {gang.waiting[0].uid: NominatedRoom(NodeName("n"), done=True)}}
    assert confirm_all(before, "a") == ([], [])
    assert confirm_all(replace(before, nominated_room=made), "a") == (["a"], ["a"])


def test_a_gang_that_is_gone_or_whose_queue_is_is_not_admitted() -> None:
    assert confirm_all(wanting("a"), "a", "b") == (["a"], ["a"])
    assert confirm_all(wanting("a", queue=QueueName("gone")), "a") == ([], [])


def test_without_a_vote_a_closed_queue_keeps_them_out() -> None:
    plan = Plan(1, admitted=(group_key("default", "a"),))
    small = wanting("a", limit=1)
    assert confirmed(plan, policies(), snapshot=small, now=0.0).admitted == plan.admitted
    queues = {**small.queues, QueueName("q"): make_queue("q", state=QueueState.CLOSED)}
    closed = replace(small, queues=queues)
    assert confirmed(plan, policies(), snapshot=closed, now=0.0).admitted == ()


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    held=st.integers(0, LIMIT),
)
def test_together_they_never_exceed_a_limit_and_none_is_left_out_in_vain(
    sizes: list[int], held: int
) -> None:
    snapshot = world(sizes, held=held)
    every = [f"g{i}" for i in range(len(sizes))]
    standing = confirm(placed(snapshot, *every), snapshot)
    total = held
    for name, size in zip(every, sizes, strict=True):
        fits = total + size <= LIMIT
        assert (name in standing) == fits
        total += size * fits


@st.composite
def fighting(draw: st.DrawFn, name: str) -> Gang:
    """A gang of one of two queues, often bigger than its share; some members were not used."""
    minimum, extras = draw(st.integers(1, 8)), draw(st.integers(0, 2))
    cpu = draw(st.sampled_from((1, 1, 2, 6)))
    gang = gang_of(
        name,
        minimum + extras,
        cpu=cpu,
        queue=QueueName(draw(st.sampled_from("ab"))),
        created=float(draw(st.integers(0, 3))),
        min_member=minimum,
        phase=draw(st.sampled_from((*[GroupPhase.INQUEUE] * 3, GroupPhase.PENDING))),
        min_request=vector(cpu=minimum * cpu),
    )
    unused = gang.waiting[minimum:] if draw(st.booleans()) else ()
    return replace(gang, unused=frozenset(task.uid for task in unused))


@pytest.mark.parametrize("actions", [("enqueue", "allocate"), ("allocate", "enqueue", "allocate")])
@given(data=st.data(), count=st.integers(1, 6), weight=st.integers(1, 3))
def test_while_nothing_changed_every_decision_stands_and_what_was_borrowed_too(
    actions: tuple[str, ...], data: st.DataObject, count: int, weight: int
) -> None:
    gangs = tuple(data.draw(fighting(f"g{i}")) for i in range(count))
    nodes = cores(*data.draw(st.sampled_from(((10,), (5, 5), (4, 4, 2)))))
    queues = (make_queue("a", weight=weight), make_queue("b"))
    snapshot = make_snapshot(nodes=nodes, gangs=gangs, queues=queues)
    check_all_stands(snapshot, rigs.policies(HELM, actions))


@given(world=worlds(Theme.ROOM))
def test_while_nothing_changed_every_decision_stands_by_any_rules(world: World) -> None:
    check_all_stands(world.snapshot, world.by)


def check_all_stands(snapshot: Snapshot, by: Policies) -> None:
    decided = planner.plan(snapshot, by, now=NOW, shapes=None)
    left = confirmed(decided, by, snapshot=snapshot, now=NOW)
    assert left.admitted == decided.admitted
    assert left.placed == decided.placed


def lent(**changed: Any) -> list[str]:
    """What stands of a decision that lent the room left over to a gang, when that changed."""
    rival = gang_of("rival", 9, queue=QueueName("b"), created=1.0)
    queues = (make_queue("a"), make_queue("b"))
    old, new = (
        make_snapshot(
            nodes=cores(10),
            gangs=(gang_of("g", 6, queue=QueueName("a")), rival),
            queues=(replace(queues[0], **fields), queues[1]),
        )
        for fields in ({}, changed)
    )
    by = rigs.policies(HELM)
    decided = Plan(1, placed=placed(old, "g", node="n0"))
    return names_of(confirmed(decided, by, snapshot=new, now=NOW).placed)


def test_what_was_borrowed_stands_within_what_its_queue_may_really_hold() -> None:
    assert lent() == ["g"]
    assert lent(capability=make_amounts(cpu=5000)) == []
    assert lent(state=QueueState.CLOSED) == []
    assert lent(name=QueueName("another")) == [], "it is gone"


@pytest.mark.parametrize(("held", "stands"), [(0, True), (1, False)])
def test_limits_per_node_group_count_what_was_taken_meanwhile(held: int, stands: bool) -> None:
    """A plan on demand gave the queue a core of the group while the cycle planned two of two."""
    rules = NodeGroupRules(required=("a",))
    queue = make_queue("q", node_groups=rules, node_group_limits={"a": make_amounts(cpu=2000)})
    nodes = (make_node("n", cpu=9000, labels={NODE_GROUP: "a"}),)
    comes, other = (
        gang_of(name, size, queue=QueueName("q")) for name, size in (("comes", 2), ("other", 0))
    )
    by = rigs.policies((("gang",), ("predicates", "nodegroup")))
    before = make_snapshot(nodes=nodes, gangs=(comes, other), queues=(queue,))
    decided = planner.plan(before, by, now=NOW, shapes=None)
    assert [each.gang for each in decided.placed] == [comes.key]
    place = MemberPlace(NodeName("n"), "", vector(cpu=held))
    later = replace(before, places={other.key: (place,)})
    found = confirmed(decided, by, snapshot=later, now=NOW)
    assert bool(found.placed) is stands


@pytest.mark.parametrize(("free", "stands"), [((8, 8), True), ((4, 8), False)])
def test_numa_nodes_count_what_was_taken_meanwhile(free: Cpus, stands: bool) -> None:
    need = NumaNeed(NumaPolicy.SINGLE_NUMA_NODE, (5,))
    layout = NumaLayout(NumaPolicy.SINGLE_NUMA_NODE, True, (0, 1), (8, 8))
    waiting = rigs.members("g", 2, shape=rigs.sized(5, numa=need))
    gang = make_gang("g", waiting=waiting)
    by = rigs.policies((("gang",), ("predicates", "numa-aware")))
    before = make_snapshot(
        nodes=(make_node("n", cpu=16_000),),
        gangs=(gang,),
        numa={NodeName("n"): NumaNode(layout, (8, 8), (0, 0))},
    )
    decided = planner.plan(before, by, now=NOW, shapes=None)
    assert [each.gang for each in decided.placed] == [gang.key]
    later = replace(before, numa={NodeName("n"): NumaNode(layout, free, (0, 0))})
    found = confirmed(decided, by, snapshot=later, now=NOW)
    assert bool(found.placed) is stands
