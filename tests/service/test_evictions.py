"""Eviction plans from the decision to the end: what is written when, and what is never done."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.model.eviction import EvictionAction, EvictionPlan
from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.plan import Plan
from app.model.pod import GATE
from app.model.shape import PodShape
from app.model.workload import GroupPhase
from app.service.cycle.begun_eviction import Fate, Step
from app.service.cycle.eviction_pauses import OF_ONE_PAIR
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from app.telemetry import metrics
from app.wire.intents import LONGEST, read_intents, texts_of
from tests.builders import make_pod, make_shape
from tests.service.evicting import CONF, TWO, Contended
from tests.service.rig import CONFLICT, FAILING, GONE, REFUSED, working
from tests.service.virtual_time import advance, run, settle

Happens = Callable[[Contended], None]
NAME = "pumice-eviction-uid-high"
BUDGET = WriteError(Reaction.BUDGET, "429: budget", retry_after_s=10.0)


# --- the order of things --------------------------------------------------------------------------


async def test_the_intent_is_stored_before_the_first_eviction() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        verbs = [w.verb for w in rig.api.writes if w.verb in ("create-intent", "evict")]
        assert verbs == ["create-intent", "evict", "evict"]
        intent = read_intents(rig.api.intents)[NAME].intent
        assert {v.uid for v in intent.victims} == {"uid-low-0", "uid-low-1"}
        assert {p.uid for p in intent.places} == {"uid-high-0", "uid-high-1"}


@pytest.mark.parametrize("error", [FAILING, GONE, REFUSED])
async def test_no_pod_is_evicted_while_the_intent_is_not_stored(error: WriteError) -> None:
    rig = Contended()
    rig.api.fails["create-intent"] = [error] * 1000
    with working(rig):
        rig.decide(rig.plan())
        await advance(60.0)
        assert rig.evicted() == []
        assert rig.begun() is None
        assert not rig.cache.node_usage.kept_on


async def test_an_intent_whose_answer_was_lost_is_the_same_when_it_is_stored_again() -> None:
    rig = Contended()
    rig.decide(rig.plan())
    begun = rig.begun()
    assert begun is not None
    rig.api.intents |= texts_of(NAME, begun.intent)  # arrived
    with working(rig):
        await advance(1.0)
        assert sorted(rig.evicted()) == ["low-0", "low-1"]
        assert not rig.api.of("delete-intent")


async def test_an_intent_that_is_left_of_an_earlier_plan_is_replaced() -> None:
    rig = Contended()
    rig.api.intents[NAME] = "of another plan"
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        assert NAME in read_intents(rig.api.intents)
        assert sorted(rig.evicted()) == ["low-0", "low-1"]


def long(rig: Contended) -> EvictionPlan:
    """A plan that is stored in three ConfigMaps."""
    plan = rig.plan()
    first, second = plan.victims
    return replace(plan, victims=(replace(first, rule="x" * 2 * LONGEST), second))


async def test_no_pod_is_evicted_before_all_parts_of_a_long_intent_are_stored() -> None:
    rig = Contended()
    with working(rig):
        rig.api.fails["create-intent"] = [FAILING, FAILING]
        rig.decide(long(rig))
        await advance(10.0)
        verbs = [w.verb for w in rig.api.writes if w.verb in ("create-intent", "evict")]
        assert verbs == ["create-intent"] * 3 + ["evict"] * 2


async def test_a_long_intent_that_is_refused_midway_evicts_no_pod_and_leaves_nothing() -> None:
    rig = Contended()
    rig.api.fails[f"create-intent {NAME}"] = [REFUSED]
    with working(rig):
        rig.decide(long(rig))
        await advance(5.0)
        assert len(rig.api.of("create-intent")) == 2
        assert rig.evicted() == []
        assert rig.api.intents == {}
        assert rig.begun() is None


async def test_all_parts_of_a_long_intent_are_deleted_when_the_gang_is_bound() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(long(rig))
        await advance(1.0)
        assert len(rig.api.intents) == 3
        rig.delete("low-0", "low-1")
        await advance(1.0)
        for name in ("high-0", "high-1"):
            rig.store(replace(rig.api.pods[f"default/{name}"], gates=(), node=NodeName("n1")))
        await advance(2.0)
        assert rig.api.intents == {}
        assert rig.api.of("delete-intent")[0].target == NAME


async def test_a_pod_is_marked_before_it_is_evicted() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan(victims=("low-0", "low-1")))
        await settle()
    first = [w.verb for w in rig.api.writes if w.target == "default/low-0"]
    assert first == ["mark-evicted", "evict"]


async def test_nothing_is_reserved_and_no_gate_opened_before_the_last_victim_has_gone() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        rig.terminate("low-0", "low-1")
        rig.delete("low-0")
        await advance(1.0)
        assert rig.has_reservations() == 0
        assert not rig.api.of("patch")
        rig.delete("low-1")
        await advance(1.0)
        assert {rig.place(name) for name in ("high-0", "high-1")} == {"n1"}
        assert len(rig.api.of("patch")) == 2


async def test_the_intent_is_deleted_when_the_gang_is_bound_and_not_before() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        rig.delete("low-0", "low-1")
        await advance(1.0)
        assert NAME in rig.api.intents
        for name in ("high-0", "high-1"):
            rig.store(replace(rig.api.pods[f"default/{name}"], gates=(), node=NodeName("n1")))
        await advance(2.0)
        assert rig.api.intents == {}
        assert rig.evictions.plans == {}


async def test_a_group_that_is_not_admitted_is_when_its_room_is_there() -> None:
    rig = Contended()
    rig.group("slow", minimum=1, phase=GroupPhase.PENDING)
    rig.pod("slow-0", group="slow", shape=TWO, gates=(GATE,))
    with working(rig):
        plan = rig.plan(("low-0",), (("slow-0", "n1"),), group="slow", admits=True)
        rig.decide(plan)
        await settle()
        assert rig.cache.groups[rig.key("slow")].phase is GroupPhase.PENDING
        rig.delete("low-0")
        await settle()
        assert rig.cache.groups[rig.key("slow")].phase is GroupPhase.INQUEUE
        assert rig.place("slow-0") == "n1"


async def test_slots_are_kept_for_members_that_do_not_exist() -> None:
    rig = Contended()
    rig.group("jobs", minimum=2)
    with working(rig):
        rig.decide(rig.plan(places=(("s0", "n1"), ("s1", "n1")), group="jobs"))
        await settle()
        assert not rig.cache.groups[rig.key("jobs")].slots
        rig.delete("low-0", "low-1")
        await settle()
        slots = rig.cache.groups[rig.key("jobs")].slots.values()
        assert [slot.node for slot in slots] == ["n1", "n1"]


async def test_a_plan_for_no_group_ends_when_its_victims_have_gone() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan(("low-2",), (), group="", action=EvictionAction.SHUFFLE))
        await settle()
        assert rig.evicted() == ["low-2"]
        assert list(rig.api.intents) == ["pumice-shuffle-uid-low-2"]
        assert rig.cache.pipelined.shuffled == rig.clock()
        rig.delete("low-2")
        await advance(2.0)
        assert rig.api.intents == {}


async def test_a_plan_goes_on_when_its_action_is_taken_out_of_the_configuration() -> None:
    rig = Contended()
    rig.parts.configuration.load(CONF.replace("allocate", "allocate, preempt"))
    with working(rig):
        rig.decide(rig.plan())
        rig.parts.configuration.load(CONF)
        await advance(2.0)
        assert not rig.parts.configuration.evicts
        assert sorted(rig.evicted()) == ["low-0", "low-1"]
        rig.delete("low-0", "low-1")
        await advance(1.0)
        assert {rig.place(name) for name in ("high-0", "high-1")} == {"n1"}


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


# --- room that others may not have ----------------------------------------------------------------


async def test_room_that_a_victim_left_is_given_to_no_other_pod() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.delete("low-0")
        rig.gang("other", size=1, gated=False, shape=TWO)
        await advance(3.0)
        assert rig.place("other-0") == ""
        rig.filter("other-0")
        assert rig.place("other-0") == ""
        rig.delete("low-1")
        await advance(1.0)
        assert rig.place("high-0") == rig.place("high-1") == "n1"


async def test_a_replacement_of_a_victim_does_not_get_its_room_back() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.delete("low-0")
        rig.pod("low-0b", group="low", shape=TWO, gates=(GATE,))
        await advance(3.0)
        assert rig.place("low-0b") == ""


async def test_the_preemptor_is_given_no_other_places_meanwhile() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.delete("low-2", "low-3")
        await advance(3.0)
        assert rig.has_reservations() == 0
        rig.filter("high-0")
        assert rig.has_reservations() == 0


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


def test_a_budget_that_goes_on_forbidding_it_ends_the_plan_and_the_pod_is_left_alone() -> None:
    async def scenario() -> None:
        rig = Contended()
        rig.api.fails["evict default/low-1"] = [BUDGET] * 100
        with working(rig):
            rig.decide(rig.plan())
            await advance(75.0)
            assert rig.begun() is None
            assert rig.cache.pipelined.stuck == {"uid-low-1"}
            assert rig.evicted() == ["low-0"]

    run(scenario())


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


def test_room_that_a_foreign_pod_took_is_wasted_and_the_group_pauses_longer_each_time() -> None:
    async def scenario() -> None:
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

    run(scenario())


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


# --- what is told ---------------------------------------------------------------------------------


async def test_events_tell_of_an_eviction_at_the_pod_its_group_and_the_preemptor() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
    text = "Pod is evicted, because of preempt for default/high: priority allows it"
    assert ("Warning", "Evict", text) in rig.events("Pod default/low-0")
    group = [e for e in rig.events("PodGroup default/low") if e[1] == "Evict"]
    assert group == [("Normal", "Evict", "2 Pods are evicted, because of preempt for default/high")]
    mine = [e for e in rig.events("PodGroup default/high") if e[1] == "Evicts"]
    assert mine == [("Normal", "Evicts", "evicts 2 pods of 1 group for 2 places (preempt)")]


async def test_stories_tell_of_each_step() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        victim = [step[4] for step in rig.member("low-0").story or ()]
        assert victim == ["preempt", "evicted"]
        rig.delete("low-0", "low-1")
        await settle()
    steps = [step[4] for step in rig.cache.groups[rig.key("high")].story or ()]
    eviction = [step for step in steps if step.startswith("eviction")]
    assert eviction == [
        f"eviction {s}" for s in (Step.DECIDED, Step.WRITTEN, Step.EVICTING, Step.PLACED)
    ]
    high, low = (rig.cache.registry.view(rig.key(name)) for name in ("high", "low"))
    assert high is not None
    assert high.room_made_at > 0
    assert low is not None
    assert low.room_made_at == 0


async def test_a_job_that_loses_pods_again_and_again_is_let_alone() -> None:
    rig = Contended()
    rig.decide(rig.plan())
    for seconds in (3.0, 2.0, 1.0):
        rig.evictions.guard.note("default/high", ["default/low"], now=rig.clock() - seconds)
    rig.evictions.give_up(rig.begun(), "for the test", now=rig.clock())
    rig.decide(rig.plan())
    assert rig.begun() is None
    assert rig.cache.pipelined.paused == {rig.key("high")}


async def test_a_job_that_is_shuffled_again_and_again_is_let_alone_and_others_are_not() -> None:
    rig = Contended()
    rig.group("other", minimum=1)
    rig.pod("other-0", group="other", node=NodeName("n1"), phase="Running")

    def shuffled(*names: str) -> list[str]:
        before = {begun.name for begun in rig.evictions.decided}
        rig.decide(*(rig.plan((n,), (), group="", action=EvictionAction.SHUFFLE) for n in names))
        return [each.name for each in rig.evictions.decided if each.name not in before]

    for _ in range(OF_ONE_PAIR):
        assert len(shuffled("low-0", "low-1")) == 2, "those of one round count once"
        for begun in list(rig.evictions.plans.values()):
            rig.evictions.give_up(begun, "for the test", now=rig.clock())
        rig.evictions.decided.clear()
        await advance(30.0)
    assert shuffled("low-2", "other-0") == ["pumice-shuffle-uid-other-0"]
    assert rig.cache.pipelined.shuffled == rig.clock(), "it is not looked at in every cycle"


async def test_no_more_pods_are_evicted_at_once_than_the_rate_allows() -> None:
    rig = Contended(Limits(evictions_per_s=1.0))
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        assert len(rig.evicted()) == 1
        await asyncio.sleep(1.1)
        assert len(rig.evicted()) == 2


# --- room that others wait for --------------------------------------------------------------------


def test_shapes_of_foreign_pods_that_wait_for_a_node_are_in_the_snapshot_for_evictions() -> None:
    async def scenario() -> None:
        rig = Contended()

        def coveting(*, running: bool = True) -> tuple[PodShape, ...]:
            return rig.planning.cycle.input.snapshotter.snapshot(running=running).coveting

        small, waits = make_shape(cpu=1), {"scheduler": "default-scheduler", "node": NO_NODE}
        pods = [make_pod(name, shape=small, **waits) for name in ("one", "two")]
        rig.store(*pods)
        assert coveting() == (small,), "each shape once"
        assert coveting(running=False) == ()
        rig.store(replace(pods[0], node=NodeName("n1"), phase="Running"))
        assert coveting() == (small,)
        rig.store(replace(pods[1], gates=("other.example/gate",)))
        assert coveting() == ()
        rig.store(pods[1])
        assert coveting() == (small,)
        rig.store(replace(pods[1], nominated=NodeName("n2")))
        assert coveting() == (), "it has a claim of its own"

    run(scenario())
