import numpy as np

from app.cache.gangs.sums import QueueSums
from app.core.sums import part_of
from app.model.gang import Counts
from app.model.ids import QueueName
from app.model.resources import PODS_COLUMN
from app.model.workload import GroupPhase
from tests.builders import AXIS, make_amounts, make_gang, make_task

Q = QueueName("q")


def claimed(*, minimum: int, running: int, **others: int) -> int:
    """How many pods a running group of four claims beside those that it has."""
    gang = make_gang(
        "g",
        phase=GroupPhase.RUNNING,
        min_member=minimum,
        counts=Counts(running=running, **others),
        min_request=AXIS.vector(make_amounts(pods=4)),
        allocated=AXIS.vector(make_amounts(pods=running)),
    )
    _, (_, _, inqueue, *_) = part_of(gang)
    return int(inqueue[PODS_COLUMN])


def test_a_sum_is_that_of_the_groups_that_are_there() -> None:
    sums = QueueSums()
    gangs = [make_gang(f"g{n}", queue="q", waiting=(make_task(f"t{n}"),)) for n in range(3)]
    parts = [part_of(gang) for gang in gangs]
    for part in parts:
        sums.put(part)
    sums.take(parts[1])
    usage = sums.usage()[Q]
    assert usage.groups == 2
    assert np.array_equal(usage.request, parts[0][1][1] + parts[2][1][1])


def test_a_queue_without_groups_has_no_sum() -> None:
    sums = QueueSums()
    part = part_of(make_gang("g", queue="q"))
    sums.put(part)
    sums.take(part)
    assert sums.usage() == {}


def test_what_was_handed_out_does_not_change() -> None:
    sums = QueueSums()
    part = part_of(make_gang("g", queue="q", waiting=(make_task("t"),)))
    sums.put(part)
    before = sums.usage()[Q]
    request = before.request.copy()
    sums.put(part)
    assert np.array_equal(before.request, request)
    assert sums.usage()[Q].groups == 2


def test_a_group_that_runs_claims_what_its_members_do_not_hold_yet() -> None:
    assert claimed(running=2, pending=2, minimum=2) == 2


def test_a_group_of_which_some_have_finished_claims_nothing_for_them() -> None:
    assert claimed(running=1, succeeded=3, minimum=4) == 0


def test_all_that_a_group_holds_without_saying_what_it_needs_is_beyond_its_minimum() -> None:
    held = AXIS.vector(make_amounts(cpu=2000, pods=2))
    _, (_, _, _, elastic, *_) = part_of(make_gang("g", allocated=held))
    assert np.array_equal(elastic, held)
