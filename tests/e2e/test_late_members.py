"""Times of the protocol: members that come too late, calls that time out, a clock that leaps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Setting, Stage
from tests.e2e.settings import BARRIER_S, HASTY

pytestmark = pytest.mark.real

BINDS_ENDED = 'pumice_extender_call_seconds_count{verb="bind"}'


@pytest.fixture
def hasty(stage: Stage) -> Rig:
    """Gives gangs little time to come together."""
    return stage.rig(HASTY)


@pytest.fixture
def place(hasty: Rig) -> Iterator[Place]:
    with Place(hasty) as made:
        made.add_nodes(2, cpu="2")
        yield made


def hold_three_of_four(place: Place) -> None:
    place.add_group("late", 4)
    place.submit(workloads.members("late", 3))
    place.wait_held("late", 3)


def binds_ended(place: Place) -> float:
    """How many Bind calls the extender is done with."""
    return place.cluster.extender.metrics().get(BINDS_ENDED, 0.0)


def test_a_gang_that_does_not_come_together_gives_its_room_to_another(place: Place) -> None:
    hold_three_of_four(place)
    place.add_gang("whole", 4)
    place.wait_bound("whole", 4, timeout_s=BARRIER_S + 12)
    assert not place.bound("late")
    assert place.cluster.extender.metrics()['pumice_gangs_released_total{why="late"}'] >= 1

    place.submit_one(workloads.pod("late-3", group="late"))
    place.add_nodes(2, cpu="2")
    place.wait_bound("late", 4, timeout_s=60)


def test_room_for_pods_that_nobody_creates_is_given_back(place: Place) -> None:
    place.add_group("empty", 4, minResources={"cpu": "4", "memory": "256Mi"})
    place.wait_condition("empty", "Reserved")
    place.add_gang("whole", 4)
    place.wait_bound("whole", 4)
    assert not place.gang_state("empty")


def test_a_group_that_is_left_behind_keeps_no_room_until_a_member_comes(place: Place) -> None:
    place.add_gang("left", 4)
    place.wait_bound("left", 4)
    for pod in workloads.members("left", 4):
        place.delete_pod(pod["metadata"]["name"])
    place.wait_condition("left", "Reserved", "False", says="pods asked 4, present 0")

    place.submit(workloads.members("left", 3))
    place.wait_held("left", 3)
    place.submit_one(workloads.pod("left-3", group="left"))
    place.wait_bound("left", 4)


def test_a_leap_of_time_while_members_are_held_breaks_nothing(hasty: Rig, place: Place) -> None:
    hold_three_of_four(place)
    hasty.extender.pause()
    place.submit_one(workloads.pod("late-3", group="late"))
    with pytest.raises(AssertionError):
        place.wait_bound("late", 1, timeout_s=BARRIER_S + 2)
    hasty.extender.resume()
    place.wait_bound("late", 4, timeout_s=40)


def test_a_bind_that_the_scheduler_gave_up_is_not_carried_out(stage: Stage) -> None:
    with Place(stage.rig(Setting(http_timeout="2s"))) as place:
        place.add_nodes(2, cpu="2")
        before = binds_ended(place)
        hold_three_of_four(place)
        wait_until(lambda: binds_ended(place) >= before + 3, timeout_s=12, what="3 Binds given up")
        assert not place.bound("late")
        place.submit_one(workloads.pod("late-3", group="late"))
        place.wait_bound("late", 4, timeout_s=40)
