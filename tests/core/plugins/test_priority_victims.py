"""priority: only lower priorities go."""

import numpy as np
import pytest

from app.model.eviction import EvictionAction
from app.model.gang import Counts
from tests.builders import make_gang, make_snapshot
from tests.core.contests import cluster, contest, preemptor, runs, wants
from tests.core.plugins.sessions import open_plugin, sized_task


@pytest.mark.parametrize(("victim", "may_go"), [(4, True), (5, False), (6, False)])
def test_gangs_are_compared_by_their_own_priority(victim: int, may_go: bool) -> None:
    new = wants(priority=5, task_priority=1)
    game = contest("priority", cluster(runs("g", priority=victim, task_priority=9)))
    assert game.preempts(new, "g-0") is may_go


@pytest.mark.parametrize(("victim", "may_go"), [(1, True), (2, False), (3, False)])
def test_inside_a_gang_members_are_compared(victim: int, may_go: bool) -> None:
    waiting = (sized_task("t-0", priority=2), sized_task("t-1", priority=7))
    runner = runs("g", task_priority=victim, waiting=waiting, priority=9)
    game = contest("priority", cluster(runner))
    assert game.preempts(runner.gang, "g-0") is may_go


def test_it_has_no_say_between_queues() -> None:
    new = wants(priority=1, queue="q")
    game = contest("priority", cluster(runs("g", priority=9)))
    rule = game.hooks.unified_evictable
    assert game.hooks.reclaimable is None
    assert game.asks(rule, preemptor(new, EvictionAction.GANG_RECLAIM), "g-0") is None
    assert game.asks(rule, preemptor(new, EvictionAction.GANG_PREEMPT), "g-0") is False


def test_a_gang_starves_while_members_wait_or_its_minimum_is_not_reached() -> None:
    hooks, ledger = open_plugin("priority", make_snapshot())
    assert hooks.starving
    waiting = (sized_task("t-0"),)
    assert hooks.starving(make_gang("a", waiting=waiting, counts=Counts(running=3, pending=1)))
    assert hooks.starving(make_gang("b", min_member=1))
    assert not hooks.starving(make_gang("c", min_member=1, counts=Counts(running=1)))
    assert ledger.journal == []


def test_victims_of_a_gang_go_by_priority_the_lower_first() -> None:
    low, high = runs("low", task_priority=1), runs("high", task_priority=5)
    snapshot = cluster(high, low)
    hooks, _ = open_plugin("priority", snapshot)
    assert hooks.victim_order
    assert hooks.victim_order(snapshot.running, np.array([0, 1])).tolist() == [5, 1]
