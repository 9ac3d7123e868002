"""What of a plan still stands when it is published: limits and claims changed while it was made."""

from collections.abc import Callable
from typing import Any

import pytest

from app.cache.nodes.usage import NodeUsage
from app.model.ids import NodeName, QueueName
from app.model.reason import Cause
from app.model.shape import Toleration
from app.model.workload import GroupPhase, QueueState, Quota
from app.service.cycle import on_demand
from app.service.cycle.publishing import REFUSED_IN_A_ROW
from app.service.limits import Limits
from tests.builders import make_amounts, make_node, make_queue, make_shape
from tests.service.cycle.test_planning_cycle import ALWAYS_YIELD, TREE, during_a_cycle
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

Q = QueueName("q")
FOUR = make_amounts(cpu=4000)

VOTES = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: resourcequota
  - name: predicates
  - name: capacity
"""


def queue(**fields: Any) -> Callable[[Rig], None]:
    """The queue ``q`` is changed so."""
    return lambda rig: rig.queue(make_queue("q", **fields))


def eight_pods(rig: Rig) -> None:
    """Four gangs of two for one core each, in a queue that may hold eight."""
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=8000)))
    for gang in ("a", "b", "c", "d"):
        rig.group(gang, minimum=2, queue=Q)
        for number in range(2):
            rig.pod(f"{gang}-{number}", group=gang)


def wants_in(rig: Rig, name: str, *, cpu: int = 4000, created: float = 10.0) -> None:
    """A group that is not let in yet."""
    rig.group(
        name,
        minimum=1,
        phase=GroupPhase.PENDING,
        queue=Q,
        created=created,
        min_resources=make_amounts(cpu=cpu),
    )


def admitted(rig: Rig) -> list[str]:
    """Names of the groups that are."""
    groups = rig.cache.groups.values()
    return [g.key.partition("/")[2] for g in groups if g.phase is GroupPhase.INQUEUE]


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "left"),
    [
        pytest.param(queue(capability=make_amounts(cpu=2000)), 2, id="it may hold less"),
        pytest.param(queue(state=QueueState.CLOSED), 0, id="it is closed"),
        pytest.param(lambda rig: rig.unsee("queues", make_queue("q")), 0, id="it is gone"),
        pytest.param(
            lambda rig: rig.node("n1", cpu=64_000, labels={"zone": "b"}), 8, id="nothing of this"
        ),
    ],
)
async def test_a_queue_that_changes_meanwhile_holds_what_it_may_by_now(
    happens: Callable[[Rig], None], left: int
) -> None:
    rig = Rig(ALWAYS_YIELD)
    eight_pods(rig)
    await during_a_cycle(rig, lambda: happens(rig))
    assert rig.has_reservations() == left
    await rig.cycle()
    assert rig.has_reservations() == left


async def test_a_queue_above_that_changes_meanwhile_counts_too() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.parts.configuration.load(TREE)
    rig.queue(make_queue("top", capability=make_amounts(cpu=8000)))
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", parent=QueueName("top")))
    for gang in ("a", "b"):
        rig.group(gang, minimum=2, queue=Q)
        for number in range(2):
            rig.pod(f"{gang}-{number}", group=gang)
    lowered = make_queue("top", capability=make_amounts(cpu=2000))
    await during_a_cycle(rig, lambda: rig.queue(lowered))
    assert rig.has_reservations() == 2


async def test_a_configuration_that_comes_meanwhile_is_heeded() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.parts.configuration.load('actions: "enqueue, allocate"\ntiers: []')
    eight_pods(rig)
    rig.queue(make_queue("q", capability=make_amounts(cpu=2000)))
    await during_a_cycle(rig, lambda: rig.parts.configuration.load(VOTES))
    assert rig.has_reservations() == 2


async def test_a_status_of_a_queue_is_no_change() -> None:
    """It is written after every cycle that placed something."""

    rig = Rig(ALWAYS_YIELD)
    eight_pods(rig)
    same = queue(capability=make_amounts(cpu=8000), resource_version="7", allocated=FOUR)
    await during_a_cycle(rig, lambda: same(rig))
    assert rig.planning.log.overtaken == 0
    assert rig.has_reservations() == 8


async def test_what_others_bring_into_a_queue_meanwhile_is_counted() -> None:
    rig = Rig(ALWAYS_YIELD)
    eight_pods(rig)
    rig.group("bound", minimum=1, queue=Q)

    def bind() -> None:
        shape = make_shape(cpu=6000)
        rig.pod("bound-0", group="bound", node=NodeName("n1"), shape=shape)

    await during_a_cycle(rig, bind)
    assert rig.has_reservations() == 2


async def test_a_cluster_that_becomes_smaller_meanwhile_holds_less() -> None:
    """What is guaranteed to another queue is not to be had any more."""

    rig = Rig(ALWAYS_YIELD)
    rig.parts.configuration.load(VOTES)
    rig.node("n1", cpu=8000)
    rig.node("n2", cpu=4000)
    rig.queue(make_queue("q"))
    rig.queue(make_queue("other", guarantee=FOUR))
    for number in range(8):
        rig.group(f"g{number}", minimum=1, queue=Q)
        rig.pod(f"g{number}-0", group=f"g{number}", pinned=NodeName("n1"))
    await during_a_cycle(rig, lambda: rig.unsee("nodes", make_node("n2")))
    assert rig.has_reservations() == 4


# --- who is let in --------------------------------------------------------------------------------


async def test_a_gang_admitted_on_demand_meanwhile_takes_the_place_of_others() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=FOUR))
    for number in range(on_demand.AT_ONCE + 1):
        wants_in(rig, f"w{number:03}")

    def ask() -> None:
        wants_in(rig, "late", created=0.0)
        rig.pod("late-0", group="late", shape=make_shape(cpu=4000))
        rig.filter("late-0")

    await during_a_cycle(rig, ask)
    assert admitted(rig) == ["late"]
    await rig.cycle()
    assert admitted(rig) == ["late"]
    assert rig.refusals[rig.key("w000")].cause is Cause.QUEUE_QUOTA


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(queue(capability=make_amounts(cpu=1000)), id="its queue may hold less"),
        pytest.param(queue(state=QueueState.CLOSED), id="its queue is closed"),
        pytest.param(
            lambda rig: rig.see(
                "resourcequotas", Quota("default", "few", hard=(("cpu", 1000),), used=())
            ),
            id="its namespace may hold less",
        ),
    ],
)
async def test_no_gang_is_admitted_that_would_not_be_by_now(happens: Callable[[Rig], None]) -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.parts.configuration.load(VOTES)
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=FOUR))
    wants_in(rig, "g")
    await during_a_cycle(rig, lambda: happens(rig))
    assert admitted(rig) == []
    assert rig.has_reservations() == 0, "no slots are kept for who is not let in"
    assert rig.cache.signals.dirty, "it is looked at again at once"
    await rig.cycle()
    assert admitted(rig) == []
    assert rig.refusals[rig.key("g")]


async def test_a_gang_that_fits_besides_what_changed_meanwhile_is_admitted() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=8000)))
    wants_in(rig, "first")
    wants_in(rig, "second", created=20.0)
    await during_a_cycle(rig, lambda: queue(capability=make_amounts(cpu=5000))(rig))
    assert admitted(rig) == ["first"]
    assert rig.has_reservations() == 1


async def test_a_gang_cut_in_half_is_admitted_whatever_changed() -> None:
    """A crash lost that it was: its rest is not voted on again."""

    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=8000)))
    rig.group("half", minimum=2, queue=Q, phase=GroupPhase.PENDING, min_resources=FOUR)
    rig.pod("half-0", group="half", node=NodeName("n1"))
    rig.pod("half-1", group="half")
    await during_a_cycle(rig, lambda: queue(capability=make_amounts(cpu=3000))(rig))
    assert admitted(rig) == ["half"]
    assert rig.place("half-1") == "n1"


async def test_without_a_vote_only_a_closed_queue_keeps_anybody_out() -> None:
    rig = Rig(Limits(slice_s=-1.0))
    rig.parts.configuration.load(VOTES.replace("enqueue, ", ""))
    rig.node("n1", cpu=64_000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=8000)))
    for name in ("a", "b"):
        wants_in(rig, name, cpu=6000)
        rig.pod(f"{name}-0", group=name)
    await during_a_cycle(rig, lambda: queue(capability=make_amounts(cpu=4000))(rig))
    assert admitted(rig) == ["a", "b"]
    assert rig.has_reservations() == 2


async def test_who_is_planned_in_vain_again_and_again_lets_others_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if planner and cache disagreed about a node: nobody else must wait for that for ever."""
    everywhere = make_shape(cpu=8000, tolerations=(Toleration(exists=True),))
    takes = NodeUsage.takes

    rig = Rig()
    rig.node("n1", cpu=8000)
    rig.gang("first", size=1, shape=everywhere)
    rig.gang("second", size=1, shape=make_shape(cpu=8000))
    monkeypatch.setattr(NodeUsage, "takes", lambda *on: everywhere not in on and takes(*on))
    with working(rig):
        await advance(2)
    assert rig.place("second-0") == "n1"
    assert rig.planning.log.stale < 2 * REFUSED_IN_A_ROW


# --- evictions that no plan has found -------------------------------------------------------------

PREEMPTS = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
"""


def refused_since(rig: Rig, name: str) -> float:
    view = rig.cache.registry.view(rig.key(name))
    assert view is not None
    return view.refused_since


async def test_a_group_knows_since_when_no_eviction_gave_it_room_until_it_has_room() -> None:
    rig, one = Rig(), make_shape(cpu=1000)
    rig.parts.configuration.load(PREEMPTS)
    rig.node("n1", cpu=2000)
    rig.group("runs", minimum=2)
    for name in ("runs-0", "runs-1"):
        rig.pod(name, group="runs", node=NodeName("n1"), phase="Running", shape=one)
    rig.group("waits", minimum=2)
    for name in ("waits-0", "waits-1"):
        rig.pod(name, group="waits", shape=one)
    with working(rig):
        await advance(5)
        assert refused_since(rig, "runs") == 0
        first = refused_since(rig, "waits")
        assert first > 0
        rig.node("n2", cpu=500)
        await advance(5)
        assert refused_since(rig, "waits") == first
        rig.node("n3", "n4", cpu=1000)
        await advance(5)
        assert refused_since(rig, "waits") == 0
