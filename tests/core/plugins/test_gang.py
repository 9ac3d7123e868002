"""gang: enough members, and enough of them with a place."""

from typing import Any

import pytest

from app.core.plugins.gang import unseen
from app.model.gang import Counts, Task
from app.model.reason import Cause, Shortfall
from tests.builders import make_gang, make_node, make_shape, make_snapshot, make_task
from tests.core.plugins.sessions import open_plugin


def tasks(role: str, number: int, **fields: Any) -> tuple[Task, ...]:
    return tuple(make_task(f"{role}-{i}", role=role, **fields) for i in range(number))


def best_effort(role: str, number: int) -> tuple[Task, ...]:
    return tasks(role, number, shape=make_shape(cpu=0, memory=0))


class TestValidity:
    def test_a_group_with_all_its_members_is_valid(self) -> None:
        hooks, _ = open_plugin("gang", make_snapshot())
        assert hooks.gang_valid
        assert hooks.gang_valid(make_gang(waiting=tasks("w", 3))) is None

    def test_a_group_with_too_few_members_says_how_many_it_has(self) -> None:
        hooks, _ = open_plugin("gang", make_snapshot())
        assert hooks.gang_valid
        refusal = hooks.gang_valid(make_gang(waiting=tasks("w", 2), min_member=3))

        assert refusal is not None
        assert refusal.cause is Cause.NOT_ENOUGH_TASKS
        assert refusal.where == "default/g"
        assert refusal.shortfalls == (Shortfall("pods", asked=3, free=2),)
        expected = "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"
        assert refusal.detail == expected

    def test_failed_and_terminating_members_do_not_count_but_finished_ones_do(self) -> None:
        hooks, _ = open_plugin("gang", make_snapshot())
        assert hooks.gang_valid
        counts = Counts(running=1, succeeded=1, releasing=1, failed=1)

        assert hooks.gang_valid(make_gang(min_member=2, counts=counts)) is None
        refusal = hooks.gang_valid(make_gang(min_member=3, counts=counts))
        assert refusal is not None
        assert refusal.shortfalls[0].free == 2

    def test_roles_are_looked_at_before_the_sum(self) -> None:
        hooks, _ = open_plugin("gang", make_snapshot())
        assert hooks.gang_valid
        gang = make_gang(
            waiting=tasks("ps", 1) + tasks("worker", 2),
            min_member=9,
            role_minimum={"ps": 1, "worker": 3},
        )
        refusal = hooks.gang_valid(gang)

        assert refusal is not None
        assert refusal.cause is Cause.NOT_ENOUGH_PODS_OF_TASK
        assert refusal.where == "worker"
        assert refusal.shortfalls == (Shortfall("pods", asked=3, free=2),)
        assert refusal.detail == "Not enough valid pods of each task for gang-scheduling"

    def test_roles_do_not_count_when_the_minimum_is_less_than_their_sum(self) -> None:
        hooks, _ = open_plugin("gang", make_snapshot())
        assert hooks.gang_valid
        gang = make_gang(waiting=tasks("ps", 3), min_member=3, role_minimum={"ps": 1, "worker": 3})
        assert hooks.gang_valid(gang) is None


class TestUnseen:
    """Members that nobody has created, though room is kept for them."""

    def test_kept_room_makes_no_member(self) -> None:
        refusal = unseen(make_gang(min_member=3, counts=Counts(placed=2, slots=1)))
        assert refusal is not None
        assert refusal.cause is Cause.NOT_ENOUGH_TASKS
        assert refusal.detail.endswith("valid: 2, min: 3")

    def test_a_role_can_lack_one_though_there_are_enough_in_all(self) -> None:
        gang = make_gang(
            min_member=3,
            role_minimum={"ps": 1, "worker": 2},
            role_valid={"ps": 1, "worker": 3},
            role_slots={"ps": 1},
            counts=Counts(placed=2, pending=1, slots=1),
        )
        refusal = unseen(gang)
        assert refusal is not None
        assert refusal.cause is Cause.NOT_ENOUGH_PODS_OF_TASK
        assert refusal.where == "ps"
        assert refusal.shortfalls == (Shortfall("pods", asked=1, free=0),)

    def test_a_group_that_has_no_pods_yet_is_not_missing_any(self) -> None:
        assert unseen(make_gang(min_member=3, counts=Counts(slots=3))) is None


class TestReadiness:
    def test_a_group_is_ready_once_the_cycle_placed_its_minimum(self) -> None:
        gang = make_gang(waiting=tasks("w", 3), min_member=2)
        hooks, ledger = open_plugin("gang", make_snapshot(nodes=(make_node("n"),), gangs=(gang,)))
        assert hooks.gang_ready
        seen = [hooks.gang_ready(gang)]
        for task in gang.waiting:
            ledger.place(gang, task, node=0)
            seen.append(hooks.gang_ready(gang))

        assert seen == [False, False, True, True]

    def test_an_undone_placement_makes_it_unready_again(self) -> None:
        gang = make_gang(waiting=tasks("w", 1))
        hooks, ledger = open_plugin("gang", make_snapshot(nodes=(make_node("n"),), gangs=(gang,)))
        assert hooks.gang_ready
        with ledger.trial():
            ledger.place(gang, gang.waiting[0], node=0)
            assert hooks.gang_ready(gang)

        assert not hooks.gang_ready(gang)

    def test_each_role_needs_its_minimum(self) -> None:
        waiting = tasks("ps", 2) + tasks("worker", 2)
        gang = make_gang(waiting=waiting, min_member=3, role_minimum={"ps": 1, "worker": 2})
        hooks, ledger = open_plugin("gang", make_snapshot(nodes=(make_node("n"),), gangs=(gang,)))
        assert hooks.gang_ready
        for task in (waiting[0], waiting[1], waiting[2]):
            ledger.place(gang, task, node=0)
        assert not hooks.gang_ready(gang)

        ledger.place(gang, waiting[3], node=0)
        assert hooks.gang_ready(gang)

    @pytest.mark.parametrize("placed", [0, 1, 2])
    def test_a_waiting_best_effort_member_counts_once_placed_or_not(self, placed: int) -> None:
        waiting = best_effort("w", 2) + tasks("w", 1)
        gang = make_gang(waiting=waiting, min_member=3, role_minimum={"w": 3})
        hooks, ledger = open_plugin("gang", make_snapshot(nodes=(make_node("n"),), gangs=(gang,)))
        assert hooks.gang_ready
        for task in waiting[:placed]:
            ledger.place(gang, task, node=0)
        assert not hooks.gang_ready(gang)

        ledger.place(gang, waiting[2], node=0)
        assert hooks.gang_ready(gang)

    def test_groups_that_are_not_ready_go_first(self) -> None:
        done = make_gang("done", min_member=1, counts=Counts(running=1))
        waits = make_gang("waits", waiting=tasks("w", 1))
        hooks, _ = open_plugin("gang", make_snapshot(gangs=(done, waits)))
        assert hooks.gang_order
        assert sorted((done, waits), key=hooks.gang_order) == [waits, done]
