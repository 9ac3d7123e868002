"""preempt for gangs that lost members, and for slots of gangs whose pods go."""

from collections import Counter
from dataclasses import replace
from typing import Any

from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import group_key
from app.model.reached import MEMBERS
from tests.core.actions.rigs import (
    Outcome,
    cores,
    gang_of,
    members,
    policies,
    vector,
)
from tests.core.contended import (
    RunningGang,
    contended,
    eviction_for,
    running_gang,
    victims,
)

ACTIONS = ("enqueue", "allocate", "preempt", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False})
BY = policies((("priority", WHOLE, "conformance"), ("predicates",)), ACTIONS)
"""Gangs may be victims, whole."""


# --- gangs below their minimum --------------------------------------------------------------------


def torn(name: str, **fields: Any) -> Gang:
    """One of two members runs, and the other one waits to come again."""
    rest = gang_of(name, 1, partial=True, min_member=2, **fields)
    return replace(rest, counts=replace(rest.counts, running=1))


def test_a_gang_that_lost_a_member_evicts_before_a_new_one() -> None:
    new, low = gang_of("new", 1, priority=9), running_gang("low", [0])
    outcome = contended(new, torn("torn", priority=5), running=[low], nodes=cores(1), by=BY)
    assert [plan.preemptor for plan in outcome.plan.evictions] == [group_key("default", "torn")]


def test_a_gang_that_lost_a_member_takes_no_pod_that_ranks_above_it() -> None:
    low = running_gang("low", [0], priority=5)
    outcome = contended(torn("torn", priority=5), running=[low], nodes=cores(1), by=BY)
    assert victims(outcome) == set()


def test_a_gang_that_lost_a_member_takes_its_turn_for_a_minimum_that_was_raised_meanwhile() -> None:
    raised = replace(
        torn("torn", priority=5),
        waiting=members("torn", 2),
        min_member=3,
        owed=Counter({MEMBERS: 2}),
    )
    low = [running_gang(f"low{at}", [at]) for at in range(3)]
    new = gang_of("new", 2, priority=9)
    outcome = contended(new, raised, running=low, nodes=cores(1, 1, 1), by=BY)
    assert len(eviction_for(outcome, "new").victims) == 2
    assert victims(outcome) == {victim.name for victim in eviction_for(outcome, "new").victims}


# --- slots of gangs whose pods go -----------------------------------------------------------------


def with_slot(low: RunningGang, *, cpu: float = 1) -> RunningGang:
    """The same gang, with room that is kept for one more member, which does not exist yet."""
    kept = vector(cpu=cpu, pods=1)
    gang = replace(
        low.gang,
        counts=replace(low.gang.counts, slots=1),
        kept=kept,
        allocated=low.gang.allocated + kept,
        request=low.gang.request + kept,
        role_ready={"": low.gang.counts.running + 1},
        role_valid={"": low.gang.counts.running + 1},
        role_slots={"": 1},
    )
    return replace(low, gang=gang)


def on_three_nodes(asks: int, *, minimum: int) -> Outcome:
    """``low`` has pods on two of three nodes of one core, and a slot on the third."""
    high, low = gang_of("high", asks, priority=9), running_gang("low", [0, 1], minimum=minimum)
    return contended(high, running=[with_slot(low)], kept=[2], nodes=cores(1, 1, 1), by=BY)


def test_a_gang_goes_whole_though_a_slot_of_it_is_open() -> None:
    assert victims(on_three_nodes(2, minimum=3)) == {"low-0", "low-1"}


def test_the_room_of_an_open_slot_is_not_counted_as_what_the_end_of_its_gang_frees() -> None:
    assert victims(on_three_nodes(3, minimum=3)) == set()


def test_a_pod_is_not_beyond_its_gangs_minimum_on_account_of_an_open_slot() -> None:
    assert victims(on_three_nodes(1, minimum=2)) == {"low-0", "low-1"}
