"""A cycle in pieces and in one go, and one gang on demand."""

from dataclasses import replace

import pytest

from app.core.placement.statics import ShapeCache
from app.core.planner import ACTIONS, EVICTING, plan, plan_gang, plan_steps
from app.core.plugins import catalogue
from app.model.gang import Gang
from app.model.ids import NodeName, group_key
from app.model.reason import Cause
from app.model.snapshot import NominatedRoom
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_snapshot
from tests.core.actions.rigs import (
    HELM,
    Outcome,
    cores,
    cycle,
    gang_of,
    newcomer,
    policies,
    used,
    vector,
)


def test_the_actions_that_a_configuration_may_name_exist() -> None:
    assert {"allocate"} | ACTIONS.keys() | EVICTING.keys() == catalogue.ACTIONS


def test_nothing_in_nothing_out() -> None:
    empty = plan(make_snapshot(), policies(HELM), now=0.0, shapes=None)
    assert (empty.generation, empty.admitted, empty.placed, dict(empty.refused)) == (1, (), (), {})


def test_every_action_sees_what_the_ones_before_it_decided() -> None:
    gang = gang_of("g", 2, phase=GroupPhase.PENDING, min_request=vector(cpu=2))
    late_vote = policies(HELM, actions=("allocate", "enqueue"))
    outcome = cycle(gang, nodes=cores(4), by=late_vote)
    assert outcome.admitted == outcome.order == ["g"]
    assert outcome.refused == set()


# On demand


def crowd() -> tuple[Gang, ...]:
    return (
        gang_of("a", 3, created=1.0),
        gang_of("b", 3, created=2.0),
        newcomer("c", cpu=100, created=3.0),
    )


def test_a_gang_alone_is_planned_as_in_a_cycle() -> None:
    asked = cycle(*crowd(), nodes=cores(4), by=policies(HELM), on_demand="b")
    assert asked.order == ["b"]
    assert asked.nodes("b") == cycle(crowd()[1], nodes=cores(4), by=policies(HELM)).nodes("b")
    assert asked.refused == set()


def test_a_group_that_is_not_in_is_put_to_the_vote_on_demand() -> None:
    asked = cycle(*crowd(), nodes=cores(4), by=policies(HELM), on_demand="c")
    assert asked.admitted == []
    assert asked.refused == {"c"}
    fits = cycle(newcomer("d", cpu=1), nodes=cores(4), by=policies(HELM), on_demand="d")
    assert fits.admitted == fits.order == ["d"]


def test_a_gang_that_does_not_exist_gets_an_empty_plan() -> None:
    asked = cycle(*crowd(), nodes=cores(4), on_demand="nobody")
    assert (asked.admitted, asked.order, asked.refused) == ([], [], set())


def test_a_gang_that_is_cooling_down_is_not_planned_on_demand_either() -> None:
    gang = gang_of("g", 1, cool_down_until=5.0)
    asked = cycle(gang, nodes=cores(4), on_demand="g")
    assert asked.refusal("g").cause is Cause.COOLING_DOWN


def test_a_gang_that_needs_nothing_gets_nothing_and_no_reason() -> None:
    gang = make_gang("g", phase=GroupPhase.RUNNING)
    asked = cycle(gang, nodes=cores(4), on_demand="g")
    assert (asked.order, asked.refused) == ([], set())


def test_who_holds_the_rest_is_looked_up_in_cycles_only() -> None:
    nodes = cores(4)
    old = make_gang("old", phase=GroupPhase.RUNNING, allocated=vector(cpu=3))
    gang = gang_of("g", 2)
    taken = used(nodes, n0=3)
    asked = cycle(old, gang, nodes=nodes, used=taken, on_demand="g")
    planned = cycle(old, gang, nodes=nodes, used=taken)
    assert planned.refusal("g").holders
    assert asked.refusal("g") == replace(planned.refusal("g"), holders=())


# In pieces


def test_a_cycle_yields_after_every_gang() -> None:
    gangs = tuple(gang_of(f"g{i}", 1, created=float(i)) for i in range(30))
    snapshot = make_snapshot(nodes=cores(50), gangs=gangs)
    pieces = sum(1 for _ in plan_steps(snapshot, policies(HELM), now=0.0, shapes=None))
    assert pieces > len(gangs)


def test_a_cycle_yields_after_every_gang_that_goes_before_the_turns() -> None:
    gangs = tuple(gang_of(f"g{i}", 1, created=float(i), priority=2) for i in range(60))
    mine = gang_of("mine", 1, min_member=1, priority=1)
    room = {mine.key: {mine.waiting[0].uid: NominatedRoom(NodeName("n0"), done=True)}}
    snapshot = make_snapshot(nodes=cores(50), gangs=(*gangs, mine), nominated_room=room)
    pieces = sum(1 for _ in plan_steps(snapshot, policies(HELM), now=0.0, shapes=None))
    assert pieces > len(gangs)


def test_a_long_gang_is_placed_in_pieces() -> None:
    snapshot = make_snapshot(nodes=cores(400, pods=400), gangs=(gang_of("g", 320),))
    pieces = sum(1 for _ in plan_steps(snapshot, policies(), now=0.0, shapes=None))
    assert pieces > 320 / 8


@pytest.mark.parametrize("cache", [None, ShapeCache()], ids=["no cache", "a kept cache"])
def test_a_kept_cache_changes_nothing(cache: ShapeCache | None) -> None:
    snapshot = make_snapshot(nodes=cores(4), gangs=crowd())
    first, second = (
        Outcome(plan(snapshot, policies(HELM), now=0.0, shapes=cache)) for _ in range(2)
    )
    assert first.order == second.order == ["a"]
    assert first.nodes("a") == second.nodes("a")


def test_a_plan_on_demand_goes_by_the_same_key() -> None:
    snapshot = make_snapshot(nodes=cores(4), gangs=crowd())
    asked = plan_gang(
        snapshot, policies(), key=group_key("default", "a"), now=0.0, shapes=ShapeCache()
    )
    assert Outcome(asked).order == ["a"]
