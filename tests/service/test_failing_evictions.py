"""Eviction plans that fail: the cluster is another one, victims stay, or others take the room."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.model.eviction import EvictionAction
from app.model.ids import PodUid
from app.model.plan import Plan
from app.model.pod import GATE
from app.service.cycle.begun_eviction import Fate
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from app.telemetry import metrics
from tests.service.evicting import TWO, Contended
from tests.service.rig import CONFLICT, FAILING, REFUSED, working
from tests.service.virtual_time import advance, settle

Happens = Callable[[Contended], None]
BUDGET = WriteError(Reaction.BUDGET, "429: budget", retry_after_s=10.0)


# --- what the live cluster does not bear ----------------------------------------------------------


def gone(rig: Contended) -> None:
    rig.delete("low-0")


def another_pod_of_that_name(rig: Contended) -> None:
    pod = rig.api.pods["default/low-0"]
    rig.store(replace(pod, uid=PodUid("uid-anew")))


def other_minimum(rig: Contended) -> None:
    rig.group("high", minimum=1)


def group_gone(rig: Contended) -> None:
    group = rig.cache.groups[rig.key("high")].pod_group
    rig.unsee("podgroups", group)


def too_little_room(rig: Contended) -> None:
    rig.node("n1", cpu=3000)


def member_gone(rig: Contended) -> None:
    rig.delete("high-0")


def cordoned(rig: Contended) -> None:
    rig.node("n1", cpu=4000, unschedulable=True)


@pytest.mark.parametrize(
    "happens",
    [
        gone,
        another_pod_of_that_name,
        other_minimum,
        group_gone,
        too_little_room,
        member_gone,
        cordoned,
    ],
)
async def test_a_plan_that_does_not_hold_any_more_evicts_no_pod(happens: Happens) -> None:
    rig = Contended()
    with working(rig):
        now = rig.clock()
        token = rig.planning.cycle.input.token(now)
        plan = rig.plan()
        happens(rig)
        decided = Plan(token.snapshot.generation, evictions=(plan,))
        assert rig.planning.publisher.publish(decided, token, now=now)
        await advance(5.0)
        assert rig.evicted() == []
        assert rig.api.intents == {}


async def test_no_pod_is_in_two_plans() -> None:
    rig = Contended()
    rig.group("second", minimum=1)
    rig.pod("second-0", group="second", shape=TWO, gates=(GATE,))
    rig.decide(rig.plan())
    assert rig.decide(rig.plan(("low-1",), (("second-0", "n1"),), group="second"))
    assert rig.begun("second") is None


async def test_a_group_has_one_plan_at_a_time() -> None:
    rig = Contended()
    rig.decide(rig.plan())
    first = rig.begun()
    rig.decide(rig.plan(("low-2", "low-3"), (("high-0", "n2"), ("high-1", "n2"))))
    assert rig.begun() is first


# --- victims that stay ----------------------------------------------------------------------------


async def test_a_budget_that_forbids_an_eviction_lets_the_plan_wait() -> None:
    rig = Contended()
    rig.api.fails["evict default/low-1"] = [BUDGET]
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        assert rig.evicted() == ["low-0"]
        begun = rig.begun()
        assert begun is not None
        assert begun.fates[PodUid("uid-low-1")] is Fate.FORBIDDEN
        await advance(11.0)
        assert rig.evicted() == ["low-0", "low-1"]


async def test_a_budget_that_goes_on_forbidding_it_ends_the_plan_and_the_pod_is_left_alone() -> (
    None
):
    rig = Contended()
    rig.api.fails["evict default/low-1"] = [BUDGET] * 100
    with working(rig):
        rig.decide(rig.plan())
        await advance(75.0)
        assert rig.begun() is None
        assert rig.cache.pipelined.stuck == {"uid-low-1"}
        assert rig.evicted() == ["low-0"]


@pytest.mark.parametrize("errors", [[FAILING], [FAILING, BUDGET]])
async def test_an_eviction_that_goes_on_failing_ends_the_plan_and_the_pod_is_left_alone(
    errors: list[WriteError],
) -> None:
    rig = Contended()
    rig.api.fails["evict default/low-1"] = errors * 500
    with working(rig):
        rig.decide(rig.plan())
        await advance(50.0)
        assert rig.begun() is not None
        await advance(25.0)
        assert rig.begun() is None
        assert rig.cache.pipelined.stuck == {"uid-low-1"}
        assert rig.evicted() == ["low-0"]


async def test_a_victim_that_does_not_go_is_left_alone_after_its_grace_and_some_time() -> None:
    rig = Contended(Limits(victim_s=20.0))
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.terminate("low-0", "low-1")
        rig.delete("low-0")
        await advance(45.0)
        assert rig.begun() is not None
        await advance(10.0)
        assert rig.begun() is None
        assert rig.cache.pipelined.stuck == {"uid-low-1"}
        rig.delete("low-1")
        await advance(2.0)
        assert rig.cache.pipelined.stuck == set()


async def test_other_victims_are_looked_for_once_only() -> None:
    rig = Contended(Limits(victim_s=20.0))
    with working(rig):
        rig.decide(rig.plan())
        await advance(60.0)
        assert rig.begun() is None
        rig.decide(rig.plan(("low-2", "low-3"), (("high-0", "n2"), ("high-1", "n2"))))
        await advance(200.0)
        assert rig.begun() is not None
        assert sorted(rig.evicted()) == ["low-0", "low-1", "low-2", "low-3"]


async def test_nothing_is_kept_of_a_second_search_once_the_group_is_gone() -> None:
    rig = Contended(Limits(victim_s=20.0))
    with working(rig):
        rig.decide(rig.plan())
        await advance(60.0)
        assert len(rig.evictions.had_second_search) == 1
        rig.delete("high-0", "high-1")
        rig.unsee("podgroups", rig.cache.groups[rig.key("high")].pod_group)
        rig.delete("low-0", "low-1")
        await advance(2.0)
        assert len(rig.evictions.had_second_search) == 0


@pytest.mark.parametrize("error", [FAILING, CONFLICT])
async def test_an_eviction_that_failed_is_asked_for_again(error: WriteError) -> None:
    rig = Contended()
    rig.api.fails["evict default/low-1"] = [error] * 2
    with working(rig):
        rig.decide(rig.plan())
        await advance(3.0)
        assert rig.evicted() == ["low-0", "low-1"]


async def test_a_victim_that_is_being_deleted_already_is_not_evicted() -> None:
    rig = Contended()
    rig.terminate("low-0")
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        assert rig.evicted() == ["low-1"]


# --- room that is lost ----------------------------------------------------------------------------


def wasted() -> float:
    """How many evictions were in vain as another pod took the room."""
    samples = next(iter(metrics.EVICTIONS_WASTED.collect())).samples
    taken = [each for each in samples if each.labels.get("why") == "taken"]
    return sum(each.value for each in taken if each.name.endswith("_total"))


async def test_plans_for_no_group_pause_when_the_api_server_refuses_one() -> None:
    rig = Contended()
    rig.api.fails["create-intent"] = [REFUSED]
    plan = rig.plan(("low-2",), (), group="", action=EvictionAction.SHUFFLE)
    with working(rig):
        rig.decide(plan)
        await advance(3.0)
        rig.decide(plan)
        await advance(1.0)
        assert rig.evicted() == []
        await advance(rig.evictions.limits.wasted_base_s)
        rig.decide(plan)
        await advance(1.0)
        assert rig.evicted() == ["low-2"]


async def test_room_that_a_foreign_pod_took_is_wasted_and_the_group_pauses_longer_each_time() -> (
    None
):
    rig, before = Contended(), wasted()
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        rig.foreign("taker", "n1")
        rig.delete("low-0", "low-1")
        await advance(1.0)
        assert rig.begun() is None
        pause = rig.evictions.pauses.of(rig.key("high"), now=rig.clock())
        assert pause is not None
        assert "pod default/taker of scheduler default-scheduler" in pause.why
        assert wasted() == before + 2
        assert rig.cache.pipelined.paused == {rig.key("high")}
        first = pause.until - rig.clock()
        assert rig.api.intents == {}

        again = rig.plan(("low-2", "low-3"), (("high-0", "n2"), ("high-1", "n2")))
        rig.decide(again)
        assert rig.begun() is None
        await advance(first + 1.0)
        assert rig.cache.pipelined.paused == set()
        rig.decide(again)
        assert rig.begun() is not None
        await settle()
        rig.foreign("taker-2", "n2")
        rig.delete("low-2", "low-3")
        await advance(1.0)
        pause = rig.evictions.pauses.of(rig.key("high"), now=rig.clock())
        assert pause is not None
        assert pause.until - rig.clock() > 1.5 * first


async def test_the_room_of_a_node_that_is_closed_is_not_waited_for() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.node("n1", cpu=4000, unschedulable=True)
        rig.delete("low-0", "low-1")
        await advance(1.0)
        assert rig.begun() is None
        assert not rig.cache.node_usage.kept_on


async def test_places_that_are_not_used_are_wasted_too() -> None:
    rig = Contended(Limits(planned_s=5.0))
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.delete("low-0", "low-1")
        await settle()
        assert rig.has_reservations() == 2
        await advance(120.0)
        assert rig.api.intents == {}


# --- the end of a group ---------------------------------------------------------------------------


@pytest.mark.parametrize("happens", [group_gone, other_minimum])
async def test_a_group_that_goes_or_asks_for_something_else_spares_what_was_not_evicted(
    happens: Happens,
) -> None:
    rig = Contended()
    rig.api.fails["evict default/low-1"] = [BUDGET] * 100
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        happens(rig)
        await advance(30.0)
        assert rig.evicted() == ["low-0"]
        assert rig.api.intents == {}
        assert not rig.cache.node_usage.kept_on
