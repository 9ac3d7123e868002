"""allocate: which members go where: roles, extras, pins, vetoes, members without requests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName
from app.model.reason import Cause, NodeCount
from app.model.snapshot import Veto
from app.model.workload import GroupPhase
from tests.builders import make_gang
from tests.core.actions.rigs import (
    BARE,
    IDLE,
    cores,
    counts_of,
    cycle,
    gang_of,
    members,
    policies,
    sized,
    used,
)


def team(name: str, waiting: Sequence[Task], minimum: int, **fields: Any) -> Gang:
    """A gang of ``waiting`` that needs ``minimum`` of them."""
    return make_gang(name, waiting=tuple(waiting), min_member=minimum, **fields)


# Roles


def test_members_that_a_role_needs_go_first() -> None:
    waiting = members("g", 3, role="a") + members("g", 2, role="b")
    gang = team("g", waiting, 3, role_minimum={"a": 1, "b": 2})
    outcome = cycle(gang, nodes=cores(3))
    assert set(outcome.members("g")) == {"g-a-0", "g-b-0", "g-b-1"}


def test_a_gang_whose_role_does_not_fit_holds_nothing() -> None:
    waiting = members("g", 3, role="a") + members("g", 1, cpu=5, role="b")
    gang = team("g", waiting, 3, role_minimum={"a": 1, "b": 1})
    outcome = cycle(gang, nodes=cores(4))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES


def test_minimums_of_roles_that_add_up_to_more_than_the_minimum_do_not_count() -> None:
    waiting = members("g", 2, role="a") + members("g", 1, cpu=5, role="b")
    gang = team("g", waiting, 2, role_minimum={"a": 2, "b": 1})
    assert set(cycle(gang, nodes=cores(4)).members("g")) == {"g-a-0", "g-a-1"}


def test_members_of_roles_that_have_theirs_fill_up_to_the_minimum() -> None:
    waiting = members("g", 4, role="a") + members("g", 1, role="b")
    gang = team("g", waiting, 4, role_minimum={"b": 1})
    outcome = cycle(gang, nodes=cores(4))
    assert len(outcome.members("g")) == 4
    assert "g-b-0" in outcome.members("g")


def test_roles_count_what_has_a_place_already() -> None:
    waiting = members("g", 2, role="a") + members("g", 1, role="b")
    gang = team(
        "g",
        waiting,
        3,
        role_minimum={"a": 2, "b": 1},
        counts=replace(counts_of(waiting), running=1),
        role_ready={"a": 1},
        role_valid={"a": 3, "b": 1},
    )
    assert set(cycle(gang, nodes=cores(2)).members("g")) == {"g-a-0", "g-b-0"}


def test_a_role_with_too_few_members_is_told() -> None:
    waiting = members("g", 3, role="a")
    gang = team(
        "g",
        waiting,
        3,
        role_minimum={"a": 1, "b": 1},
        counts=replace(counts_of(waiting), unknown=2),
    )
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_PODS_OF_TASK
    assert refusal.detail == "Not enough valid pods of each task for gang-scheduling"
    assert outcome.text("g") == "task b: pods asked 1, present 0"


def test_too_few_members_are_told_in_volcanos_words() -> None:
    waiting = members("g", 1)
    gang = team("g", waiting, 3, counts=replace(counts_of(waiting), failed=2))
    refusal = cycle(gang, nodes=cores(9)).refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_TASKS
    assert refusal.detail == "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"


def test_more_members_of_another_role_do_not_stand_for_one_behind_a_foreign_gate() -> None:
    waiting = members("g", 3, role="a") + members("g", 1, role="b")
    gang = team(
        "g",
        waiting,
        4,
        role_minimum={"a": 2, "b": 2},
        counts=replace(counts_of(waiting), pending=5, gated=1),
        role_valid={"a": 3, "b": 2},
    )
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.GATED
    assert outcome.text("g") == "group default/g: pods asked 4, ungated 3"


def test_so_it_is_however_many_of_the_other_role_have_places() -> None:
    gang = team(
        "g",
        (),
        2,
        role_minimum={"a": 1, "b": 1},
        counts=Counts(pending=1, gated=1, running=3),
        role_ready={"a": 3},
        role_valid={"a": 3, "b": 1},
    )
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.refusal("g").cause is Cause.GATED
    assert outcome.text("g") == "group default/g: pods asked 2, ungated 1"


def test_members_behind_foreign_gates_are_waited_for() -> None:
    waiting = members("g", 1)
    gang = team("g", waiting, 3, counts=replace(counts_of(waiting), pending=3, gated=2))
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.GATED
    assert outcome.text("g") == "group default/g: pods asked 3, ungated 1"


# Which members make up the minimum


def test_a_member_that_fits_nowhere_is_made_up_for_by_others() -> None:
    waiting = members("g", 1, cpu=50, role="big") + members("g", 2, role="small")
    outcome = cycle(team("g", waiting, 2), nodes=cores(4))
    assert set(outcome.members("g")) == {"g-small-0", "g-small-1"}
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES


def test_members_go_by_priority_then_index() -> None:
    waiting = (*members("g", 11), members("g", 12, priority=7)[11])
    outcome = cycle(team("g", waiting[::-1], 3), nodes=cores(3))
    assert outcome.members("g") == ["g-11", "g-0", "g-1"]


def test_equal_members_are_not_asked_for_twice() -> None:
    waiting = members("g", 300)
    outcome = cycle(team("g", waiting, 300), nodes=cores(200))
    assert outcome.order == []
    assert outcome.refusal("g").lacking == 300 - 110


# Beyond the minimum


def test_members_beyond_the_minimum_come_one_per_turn() -> None:
    one = team("one", members("one", 4), 1)
    other = team("other", members("other", 4), 1, created=1.0)
    by = policies((("gang", "drf"),))
    outcome = cycle(one, other, nodes=cores(6), by=by)
    assert outcome.order == ["one", "other", "one", "other", "one", "other"]
    assert [d.whole for d in outcome.decisions("one")] == [True, False, False]


def test_minimums_come_before_members_beyond_them() -> None:
    elastic = team("elastic", members("elastic", 4), 1)
    late = gang_of("late", 3, created=5.0)
    outcome = cycle(elastic, late, nodes=cores(4))
    assert outcome.order == ["elastic", "late"]
    assert outcome.refused == {"elastic"}


def test_a_member_beyond_the_minimum_that_does_not_fit_harms_nobody() -> None:
    outcome = cycle(team("g", members("g", 5), 2), nodes=cores(3))
    assert len(outcome.members("g")) == 3
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    assert refusal.where == "default/g"
    assert refusal.lacking == 0


def test_other_members_are_tried_after_one_that_does_not_fit() -> None:
    waiting = members("g", 2, cpu=9, role="a") + members("g", 2, role="b")
    gang = team("g", waiting, 0)
    assert set(cycle(gang, nodes=cores(4)).members("g")) == {"g-b-0", "g-b-1"}


def test_a_group_without_a_minimum_gets_what_fits() -> None:
    outcome = cycle(team("g", members("g", 3), 0), nodes=cores(2))
    assert len(outcome.members("g")) == 2
    assert not any(decided.whole for decided in outcome.decisions("g"))


# Where they may go


def pinned(node: str) -> Task:
    return members("g", 1, pinned=NodeName(node))[0]


def test_a_pinned_member_goes_to_its_node_only() -> None:
    assert cycle(team("g", [pinned("n1")], 1), nodes=cores(9, 1)).nodes("g") == {"g-0": "n1"}


def test_a_pinned_member_waits_for_room_on_its_node() -> None:
    nodes = cores(9, 1)
    outcome = cycle(team("g", [pinned("n1")], 1), nodes=nodes, used=used(nodes, n1=1))
    assert outcome.order == []
    assert {n.text: n.nodes for n in outcome.refusal("g").nodes} == {
        "Insufficient cpu": 1,
        "node(s) didn't match Pod's node affinity/selector": 1,
    }


def test_a_member_pinned_to_a_node_that_is_gone_fits_nowhere() -> None:
    outcome = cycle(team("g", [pinned("gone")], 1), nodes=cores(9, 1))
    assert outcome.refusal("g").cause is Cause.NO_NODE_FITS


def test_a_pinned_member_that_does_not_fit_does_not_stop_its_equals() -> None:
    nodes = cores(4, 1)
    waiting = [pinned("n1"), *members("g", 3)[1:]]
    outcome = cycle(team("g", waiting, 2), nodes=nodes, used=used(nodes, n1=1))
    assert set(outcome.nodes("g")) == {"g-1", "g-2"}


def test_a_nominated_node_is_tried_first_and_others_after_it() -> None:
    nodes = cores(9, 1)
    waiting = members("g", 2, nominated=NodeName("n1"))
    assert cycle(team("g", waiting, 2), nodes=nodes).nodes("g") == {"g-0": "n1", "g-1": "n0"}


def test_a_vetoed_node_is_left_out_for_that_shape_alone() -> None:
    refused, other = sized(1, images=("x:1",)), sized(1)
    vetoes = frozenset({Veto(refused, NodeName("n0"))})
    waiting = members("g", 1, shape=refused, role="a") + members("g", 1, shape=other, role="b")
    outcome = cycle(team("g", waiting, 2), nodes=cores(1, 1), vetoes=vetoes)
    assert outcome.nodes("g") == {"g-a-0": "n1", "g-b-0": "n0"}


def test_a_shape_that_is_vetoed_everywhere_waits_and_says_so() -> None:
    shape = sized(1)
    vetoes = frozenset(Veto(shape, NodeName(node)) for node in ("n0", "n1", "gone"))
    outcome = cycle(team("g", members("g", 1, shape=shape), 1), nodes=cores(4, 4), vetoes=vetoes)
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.VETOED
    assert refusal.nodes == (NodeCount("node(s) were refused by the scheduler's own filters", 2),)


# Members that request nothing


def test_members_without_requests_that_the_minimum_needs_get_a_node_with_it() -> None:
    waiting = members("g", 1) + members("g", 1, shape=IDLE, role="idle")
    by = policies(actions=("enqueue", "allocate"))
    outcome = cycle(team("g", waiting, 2), nodes=cores(4), by=by)
    assert set(outcome.members("g")) == {"g-0", "g-idle-0"}


def test_members_without_requests_come_last() -> None:
    waiting = members("g", 2, shape=IDLE, role="idle") + members("g", 2)
    by = policies(actions=("enqueue", "allocate"))
    outcome = cycle(team("g", waiting, 3), nodes=cores(4), by=by)
    assert outcome.members("g") == ["g-0", "g-1", "g-idle-0"]
    assert outcome.refused == {"g"}


def test_members_without_requests_do_not_make_a_gang_that_has_no_nodes_for_them() -> None:
    waiting = members("g", 1) + members("g", 2, shape=IDLE, role="idle")
    outcome = cycle(team("g", waiting, 3), nodes=cores(4, pods=2))
    assert outcome.order == []
    assert outcome.refused == {"g"}


@pytest.mark.parametrize("actions", [("allocate",), ("allocate", "backfill")], ids=str)
def test_a_gang_of_members_without_requests_is_a_gang(actions: tuple[str, ...]) -> None:
    gang = team("g", members("g", 3, shape=IDLE), 3)
    assert len(cycle(gang, nodes=cores(4), by=policies(actions=actions)).members("g")) == 3
    assert cycle(gang, nodes=cores(4, pods=2), by=policies(actions=actions)).order == []


# Actions that are configured twice


@pytest.mark.parametrize("minimum", [1, 3])
def test_an_action_that_comes_again_gives_nobody_a_second_place(minimum: int) -> None:
    twice = policies(BARE, ("enqueue", "allocate", "backfill", "allocate", "backfill"))
    outcome = cycle(team("g", members("g", 3), minimum), nodes=cores(8), by=twice)
    assert outcome.members("g") == ["g-0", "g-1", "g-2"]


def test_an_action_that_comes_again_serves_gangs_that_were_admitted_between() -> None:
    late = policies(BARE, ("allocate", "enqueue", "allocate"))
    outcome = cycle(
        team("g", members("g", 2), 2, phase=GroupPhase.PENDING), nodes=cores(8), by=late
    )
    assert outcome.members("g") == ["g-0", "g-1"]
