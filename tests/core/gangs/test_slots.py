"""Room for members that nobody has created yet."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.gangs.slots import has_guessed_slots, request_of, slots_of
from app.model.amounts import LARGEST_POD, Amounts
from app.model.gang import Counts, Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.shape import PodShape
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_queue, make_shape, make_snapshot, make_task
from tests.core.actions.rigs import (
    HELM,
    IDLE,
    amounts_of,
    cores,
    counts_of,
    cycle,
    gang_of,
    members,
    policies,
    sized,
    vector,
)

EMPTY = make_snapshot()
LARGEST = 2**31 - 1


def wanted(gang: Gang, made: dict[Amounts, PodShape] | None = None) -> list[tuple[str, str, float]]:
    """Name, role and cores of each slot."""
    slots = slots_of(gang, EMPTY, made={} if made is None else made)
    assert all(slot.is_slot for slot in slots)
    return [(s.name, s.role, int(s.request[0]) / 1000) for s in slots]


def unseen(minimum: int, **fields: Any) -> Gang:
    return make_gang("g", min_member=minimum, **fields)


def test_slots_have_equal_parts_of_what_the_group_asks_for_and_no_more_together() -> None:
    gang = unseen(3, min_request=vector(cpu=7))
    assert wanted(gang) == [("#0", "", 2.334), ("#1", "", 2.333), ("#2", "", 2.333)]


def test_known_members_are_taken_off_before_the_rest_is_divided() -> None:
    waiting = members("g", 1, cpu=4)
    gang = replace(
        make_gang("g", waiting=waiting, min_member=3, min_request=vector(cpu=10)), role_shapes={}
    )
    assert [cpu for _, _, cpu in wanted(gang)] == [3, 3]


def test_members_that_hold_room_are_taken_off_too() -> None:
    gang = unseen(3, min_request=vector(cpu=10), allocated=vector(cpu=4), counts=Counts(running=1))
    assert [cpu for _, _, cpu in wanted(gang)] == [3, 3]


def test_slots_look_like_their_siblings() -> None:
    gang = replace(gang_of("g", 1, cpu=2), min_member=3, min_request=vector(cpu=100))
    assert [cpu for _, _, cpu in wanted(gang)] == [2, 2]


def test_slots_have_the_role_that_lacks_members() -> None:
    shapes = {"a": sized(1), "b": sized(5)}
    gang = unseen(3, role_minimum={"a": 1, "b": 2}, role_shapes=shapes)
    assert wanted(gang) == [("a#0", "a", 1), ("b#0", "b", 5), ("b#1", "b", 5)]


def test_slots_are_the_first_pods_that_the_job_has_replicas_for() -> None:
    shapes = {"a": sized(1), "b": sized(5)}
    gang = unseen(
        6, role_minimum={"a": 1, "b": 2}, role_shapes=shapes, role_replicas={"a": 4, "b": 3}
    )
    assert [role for _, role, _ in wanted(gang)] == ["a"] * 4 + ["b"] * 2
    some = replace(gang, counts=Counts(pending=3), role_valid={"a": 1, "b": 2})
    assert [role for _, role, _ in wanted(some)] == ["a"] * 3
    beyond = replace(gang, min_member=9)
    assert [role for _, role, _ in wanted(beyond)] == ["a"] * 5 + ["b"] * 4


def test_a_role_nobody_has_seen_looks_like_the_first_that_is_known() -> None:
    gang = unseen(2, role_minimum={"a": 1, "z": 1}, role_shapes={"b": sized(5), "c": sized(1)})
    assert wanted(gang) == [("a#0", "a", 5), ("z#0", "z", 5)]


def test_other_slots_are_spread_over_the_known_roles() -> None:
    gang = unseen(4, role_minimum={"a": 1}, role_shapes={"a": sized(1), "b": sized(5)})
    assert [role for _, role, _ in wanted(gang)] == ["a", "a", "a", "b"]


def test_a_role_that_lacks_members_gets_slots_beside_others_that_have_too_many() -> None:
    waiting = members("g", 3, role="a")
    gang = make_gang(
        "g",
        waiting=waiting,
        min_member=3,
        role_minimum={"a": 1, "b": 2},
        role_shapes={"a": sized(1), "b": sized(2)},
    )
    assert [role for _, role, _ in wanted(gang)] == ["b", "b"]


def test_members_that_exist_and_cannot_be_placed_are_not_missing() -> None:
    waiting = members("g", 1)
    gang = make_gang("g", waiting=waiting, min_member=3)
    hidden = {
        "terminating": Counts(pending=1, releasing=2),
        "failed": Counts(pending=1, failed=2),
        "gated": Counts(pending=3, gated=2),
        "unknown": Counts(pending=1, unknown=2),
    }
    assert {why: wanted(replace(gang, counts=counts)) for why, counts in hidden.items()} == {
        why: [] for why in hidden
    }


def test_members_behind_gates_of_others_stand_for_none_of_another_role() -> None:
    gang = make_gang(
        "g",
        waiting=members("g", 2, role="b"),
        min_member=3,
        counts=Counts(pending=3, gated=1),
        role_minimum={"a": 1, "b": 2},
        role_valid={"b": 3},
        role_shapes={"a": sized(1), "b": sized(2)},
    )
    assert [role for _, role, _ in wanted(gang)] == ["a"]


def test_members_that_cannot_be_placed_stand_for_none_of_another_role() -> None:
    """One of role a and one of role b have failed; the other one of role a has gone."""
    gang = make_gang(
        "g",
        min_member=4,
        counts=Counts(running=1, failed=2),
        role_minimum={"a": 2, "b": 2},
        role_ready={"b": 1},
        role_valid={"b": 1},
        role_hidden={"a": 1, "b": 1},
        role_shapes={"a": sized(1), "b": sized(2)},
    )
    assert [role for _, role, _ in wanted(gang)] == ["a"]


def test_slots_that_are_kept_already_are_not_missing() -> None:
    gang = unseen(3, min_request=vector(cpu=3), counts=Counts(slots=2), allocated=vector(cpu=2))
    assert wanted(gang) == [("#0", "", 1)]


def test_nobody_knows_what_to_keep_for_a_group_that_says_nothing() -> None:
    assert wanted(unseen(3)) == []


def test_no_room_is_kept_again_for_members_that_nobody_created() -> None:
    gang = unseen(3, min_request=vector(cpu=3), phase=GroupPhase.INQUEUE)
    assert gang.is_awaited
    left = replace(gang, given_up=True)
    assert wanted(left) == []
    assert not left.is_awaited, "its queue deserves nothing for them"


def test_equal_requests_have_one_shape() -> None:
    made: dict[Amounts, PodShape] = {}
    first = slots_of(unseen(2, min_request=vector(cpu=2)), EMPTY, made=made)
    second = slots_of(unseen(4, min_request=vector(cpu=4)), EMPTY, made=made)
    assert len({id(slot.shape) for slot in (*first, *second)}) == 1


# In a cycle


def test_a_gang_that_nobody_has_created_gets_room_for_all_of_it() -> None:
    gang = unseen(3, phase=GroupPhase.PENDING, min_request=vector(cpu=3))
    outcome = cycle(gang, nodes=cores(2, 1), by=policies(HELM))
    assert outcome.admitted == ["g"]
    (decided,) = outcome.decisions("g")
    assert decided.whole
    assert sorted(p.node for p in decided.placements) == ["n0", "n0", "n1"]


def test_a_gang_that_nobody_has_created_gets_all_or_nothing() -> None:
    outcome = cycle(unseen(3, min_request=vector(cpu=3)), nodes=cores(2))
    assert outcome.order == []
    assert outcome.refusal("g").lacking == 1


def test_members_that_exist_go_before_slots() -> None:
    gang = replace(gang_of("g", 2), min_member=3)
    assert cycle(gang, nodes=cores(4)).members("g") == ["g-0", "g-1", "#0"]


def test_slots_are_made_for_the_minimum_only() -> None:
    waiting = members("g", 3)
    gang = make_gang("g", waiting=waiting, min_member=2, min_request=vector(cpu=100))
    assert cycle(gang, nodes=cores(9)).members("g") == ["g-0", "g-1", "g-2"]


def test_a_group_that_says_nothing_waits_for_its_pods() -> None:
    outcome = cycle(unseen(3), nodes=cores(9))
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_TASKS
    assert outcome.text("g") == "group default/g: pods asked 3, present 0"


def test_slots_count_against_the_queue() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=2))
    gang = replace(unseen(3, min_request=vector(cpu=3)), queue=QueueName("q"))
    by = policies((("gang",), ("capacity",)), ("allocate",))
    outcome = cycle(gang, nodes=cores(9), queues=[queue], by=by)
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA


def test_slots_without_requests_are_placed_by_allocate() -> None:
    gang = unseen(2, role_shapes={"": IDLE})
    assert len(cycle(gang, nodes=cores(1)).members("g")) == 2


def test_a_gang_with_a_missing_and_a_gated_member_gets_no_slots() -> None:
    waiting = members("g", 1)
    counts = replace(counts_of(waiting), pending=2, gated=1)
    gang = make_gang("g", waiting=waiting, min_member=3, counts=counts)
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_TASKS


def test_no_room_is_kept_for_a_role_whose_member_is_on_its_way_out() -> None:
    waiting = members("g", 2, role="a")
    gang = make_gang(
        "g",
        waiting=waiting,
        min_member=4,
        role_minimum={"a": 2, "b": 2},
        counts=replace(counts_of(waiting), releasing=1),
    )
    assert [role for _, role, _ in wanted(gang)] == ["b"]
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_PODS_OF_TASK


@pytest.mark.parametrize(
    "fields",
    [
        {"min_request": vector(cpu=3)},
        {"role_shapes": {"": IDLE}},
        {"role_shapes": {"a": IDLE}, "role_minimum": {"a": LARGEST}},
    ],
    ids=["by its request", "by its siblings", "by its roles"],
)
def test_no_slots_are_made_for_more_members_than_all_nodes_take(fields: dict[str, Any]) -> None:
    outcome = cycle(unseen(LARGEST, **fields), nodes=cores(2))
    assert outcome.order == []
    assert str(LARGEST) in outcome.text("g")


def test_a_cluster_that_is_still_to_grow_gets_its_slots_counted() -> None:
    outcome = cycle(unseen(3, min_request=vector(cpu=3)))
    assert outcome.refusal("g").cause is Cause.NO_NODE_FITS


def test_what_the_largest_gang_asks_for_does_not_stop_others_of_its_queue() -> None:
    """Sums stay below 2^63: a negative request of a queue would deserve nothing."""
    shape = make_shape(memory=LARGEST_POD)
    greedy = replace(
        make_gang("greedy", waiting=(make_task("greedy-0", shape=shape),)), min_member=1_000
    )
    outcome = cycle(greedy, gang_of("modest", 1), nodes=cores(2))
    assert outcome.members("modest") == ["modest-0"]


ROLES = st.sampled_from(["", "a", "b", "c"])


@st.composite
def gangs(draw: st.DrawFn) -> Gang:
    """Gangs that lack members: of roles with and without shapes, some of them waiting."""
    shapes = draw(st.dictionaries(ROLES, st.sampled_from([IDLE, sized(1), sized(2)])))
    minimum = draw(st.dictionaries(ROLES, st.integers(0, 5), max_size=3))
    waiting = members("g", draw(st.integers(0, 2)), cpu=draw(st.integers(1, 4)))
    asked = draw(st.one_of(st.none(), st.integers(0, 40)))
    gang = make_gang(
        "g",
        waiting=waiting,
        min_member=draw(st.integers(0, 12)),
        min_request=None if asked is None else vector(cpu=asked),
    )
    return replace(gang, role_shapes=shapes, role_minimum=minimum)


@given(gangs())
def test_the_sum_is_that_of_the_slots(gang: Gang) -> None:
    slots = slots_of(gang, EMPTY, made={})
    parts = sum((slot.request for slot in slots), np.zeros_like(gang.request))
    assert request_of(gang, EMPTY).tolist() == parts.tolist()


def test_the_sum_makes_no_slots() -> None:
    """Queues are asked for it all the time, also by whoever scrapes metrics."""
    gang = unseen(1_000, role_shapes={"": sized(2)})
    tracemalloc.start()
    assert int(request_of(gang, EMPTY)[0]) == 2_000_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000 * 8, "not even a list of them"


def test_equal_parts_of_what_the_group_asks_for_are_guessed() -> None:
    assert has_guessed_slots(unseen(3, min_request=vector(cpu=7)))


def test_slots_of_roles_that_the_owner_describes_are_not_guessed() -> None:
    described = {"role_shapes": {"a": sized(1), "b": sized(5)}, "role_replicas": {"a": 1, "b": 2}}
    assert not has_guessed_slots(unseen(3, role_minimum={"a": 1, "b": 2}, **described))


def test_a_slot_that_looks_like_members_that_are_all_gone_is_guessed() -> None:
    """Whoever made the pods of a group without a job may never make others in their stead."""
    gang = unseen(2, role_shapes={"": sized(1)}, counts=Counts(releasing=2, lost=2))
    assert has_guessed_slots(gang)
    assert not has_guessed_slots(replace(gang, counts=Counts(releasing=1, lost=1, running=1)))
    assert not has_guessed_slots(replace(gang, role_replicas={"": 2}))


def test_a_slot_of_a_role_that_looks_like_a_sibling_of_another_is_guessed() -> None:
    gang = unseen(
        3, role_minimum={"a": 1, "b": 2}, role_shapes={"a": sized(1)}, counts=Counts(pending=1)
    )
    assert has_guessed_slots(gang)
    assert not has_guessed_slots(replace(gang, role_valid={"b": 2}, counts=Counts(pending=2)))


def test_a_gang_that_lacks_nobody_has_no_slots_that_could_be_guessed() -> None:
    assert not has_guessed_slots(gang_of("g", 3, cpu=1))
    assert not has_guessed_slots(unseen(3, min_request=vector(cpu=7), given_up=True))
