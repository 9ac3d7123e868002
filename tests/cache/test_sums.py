import numpy as np

from app.cache.sums import QueueSums, part_of
from app.model.ids import QueueName
from tests.builders import make_gang, make_task

Q = QueueName("q")


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
