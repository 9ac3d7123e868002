"""Every decision is told to the audit trail once, with its cause and its snapshot."""

from collections.abc import Iterable

from app.model.decision import Decision, DecisionKind
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.evicting import CONF, Contended
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

ADMIT, PLACE, REFUSE = DecisionKind.ADMIT, DecisionKind.PLACE, DecisionKind.REFUSE
EVICT, VETO, RELEASE = DecisionKind.EVICT, DecisionKind.VETO, DecisionKind.RELEASE


def following(rig: Rig) -> list[Decision]:
    """The decisions of ``rig`` from now on."""
    told: list[Decision] = []
    rig.cache.decisions.trail.keeper = told.append
    return told


def brief(told: Iterable[Decision]) -> list[tuple[DecisionKind, str, str]]:
    return [(each.kind, each.pod, each.node) for each in told]


async def test_a_gang_is_admitted_and_placed() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    told = following(rig)
    rig.group("g", minimum=2, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=2000))
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", shape=make_shape(cpu=1000))
    await rig.cycle()
    await rig.cycle()
    assert brief(told) == [(ADMIT, "", ""), (PLACE, "g-0", "n1"), (PLACE, "g-1", "n1")]
    [generation] = {each.generation for each in told}
    assert generation > 0
    assert {each.group for each in told} == {"default/g"}
    assert {(each.job, each.queue) for each in told} == {("g", "default")}
    assert told[-1].story[-1][3:6] == ("waiting", "planned", "n1")


async def test_a_group_of_a_job_is_told_by_the_name_of_the_job() -> None:
    rig = Rig()
    rig.node("n1")
    told = following(rig)
    rig.group("j-1234", minimum=1, owner_kind="Job", owner_uid="1234")
    rig.pod("j-w-0", group="j-1234")
    await rig.cycle()
    assert {(each.group, each.job) for each in told} == {("default/j-1234", "j")}


async def test_room_for_members_to_come_is_told_of_the_group() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    told = following(rig)
    rig.group("g", minimum=2, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=2000))
    await rig.cycle()
    [admitted, placed] = told
    assert admitted.kind is ADMIT
    assert (placed.kind, placed.pod) == (PLACE, "")
    assert placed.text == "places: 2, kept for members to come: 2 on n1"
    rig.cache.reservations.release(rig.key("g"), why="not used")
    assert (told[-1].kind, told[-1].text) == (RELEASE, "not used")


async def test_a_refusal_is_told_once_for_each_cause() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    told = following(rig)
    rig.gang("g", size=3, shape=make_shape(cpu=1000))
    for _ in range(3):
        rig.planning.pace.notice()
        rig.cache.signals.note_dirty()
        await rig.cycle()
    [refused] = told
    assert refused.kind is REFUSE
    assert refused.refusal is not None
    assert refused.refusal.cause is rig.refusals[rig.key("g")].cause
    assert refused.cause == refused.refusal.cause.value
    assert refused.generation > 0


async def test_a_veto_and_the_place_that_follows_are_told() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p")
    await rig.cycle()
    told = following(rig)
    planned = rig.place("p")
    other = "n2" if planned == "n1" else "n1"
    rig.filter("p", [other])
    rig.filter("p", [other])
    assert brief(told) == [(VETO, "p", planned), (PLACE, "p", other)]


async def test_a_place_that_is_not_used_in_time_is_told_as_given_back() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    told = following(rig)
    with working(rig):
        for name in names:
            rig.filter(name)
        await advance(rig.limits.planned_s + 2)
    released = [each for each in told if each.kind is RELEASE]
    assert sorted((each.pod, each.node) for each in released[:2]) == [("g-0", "n1"), ("g-1", "n1")]
    assert all(each.cause for each in released)


async def test_an_eviction_is_told_of_each_victim_with_its_certificate_and_of_the_preemptor() -> (
    None
):
    rig = Contended()
    told = following(rig)
    with working(rig):
        rig.decide(rig.plan(certificate={"version": 1}))
        await advance(1.0)
    decided = [each for each in told if each.cause == "decided"]
    assert [(each.pod, each.group) for each in decided] == [
        ("low-0", "default/low"),
        ("low-1", "default/low"),
    ]
    for each in decided:
        assert (each.preemptor, each.rule, each.text) == ("default/high", "priority", "preempt")
        assert each.certificate == {"version": 1}
        assert each.generation > 0
        assert each.story[-1][4] == "preempt"
    evicted = [each.pod for each in told if each.cause == "evicted"]
    assert sorted(evicted) == ["low-0", "low-1"]
    [plan] = {each.plan for each in told if each.pod.startswith("low-")}
    assert plan
    steps = [each.cause for each in told if each.group == "default/high" and each.kind is EVICT]
    assert steps[:3] == ["eviction decided", "eviction written", "eviction evicting"]


async def test_what_a_process_before_this_one_decided_is_told_as_taken_up() -> None:
    first = Contended()
    with working(first):
        first.decide(first.plan(certificate={"version": 1}))
        await advance(0.1)
    second = Contended()
    second.parts.configuration.load(CONF)
    told = following(second)
    second.planning.evictions.stand_by()
    second.planning.evictions.take_up(first.api.intents, now=second.clock())
    taken = [each for each in told if each.pod]
    assert {(each.kind, each.pod, each.cause) for each in taken} == {
        (EVICT, "low-0", "taken up"),
        (EVICT, "low-1", "taken up"),
    }


async def test_a_place_that_a_pod_keeps_is_told_once() -> None:
    rig = Rig()
    rig.node("n1")
    told = following(rig)
    names = rig.gang("g", size=2)
    await rig.cycle()
    calls = [rig.bind(name) for name in names]
    with working(rig):
        await advance(0.1)
        assert all(call.done for call in calls)
        rig.show_bindings()
        await advance(0.1)
    assert brief(told) == [(PLACE, "g-0", "n1"), (PLACE, "g-1", "n1")]
