"""drf: the larger share gives way to the smaller one, until both are equal."""

import pytest

from tests.builders import GIB, make_node
from tests.core.contests import Runner, cluster, contest, runs, wants

NODES = (make_node("n1", cpu=10_000, memory=100 * GIB),)


@pytest.mark.parametrize(
    ("runner", "asked", "may_go"),
    [
        (runs("g", 5, cpu=1), 3, True),
        (runs("g", 5, cpu=1), 4, True),
        (runs("g", 5, cpu=1), 5, False),
        (runs("g", 1, cpu=5), 1, False),
        (runs("g", 2, cpu=1, gib=30), 3, True),
        (runs("g", 2, cpu=1, gib=30), 4, False),
    ],
)
def test_a_pod_goes_while_its_group_keeps_as_much_without_it_as_the_other_gets(
    runner: Runner, asked: int, may_go: bool
) -> None:
    new = wants("new", asked, cpu=1)
    game = contest("drf", cluster(runner, waits=(new,), nodes=NODES))
    assert game.preempts(new, "g-0") is may_go


def test_what_the_other_one_holds_already_counts() -> None:
    half = runs("half", 2, waiting=wants("half", 1).waiting, minimum=3)
    game = contest("drf", cluster(runs("g", 5), half, nodes=NODES))
    assert game.preempts(half.gang, "g-0")
    game.evicts("g-0")
    assert game.preempts(half.gang, "g-1")
    game.evicts("g-1")
    assert not game.preempts(half.gang, "g-2")


def test_it_has_no_say_inside_a_group_and_none_between_queues() -> None:
    own = runs("g", 5, waiting=wants("g").waiting)
    game = contest("drf", cluster(own, nodes=NODES))
    assert game.preempts(own.gang, "g-0") is None
    assert game.hooks.reclaimable is None
    assert game.hooks.unified_evictable is None


def test_two_groups_of_the_same_size_leave_one_another_alone() -> None:
    for held in range(1, 10):
        new = wants("new", held)
        game = contest("drf", cluster(runs("g", held), waits=(new,), nodes=NODES))
        assert not game.preempts(new, "g-0")
