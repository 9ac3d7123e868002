"""No pod is evicted before the HTTP extender was asked, for whichever member and action it is."""

from dataclasses import replace

from app.model.eviction import EvictionAction, EvictionPlan, PipelinedPlace, VictimPod
from app.model.http_extender import FRESH_S, Verb
from app.model.ids import DEFAULT_QUEUE, NO_POD
from tests.builders import make_shape
from tests.service.intake.http_extender.judging import JudgedRig, advance, conf

TWO = make_shape(cpu=2000)


def full(rig: JudgedRig) -> None:
    """Two pods of ``low`` fill the node; ``high``, wants half of it."""
    rig.node("n1", cpu=4000)
    rig.group("low", minimum=1)
    for number in range(2):
        rig.pod(f"low-{number}", group="low", node="n1", phase="Running", started=1.0, shape=TWO)


def plan(rig: JudgedRig, action: EvictionAction) -> EvictionPlan:
    """``low-0`` goes, and ``high-0`` has its place."""
    low, high = rig.api.pods["default/low-0"], rig.member("high-0")
    victim = VictimPod(low.uid, "default", "low-0", low.node, low.group, DEFAULT_QUEUE, "priority")
    place = PipelinedPlace(high.task, low.node)
    return EvictionPlan(action, rig.key("high"), (victim,), (place,))


async def test_victims_of_a_group_without_pods_are_asked_about_with_what_it_asks_for() -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE))
    rig.judge.says(Verb.PREEMPTABLE, {"status": 1, "victims": []})
    full(rig)
    rig.gang("high", size=1, gated=True, shape=TWO)
    preempts = plan(rig, EvictionAction.PREEMPT)
    [place] = preempts.places
    slot = replace(place.task, uid=NO_POD, name="slot", role="worker")
    for_slot = replace(preempts, places=(replace(place, task=slot),))
    may_go = rig.parts.asked_victims.may_go
    with rig.at_work():
        await advance(1)
        assert not may_go(for_slot, now=rig.clock())
        await advance(1)
        assert not may_go(for_slot, now=rig.clock())
    [asked] = rig.judge.asked[Verb.PREEMPTABLE]
    evictor = asked["evictor"]
    assert (evictor["UID"], evictor["Job"], evictor["TaskRole"]) == ("", "default/high", "worker")
    assert evictor["Resreq"]["MilliCPU"] == 2000


async def test_what_was_answered_of_preemption_does_not_count_for_reclaiming() -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE, Verb.RECLAIMABLE))
    rig.judge.says(Verb.PREEMPTABLE, lambda asked: {"status": 1, "victims": asked["evictees"]})
    rig.judge.says(Verb.RECLAIMABLE, {"status": 1, "victims": []})
    full(rig)
    rig.gang("high", size=1, gated=True, shape=TWO)
    preempts = plan(rig, EvictionAction.PREEMPT)
    reclaims = replace(preempts, action=EvictionAction.RECLAIM)
    may_go = rig.parts.asked_victims.may_go
    with rig.at_work():
        await advance(1)
        assert not may_go(preempts, now=rig.clock())
        await advance(1)
        assert may_go(preempts, now=rig.clock())
        assert not may_go(reclaims, now=rig.clock())
        assert not may_go(preempts, now=rig.clock() + 2 * FRESH_S)
        await advance(1)
        assert may_go(preempts, now=rig.clock())
        assert not may_go(reclaims, now=rig.clock())
    assert len(rig.judge.asked[Verb.RECLAIMABLE]) == 1
    assert len(rig.judge.asked[Verb.PREEMPTABLE]) == 2
