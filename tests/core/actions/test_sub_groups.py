"""Gangs that are parted: sub-groups are whole, and as many of them as the minimum wants."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.gang import Counts, Gang
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Shortfall
from app.model.shape import PodTerm
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_node, make_queue, make_task
from tests.core.actions.rigs import (
    IDLE,
    Outcome,
    amounts_of,
    cores,
    cycle,
    members,
    policies,
    sized,
)
from tests.core.placement.rigs import HOST, app_is
from tests.topology import SOFT


def of(number: int | str) -> SubGroup:
    return SubGroup("s", str(number))


def parted(sizes: str, *, size: int, least: int = 0, minimum: int = 1, **fields: Any) -> Gang:
    """One member per character of ``sizes``, in the sub-group of that name, "-" in none."""
    waiting = fields.pop("waiting", None) or members("g", len(sizes), cpu=fields.pop("cpu", 1))
    sub_group_of = {
        task.uid: of(name) for task, name in zip(waiting, sizes, strict=True) if name != "-"
    }
    ready = fields.pop("ready", {})
    gang = make_gang("g", min_member=minimum, waiting=waiting)
    return replace(
        gang,
        sub_groups=(SubGroupPolicy("s", keys=("k",), size=size, least=least),),
        sub_group_of=sub_group_of,
        sub_group_ready=ready,
        sub_group_valid=Counter(ready) + Counter(sub_group_of.values()),
        **fields,
    )


def placed(outcome: Outcome, gang: Gang) -> dict[str, int]:
    """How many members of each sub-group have places; "-" of none."""
    tasks = [p.task for d in outcome.decisions("g") for p in d.placements]
    names = (gang.sub_group_of.get(task.uid, of("-")).values for task in tasks)
    return dict(sorted(Counter(names).items()))


def test_members_of_two_sub_groups_are_not_the_minimum_of_one() -> None:
    gang = parted("0011", size=2, least=1, minimum=2)
    assert placed(cycle(gang, nodes=cores(2)), gang) == {"0": 2}


def test_as_many_are_whole_as_the_policy_wants_or_nobody_is_placed() -> None:
    gang = parted("001122", size=2, least=2, minimum=2)
    outcome = cycle(gang, nodes=cores(3))
    assert placed(outcome, gang) == {}
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    assert refusal.shortfalls == (Shortfall("cpu", asked=4000, free=3000, limit=3000),)
    assert placed(cycle(gang, nodes=cores(4)), gang) == {"0": 2, "1": 2}


def test_a_limit_that_is_reached_half_way_is_told_in_the_numbers_of_the_minimum() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=3))
    gang = replace(parted("0011", size=2, least=2, minimum=2), queue=queue.name)
    by = policies((("gang",), ("capacity",)))
    outcome = cycle(gang, nodes=cores(9), queues=[queue], by=by)
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA
    assert outcome.refusal("g").shortfalls == (Shortfall("cpu", asked=4000, free=3000, limit=3000),)


def test_beyond_the_minimum_a_sub_group_is_whole_or_absent_as_well() -> None:
    gang = parted("000111", size=3, least=1, minimum=3)
    outcome = cycle(gang, nodes=cores(5))
    assert placed(outcome, gang) == {"0": 3}
    assert outcome.text("g").startswith("group default/g: cpu asked 3, free 2 of 5; ")
    assert [d.whole for d in cycle(gang, nodes=cores(6)).decisions("g")] == [True, False]


def test_another_sub_group_stands_in_for_one_that_does_not_fit() -> None:
    waiting = (*members("big", 2, cpu=3), *members("small", 2, cpu=1))
    gang = parted("0011", size=2, least=1, minimum=2, waiting=waiting)
    assert placed(cycle(gang, nodes=cores(3)), gang) == {"1": 2}


def test_a_sub_group_that_does_not_fit_gives_its_room_back() -> None:
    waiting = (*members("mixed", 1, cpu=1), *members("big", 1, cpu=9), *members("small", 2, cpu=1))
    gang = parted("0011", size=2, least=1, minimum=2, waiting=waiting)
    assert placed(cycle(gang, nodes=cores(2)), gang) == {"1": 2}


def test_members_beyond_the_size_go_one_by_one_once_it_is_whole() -> None:
    gang = parted("0000", size=2, least=1, minimum=2)
    outcome = cycle(gang, nodes=cores(3))
    assert placed(outcome, gang) == {"0": 3}
    assert [len(d.placements) for d in outcome.decisions("g")] == [2, 1]


def test_a_minimum_of_more_than_whole_sub_groups_takes_members_beyond_their_size() -> None:
    gang = parted("000", size=2, least=1, minimum=3)
    assert placed(cycle(gang, nodes=cores(3)), gang) == {"0": 3}
    assert placed(cycle(gang, nodes=cores(2)), gang) == {}


def test_one_that_is_begun_goes_before_others() -> None:
    """It lacks less than they do, and what it holds is of no use before."""
    gang = parted("001", size=2, least=1, minimum=2, ready={of(1): 1})
    gang = replace(gang, counts=Counts(pending=3, running=1), phase=GroupPhase.RUNNING)
    assert placed(cycle(gang, nodes=cores(2)), gang) == {"1": 1}


def test_another_member_of_a_sub_group_stands_in_for_one_that_does_not_fit() -> None:
    waiting = (*members("big", 1, cpu=9), *members("small", 2, cpu=1))
    gang = parted("000", size=2, least=1, minimum=2, waiting=waiting)
    outcome = cycle(gang, nodes=cores(2))
    assert outcome.members("g") == ["small-0", "small-1"]
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES
    gang = parted("11000", size=2, least=1, minimum=2, waiting=(*members("a", 2), *waiting))
    assert placed(cycle(gang, nodes=cores(4)), gang) == {"0": 2, "1": 2}


def test_of_a_sub_group_those_stand_in_that_the_minimums_of_roles_still_need() -> None:
    waiting = tuple(make_task(f"g-{i}", shape=sized(1), role=role) for i, role in enumerate("abab"))
    gang = parted("0011", size=1, least=2, minimum=2, waiting=waiting)
    gang = replace(gang, role_minimum={"a": 1, "b": 1}, role_valid={"a": 2, "b": 2})
    assert cycle(gang, nodes=cores(2)).members("g") == ["g-0", "g-3"]


def test_members_that_must_be_near_others_come_after_these() -> None:
    """Whatever their priority, and be they of the same sub-group or of another one."""
    near = (PodTerm(HOST, app_is("server"), namespaces=("default",)),)
    worker = sized(pod_affinity=near)
    server = sized(spread_identity=("default", (("app", "server"),)))
    waiting = (*members("a", 2, shape=worker, priority=2), *members("b", 2, shape=server))
    node = make_node("n0", cpu=4000, labels={HOST: "n0"})
    for sizes in ("0011", "0101"):
        for minimum in (2, 4):
            gang = parted(sizes, size=2, least=minimum // 2, minimum=minimum, waiting=waiting)
            outcome = cycle(gang, nodes=[node], inter_pod=True)
            assert placed(outcome, gang) == {"0": 2, "1": 2}


def test_members_of_no_sub_group_are_of_use_by_themselves() -> None:
    gang = parted("-00-", size=2, least=1, minimum=3)
    assert placed(cycle(gang, nodes=cores(3)), gang) == {"-": 1, "0": 2}


def test_what_a_sub_group_has_already_counts() -> None:
    gang = parted("0", size=2, least=1, minimum=2, ready={of(0): 1})
    gang = replace(gang, counts=Counts(pending=1, running=1), phase=GroupPhase.RUNNING)
    assert placed(cycle(gang, nodes=cores(1)), gang) == {"0": 1}


def test_too_few_sub_groups_are_told_in_volcanos_words_and_with_numbers() -> None:
    outcome = cycle(parted("0001", size=2, least=2, minimum=2), nodes=cores(9))
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_PODS_OF_TASK
    assert refusal.detail == "Not enough valid subGroups of each task for gang-scheduling"
    assert outcome.text("g") == "task s: sub-groups asked 2, present 1"
    assert outcome.order == []


def test_members_that_make_no_sub_group_whole_do_not_make_the_minimum() -> None:
    outcome = cycle(parted("001", size=2, least=1, minimum=3), nodes=cores(9))
    assert outcome.order == []
    assert outcome.text("g") == "task s/1: pods asked 2, present 1"


def test_no_room_is_kept_for_members_of_which_nobody_knows_the_sub_group() -> None:
    gang = replace(parted("0", size=2, least=1, minimum=2), role_shapes={"": sized(1)})
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_PODS_OF_TASK


def test_room_is_kept_for_missing_members_where_no_sub_group_has_to_be_whole() -> None:
    """So a task with partitions may wait for another one to run before its pods are created."""
    gang = replace(parted("00", size=2, minimum=5), role_shapes={"": sized(1)})
    outcome = cycle(gang, nodes=cores(5))
    assert outcome.nodes("g") == {"g-0": "n0", "g-1": "n0", "#0": "n0", "#1": "n0", "#2": "n0"}
    assert cycle(gang, nodes=cores(4)).order == []


def test_no_room_is_kept_for_missing_members_whose_sub_groups_ask_for_a_domain() -> None:
    """Nothing tells which of them have to be together."""
    gang = replace(parted("", size=2, minimum=4, waiting=()), role_shapes={"s": sized(1)})
    gang = replace(gang, role_replicas={"s": 4}, counts=Counts())
    assert len(cycle(gang, nodes=cores(5)).nodes("g")) == 4
    policy = replace(gang.sub_groups[0], topology=SOFT)
    assert cycle(replace(gang, sub_groups=(policy,)), nodes=cores(5)).order == []
    other = replace(policy, name="other")
    assert cycle(replace(gang, sub_groups=(other,)), nodes=cores(5)).order == []
    both = replace(gang, sub_groups=(other,), role_replicas={"s": 4, "other": 0})
    assert len(cycle(both, nodes=cores(5)).nodes("g")) == 4


def test_members_that_request_nothing_are_part_of_their_sub_group() -> None:
    waiting = (*members("a", 1, cpu=1), *members("b", 1, shape=IDLE))
    gang = parted("00", size=2, least=1, minimum=2, waiting=waiting)
    gang = replace(gang, counts=Counts(pending=2, pending_best_effort=1))
    assert placed(cycle(gang, nodes=cores(1)), gang) == {"0": 2}
    assert placed(cycle(gang, nodes=cores(0)), gang) == {}


def test_one_that_requests_nothing_does_not_go_before_its_sub_group_is_whole() -> None:
    waiting = (*members("a", 2, cpu=1), *members("b", 1, cpu=9), *members("c", 1, shape=IDLE))
    gang = parted("0011", size=2, least=1, minimum=2, waiting=waiting)
    gang = replace(gang, counts=Counts(pending=4, pending_best_effort=1))
    assert placed(cycle(gang, nodes=cores(2)), gang) == {"0": 2}


def test_beyond_the_minimum_one_that_requests_nothing_may_make_a_sub_group_whole() -> None:
    idle = members("b", 1, shape=IDLE)
    gang = parted("1", size=2, least=1, ready={of(0): 2, of(1): 1}, waiting=idle)
    counts = Counts(pending=1, pending_best_effort=1, running=3)
    gang = replace(gang, counts=counts, phase=GroupPhase.RUNNING)
    assert placed(cycle(gang, nodes=cores(1)), gang) == {"1": 1}


@pytest.mark.parametrize("sizes", ["001", "0012"])
def test_who_waits_for_the_rest_of_a_sub_group_beyond_the_minimum_is_told_so(sizes: str) -> None:
    gang = parted(sizes, size=2, least=1, minimum=2)
    outcome = cycle(gang, nodes=cores(9))
    assert placed(outcome, gang) == {"0": 2}
    assert outcome.text("g") == "task s/1: pods asked 2, present 1"


def test_gates_of_others_that_hold_a_sub_group_are_told_however_many_others_run() -> None:
    gang = parted("", size=1, least=2, minimum=2, ready={of(0): 3}, waiting=members("g", 0))
    gang = replace(
        gang,
        counts=Counts(pending=1, gated=1, running=3),
        phase=GroupPhase.RUNNING,
        sub_group_valid={of(0): 3, of(1): 1},
    )
    outcome = cycle(gang, nodes=cores(9))
    assert outcome.refusal("g").cause is Cause.GATED
    assert outcome.text("g") == "group default/g: pods asked 2, ungated 1"


def test_a_quota_stops_a_sub_group_as_a_whole() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=5))
    gang = replace(parted("000111", size=3, least=1, minimum=3), queue=queue.name)
    outcome = cycle(gang, nodes=cores(9), queues=[queue], by=policies((("gang",), ("capacity",))))
    assert placed(outcome, gang) == {"0": 3}
    assert outcome.text("g") == "queue q: cpu asked 3, free 2 of 5"


def test_two_policies_of_one_name_break_nothing() -> None:
    gang = parted("0011", size=2, least=1, minimum=2)
    gang = replace(gang, sub_groups=(replace(gang.sub_groups[0], size=1), *gang.sub_groups))
    assert placed(cycle(gang, nodes=cores(3)), gang) == {"0": 2}


@pytest.mark.parametrize("tiers", [(), (PluginConf("priority"),)], ids=["none", "priority"])
def test_it_holds_without_the_gang_plugin_too(tiers: tuple[PluginConf, ...]) -> None:
    """What is placed are whole gangs, whatever is configured."""
    gang = parted("0011", size=2, least=2, minimum=1)
    outcome = cycle(gang, nodes=cores(3), by=policies((tiers, ("predicates",))))
    assert placed(outcome, gang) == {}
