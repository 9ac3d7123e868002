"""The same question has the same answer, and another question tells what is otherwise."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.core.planner import plan, plan_gang
from app.core.replay import able, differences, replayed
from app.core.simulation import ClusterChange
from app.model.ids import QueueName
from app.model.recorded import PlanCall, Recorded
from app.model.running import NOT_ASKED
from app.wire.stored import digest, packed, unpacked
from tests.builders import make_queue
from tests.core.actions.rigs import BARE, policies
from tests.core.crowds import Crowd, Job, boards
from tests.core.placement.strategies import Theme
from tests.core.random_crowds import Rules, crowds
from tests.core.worlds import CONFIGURED, NOW, World, worlds
from tests.scale import examples

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
EXAMPLES = examples(3, suppress_health_check=SLOW)
themes = pytest.mark.parametrize("theme", Theme, ids=lambda theme: theme.name.lower())


def cycle(world: World) -> Recorded:
    decided = plan(world.snapshot, world.by, now=NOW, shapes=None)
    return Recorded(PlanCall.CYCLE, NOW, world.snapshot, world.by.conf, decided)


@themes
@EXAMPLES
@given(data=st.data())
def test_a_cycle_that_was_recorded_is_decided_the_same(theme: Theme, data: st.DataObject) -> None:
    recorded = cycle(data.draw(worlds(theme)))
    found = unpacked(packed(recorded))
    assert digest(found.snapshot) == digest(recorded.snapshot)
    assert digest(replayed(found)) == digest(recorded.plan)


@EXAMPLES
@given(world=worlds(Theme.ROOM))
def test_a_plan_on_demand_that_was_recorded_is_decided_the_same(world: World) -> None:
    for gang in world.snapshot.pending[:3]:
        key = gang.key
        decided = plan_gang(world.snapshot, world.by, key=key, now=NOW, shapes=None)
        recorded = Recorded(PlanCall.GANG, NOW, world.snapshot, world.by.conf, decided, key)
        assert digest(replayed(unpacked(packed(recorded)))) == digest(decided)


@EXAMPLES
@given(crowd_of=crowds(freezes=False))
def test_evictions_that_were_recorded_are_decided_the_same(crowd_of: tuple[Rules, Crowd]) -> None:
    _, crowd = crowd_of
    snapshot = crowd.snapshot()
    decided = plan(snapshot, crowd.by, now=crowd.now, shapes=None)
    recorded = Recorded(PlanCall.CYCLE, crowd.now, snapshot, crowd.by.conf, decided)
    found = replayed(unpacked(packed(recorded)))
    assert digest(found) == digest(decided)
    assert digest(found.evictions) == digest(decided.evictions)


def recorded_share() -> Recorded:
    """Two queues of equal weight that ask for all of a cluster of four cores."""
    jobs = [Job(f"{queue}{number}", 1, queue=queue) for number in range(4) for queue in "ab"]
    by = policies((("gang",), ("predicates", "proportion")))
    crowd = Crowd(jobs, boards(4), by, queues=(make_queue("a"), make_queue("b")))
    snapshot = crowd.snapshot()
    decided = plan(snapshot, by, now=crowd.now, shapes=None)
    return Recorded(PlanCall.CYCLE, crowd.now, snapshot, by.conf, decided)


def test_another_weight_of_a_queue_tells_who_fares_otherwise() -> None:
    recorded = recorded_share()
    heavier = replace(recorded.snapshot.queues[QueueName("b")], weight=3)
    change = ClusterChange({QueueName("b"): heavier})
    other = replayed(unpacked(packed(recorded)), change=change)
    told = {each.group: (each.before, each.after) for each in differences(recorded.plan, other)}
    assert told == {
        "default/a1": ("is placed on n0", "waits: QueueOverused"),
        "default/b2": ("waits: QueueOverused", "is placed on n0"),
    }


def test_another_configuration_tells_who_fares_otherwise() -> None:
    recorded = recorded_share()
    other = replayed(recorded, policies(BARE))
    told = differences(recorded.plan, other)
    assert told
    assert not differences(recorded.plan, replayed(recorded))


def test_equal_plans_differ_in_nothing() -> None:
    recorded = recorded_share()
    assert differences(recorded.plan, recorded.plan) == ()
    assert digest(replayed(recorded)) == digest(recorded.plan)


def test_a_configuration_that_evicts_is_asked_without_where_it_is_not_told_what_runs() -> None:
    recorded = recorded_share()
    blind = replace(recorded, snapshot=replace(recorded.snapshot, running=NOT_ASKED))
    evicting = policies(BARE, ("enqueue", "allocate", "preempt"))
    assert able(blind, evicting).conf.actions == ("enqueue", "allocate")
    assert able(blind, CONFIGURED["bare"]) is CONFIGURED["bare"]
    knows = replace(blind, conf=evicting.conf)
    assert able(knows, evicting) is evicting
