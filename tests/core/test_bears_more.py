"""What is said of pods to come is what the planner says when they have come."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from app.core.planner import bears_more, plan
from app.model.conf import PluginConf
from app.model.gang import Counts, Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from tests.builders import (
    make_amounts,
    make_gang,
    make_node,
    make_queue,
    make_shape,
    make_snapshot,
    make_task,
)
from tests.core.actions.rigs import policies
from tests.core.placement.strategies import Theme
from tests.core.plugins.sessions import room
from tests.core.worlds import NOW, World, with_gangs, worlds
from tests.scale import examples

OF_NODES = {Cause.NO_NODE_FITS, Cause.NOT_ENOUGH_RESOURCES}
EXAMPLES = examples(40, suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large))


def alone(name: str, queue: str, snapshot: Snapshot, *, cores: int) -> Gang:
    """A pod without a PodGroup, of a queue."""
    shape = make_shape(cpu=cores * 1000, memory=0)
    task = make_task(name, shape=shape, axis=snapshot.axis)
    return make_gang(
        name,
        waiting=(task,),
        axis=snapshot.axis,
        queue=QueueName(queue),
        min_member=1,
        min_request=task.request,
        phase=GroupPhase.NEW,
        solo=True,
    )


@st.composite
def quiet_worlds(draw: st.DrawFn) -> World:
    """Where all have what they want."""
    world = draw(worlds(Theme.NODES))
    held = [
        replace(
            gang,
            waiting=(),
            queue_first=(),
            unused=frozenset(),
            sub_group_of={},
            request=gang.allocated,
            phase=GroupPhase.RUNNING,
            min_member=min(gang.min_member, gang.counts.ready),
            role_minimum={},
            sub_groups=(),
            partial=False,
        )
        for gang in world.snapshot.gangs.values()
    ]
    quiet = replace(world.snapshot, nominated_room={}, claims=())
    return World(world.name, with_gangs(quiet, held))


@EXAMPLES
@given(world=quiet_worlds(), count=st.integers(1, 6), come=st.integers(1, 6), data=st.data())
def test_who_was_said_to_be_borne_lacks_nothing_but_a_node(
    world: World, count: int, come: int, data: st.DataObject
) -> None:
    """However few of them come."""
    snapshot, cores = world.snapshot, data.draw(st.integers(1, 2))
    queue = data.draw(st.sampled_from(sorted(snapshot.usage)))
    like = alone("like", queue, snapshot, cores=cores)
    assume(bears_more(snapshot, world.by, like=like, count=count, now=NOW))
    pods = [alone(f"p-{n}", queue, snapshot, cores=cores) for n in range(min(count, come))]
    then = with_gangs(snapshot, [*snapshot.gangs.values(), *pods])
    refused = plan(then, world.by, now=NOW, shapes=None).refused
    assert {why.cause for why in refused.values()} <= OF_NODES


def test_as_many_are_borne_as_would_be_one_after_the_other() -> None:
    """Where a queue is looked at before each, and not what it will hold, one goes beyond."""
    proportion = PluginConf("proportion", switches={"enabledAllocatable": False})
    by = policies((("gang", "predicates", proportion),))
    empty = make_snapshot(
        nodes=(make_node("n", cpu=4000, memory=0, pods=4),),
        queues=(make_queue("a"), make_queue("b")),
    )
    full = make_gang(
        "full",
        queue=QueueName("b"),
        phase=GroupPhase.RUNNING,
        allocated=room(cpu=4, pods=4),
        counts=Counts(running=1),
    )
    snapshot, like = with_gangs(empty, [full]), alone("like", "a", empty, cores=1)
    borne = [n for n in range(1, 6) if bears_more(snapshot, by, like=like, count=n, now=NOW)]
    assert borne == [1, 2]


@pytest.mark.parametrize(
    "last", [{}, {"phase": GroupPhase.INQUEUE}, {"created": NOW - 7200.0}], ids=["", "in", "late"]
)
def test_whoever_comes_is_voted_on(last: dict[str, Any]) -> None:
    """Though the last one was let in before, or had waited so long that it had to be."""
    sla = PluginConf("sla", arguments={"sla-waiting-time": "1h"})
    by = policies(((sla,), ("gang", "predicates", "proportion")))
    empty = make_snapshot(
        nodes=(make_node("n", cpu=20_000, memory=0, pods=20),),
        queues=(make_queue("a", capability=make_amounts(cpu=8000)),),
    )
    claiming = make_gang(
        "claiming",
        queue=QueueName("a"),
        phase=GroupPhase.RUNNING,
        allocated=room(cpu=1, pods=1),
        min_request=room(cpu=4, pods=1),
        counts=Counts(running=1),
    )
    snapshot = with_gangs(empty, [claiming])
    like = replace(alone("like", "a", empty, cores=1), **last)
    borne = [n for n in range(1, 8) if bears_more(snapshot, by, like=like, count=n, now=NOW)]
    assert borne == [1, 2, 3, 4]
