"""What is told of a group that others are evicted for, of its pods and of the victims."""

from dataclasses import replace

from app.core.texts import describe
from app.model.ids import NodeName
from app.model.pod import PLACED_CONDITION
from app.model.reason import Cause
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from app.service.telling.evicting import state_of_evictions, view_of
from app.service.telling.explanations import Story, explain_group
from tests.service.evicting import Contended
from tests.service.rig import working
from tests.service.virtual_time import advance, settle

BUDGET = WriteError(Reaction.BUDGET, "429: budget", retry_after_s=10.0)


def told(rig: Contended, group: str = "high") -> str:
    """The sentence of the group's reason."""
    refusal = rig.parts.reasons.of(rig.cache.groups[rig.key(group)])
    return "" if refusal is None else describe(refusal)


def explained(rig: Contended, group: str) -> Story:
    story = explain_group(
        rig.cache, rig.parts.reasons, rig.key(group), queries=rig.planning.queries
    )
    assert story is not None
    return story


async def test_the_reason_counts_and_names_the_pods_that_have_to_go() -> None:
    rig = Contended()
    rig.decide(rig.plan())
    refusal = rig.parts.reasons.of(rig.cache.groups[rig.key("high")])
    assert refusal is not None
    assert refusal.cause is Cause.PIPELINED
    assert "waits for 2 pods to go: default/low-0, default/low-1" in told(rig)
    rig.delete("low-0")
    assert "waits for 1 pod to go: default/low-1" in told(rig)


async def test_the_reason_says_which_pod_a_budget_keeps() -> None:
    rig = Contended()
    rig.api.fails["evict default/low-1"] = [BUDGET] * 100
    with working(rig):
        rig.decide(rig.plan())
        await advance(1.0)
        assert "default/low-1 is kept by a PodDisruptionBudget since " in told(rig)


async def test_the_reason_names_a_pod_that_does_not_go() -> None:
    rig = Contended(Limits(victim_s=5.0))
    with working(rig):
        rig.evictions.had_second_search[rig.key("high")] = "uid-high"
        rig.decide(rig.plan())
        await settle()
        rig.delete("low-0")
        await advance(30.0)
        assert "does not go" not in told(rig)
        await advance(10.0)
        assert "default/low-1 does not go, asked to since " in told(rig)


async def test_a_pause_is_a_part_of_the_reason() -> None:
    rig = Contended()
    rig.delete("low-0", "low-1")
    rig.foreign("big", "n1")
    await rig.cycle()
    assert told(rig)
    assert "no pods are evicted" not in told(rig)
    rig.evictions.pause(rig.key("high"), "for the test", now=rig.clock())
    assert "no pods are evicted for it until 2023-11-14T22:13:30Z: for the test" in told(rig)


async def test_a_pod_behind_the_gate_says_where_it_is_to_go() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan())
        await advance(6.0)
        rig.store(rig.api.pods["default/high-0"])
        says = [w.body for w in rig.api.of("pod-status") if w.target == "default/high-0"]
        [condition] = says[-1]["status"]["conditions"]
        assert condition["type"] == PLACED_CONDITION
        assert condition["reason"] == "Pipelined"
        assert condition["message"].startswith(
            "Pod default/high-0 can possibly be assigned to n1, "
            "once resource is released and minAvailable is satisfied; "
        )


async def test_explain_tells_of_the_plan_at_both_its_ends() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan(certificate={"version": 1}))
        await advance(1.0)
        rig.delete("low-0")
    for group in ("high", "low"):
        [view] = explained(rig, group).evictions
        assert view.step == "evicting"
        assert [(v.pod, v.state, v.rule) for v in view.victims] == [
            ("default/low-0", "gone", "priority"),
            ("default/low-1", "going", "priority"),
        ]
        assert view.places == (("high-0", "n1"), ("high-1", "n1"))
        assert view.certificate == {"version": 1}
    rig.group("other", minimum=1)
    assert explained(rig, "other").evictions == ()


async def test_decisions_are_remembered_after_their_end() -> None:
    rig = Contended()
    with working(rig):
        rig.decide(rig.plan(certificate={"version": 1}))
        await settle()
        rig.delete("low-0", "low-1")
        await settle()
        for name in ("high-0", "high-1"):
            rig.store(replace(rig.api.pods[f"default/{name}"], gates=(), node=NodeName("n1")))
        await advance(3.0)
    assert not rig.evictions.plans
    [view] = [view_of(rig.cache, begun) for begun in rig.evictions.decided]
    assert view.step == "bound"
    assert view.certificate == {"version": 1}


async def test_pauses_and_pods_that_stay_are_told() -> None:
    rig = Contended()
    rig.evictions.pause(rig.key("high"), "for the test", now=rig.clock())
    rig.evictions.leave_alone(rig.member("low-0").pod.uid, now=rig.clock())
    state = state_of_evictions(rig.cache, rig.evictions, now=rig.clock())
    assert state["paused"][rig.key("high")].why == "for the test"
    assert state["stuck"]["uid-low-0"]["pod"] == "default/low-0"
