"""No room stays idle while a gang waits that may have it.

Clusters are uniform: members of one core each, so that whether a gang fits is a matter of sums that
are worked out here from the snapshot and the plan alone.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.core.planner import plan
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.plan import Plan
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_queue, make_snapshot
from tests.core.actions.rigs import HELM, amounts_of, cores, gang_of, policies, used, vector
from tests.scale import examples

NAMES = ("a", "b", "c")
CORES = 12
PATIENCE_S = 60.0
BY = {
    "shipped": policies(HELM),
    "capacity": policies((("priority", "gang"), ("predicates", "capacity", "nodeorder"))),
    "drf": policies((("priority", "gang"), (PluginConf("drf"), "predicates"))),
}


@dataclass(frozen=True, slots=True)
class World:
    """A cluster of one node with :data:`CORES` cores, some of which are held by each queue."""

    name: str
    snapshot: Snapshot
    now: float


@st.composite
def worlds(draw: st.DrawFn) -> World:
    queues = tuple(
        make_queue(
            name,
            weight=draw(st.integers(1, 4)),
            capability=amounts_of(cpu=cap) if (cap := draw(st.sampled_from((0, 0, 4, 8)))) else (),
            deserved=amounts_of(cpu=draw(st.integers(0, 6))),
            guarantee=amounts_of(cpu=draw(st.sampled_from((0, 0, 0, 2)))),
        )
        for name in NAMES
    )
    held = {name: draw(st.integers(0, 3)) for name in NAMES}
    running = [_running(name, cpu) for name, cpu in held.items() if cpu]
    waiting = [
        gang_of(
            f"g{number}",
            draw(st.integers(1, CORES)),
            queue=QueueName(draw(st.sampled_from(NAMES))),
            created=float(draw(st.integers(0, 80))),
            phase=draw(st.sampled_from((GroupPhase.PENDING, GroupPhase.INQUEUE))),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    nodes = cores(CORES)
    snapshot = make_snapshot(
        nodes=nodes,
        gangs=(*running, *waiting),
        queues=queues,
        pending=tuple(waiting),
        used=used(nodes, n0=sum(held.values())),
    )
    return World(draw(st.sampled_from(tuple(BY))), snapshot, now=100.0)


def _running(queue: str, cpu: int) -> Gang:
    return make_gang(
        f"old-{queue}",
        queue=QueueName(queue),
        phase=GroupPhase.RUNNING,
        min_member=1,
        allocated=vector(cpu=cpu),
        request=vector(cpu=cpu),
    )


def held_after(world: World, decided: Plan) -> dict[str, int]:
    """Cores that each queue holds when the plan has come true."""
    held = dict.fromkeys(NAMES, 0)
    for gang in world.snapshot.gangs.values():
        held[gang.queue] += int(gang.allocated[0]) // 1000
    for each in decided.placed:
        held[world.snapshot.gangs[each.gang].queue] += len(each.placements)
    return held


def limit_of(world: World, queue: Queue) -> int:
    """Cores that a queue may hold, by its capability and what others are guaranteed."""
    if world.name == "drf":
        return CORES
    others = (q for q in world.snapshot.queues.values() if q.name != queue.name)
    guaranteed = sum(dict(q.guarantee).get("cpu", 0) for q in others) // 1000
    own = dict(queue.capability).get("cpu", CORES * 1000) // 1000
    return min(own, CORES - guaranteed)


@examples(100)
@given(world=worlds())
def test_no_gang_that_waits_fits_into_room_that_is_neither_collected_nor_beyond_a_limit(
    world: World,
) -> None:
    decided = plan(world.snapshot, BY[world.name], now=world.now, shapes=None)
    placed = {each.gang for each in decided.placed}
    held = held_after(world, decided)
    collected = sum(int(amount[0]) for c in decided.collected for _, amount in c.nodes) // 1000
    free = CORES - sum(held.values()) - collected
    collecting = {world.snapshot.gangs[each.gang].queue for each in decided.collected}
    waits_for_limit = {
        gang.queue
        for gang in world.snapshot.pending
        if gang.key not in placed and world.now - gang.created >= PATIENCE_S
    }
    for gang in world.snapshot.pending:
        if gang.key in placed:
            continue
        size = len(gang.waiting)
        beyond = held[gang.queue] + size > limit_of(world, world.snapshot.queues[gang.queue])
        in_queue = gang.queue in collecting | waits_for_limit
        assert size > free or beyond or in_queue, (gang.name, size, free)


@examples(100)
@given(world=worlds())
def test_what_is_collected_is_for_gangs_that_waited_and_is_free(world: World) -> None:
    decided = plan(world.snapshot, BY[world.name], now=world.now, shapes=None)
    held = held_after(world, decided)
    collected = sum(int(amount[0]) for c in decided.collected for _, amount in c.nodes) // 1000
    assert collected <= CORES - sum(held.values())
    for each in decided.collected:
        assert world.now - world.snapshot.gangs[each.gang].created >= PATIENCE_S
        assert each.gang not in {p.gang for p in decided.placed}
