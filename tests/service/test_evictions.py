"""Eviction plans from the decision to the end: what is written when, and what is never done."""

import asyncio
from dataclasses import replace

import pytest

from app.model.eviction import EvictionAction, EvictionPlan
from app.model.ids import NO_NODE, NodeName
from app.model.pod import GATE
from app.model.shape import PodShape
from app.model.workload import GroupPhase
from app.service.cycle.begun_eviction import Step
from app.service.cycle.eviction_pauses import OF_ONE_PAIR
from app.service.limits import Limits
from app.service.ports import WriteError
from app.wire.intents import LONGEST, read_intents, texts_of
from tests.builders import make_pod, make_shape
from tests.service.evicting import CONF, TWO, Contended
from tests.service.rig import FAILING, GONE, REFUSED, working
from tests.service.virtual_time import advance, settle

NAME = "pumice-eviction-uid-high"


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


async def test_shapes_of_foreign_pods_that_wait_for_a_node_are_in_the_snapshot_for_evictions() -> (
    None
):
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
