"""Groups get their places once the HTTP extender has said yes, however slow or broken it is."""

import time
from collections.abc import Callable

import pytest

from app.model.http_extender import FRESH_S, Verb
from app.model.pod import GATE
from app.model.shape import PodShape
from app.model.workload import GroupPhase, PriorityClass
from app.service.activity import Activity
from app.service.calls.filtering import Chosen
from app.service.intake.http_extender.asking import AGAIN_NO_S, AGAIN_S
from app.service.intake.http_extender.nodes import ENOUGH
from app.telemetry import metrics
from tests.builders import make_amounts, make_shape
from tests.service.intake.http_extender.judging import (
    URL,
    Json,
    JudgedRig,
    advance,
    conf,
)

AT = f"the HTTP extender at {URL}: "
YES: Json = {"code": 0}
NO: Json = {"code": 2, "status": "too warm"}
OF_CARD = PodShape(make_amounts(cpu=1000, pods=1, **{"example.com/card": 1}))


def calls(verb: Verb, outcome: str) -> float:
    value = metrics.HTTP_EXTENDER_CALLS.labels(verb, outcome)._value.get()
    return float(value)


def allowing(*names: str) -> Callable[[Json], Json]:
    return lambda asked: YES if asked["node"]["Name"] in names else NO


def gang(rig: JudgedRig, name: str = "g", size: int = 2) -> list[str]:
    rig.gang(name, size=size, gated=True)
    return [f"{name}-{number}" for number in range(size)]


# --- nodes ---------------------------------------------------------------------------------------


async def test_a_gang_gets_places_on_the_nodes_that_are_allowed() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, allowing("n2"))
    rig.node("n1", "n2", "n3", cpu=8000)
    members = gang(rig)
    with rig.at_work():
        await advance(1)
        assert rig.places(*members) == ["n2", "n2"]
    assert sorted(rig.judge.nodes()) == ["n1", "n2", "n3"]


async def test_members_that_are_alike_are_asked_about_once_and_each_shape_for_itself() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", cpu=8000)
    rig.group("g", minimum=3)
    rig.pod("g-0", group="g", shape=make_shape(cpu=1000))
    rig.pod("g-1", group="g", shape=make_shape(cpu=1000))
    rig.pod("g-2", group="g", shape=make_shape(cpu=2000))
    with rig.at_work():
        await advance(1)
        assert rig.places("g-0", "g-1", "g-2") == ["n1"] * 3
    asked = [each["task"]["Resreq"]["MilliCPU"] for each in rig.judge.asked[Verb.PREDICATE]]
    assert sorted(asked) == [1000, 2000]


async def test_the_server_is_told_of_the_pod_as_it_is_stored() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.judge.manifests["default/g-0"] = b'{"metadata": {"annotations": {"example.com/a": "b"}}}'
    rig.node("n1", cpu=8000)
    gang(rig, size=1)
    with rig.at_work():
        await advance(1)
    [asked] = rig.judge.asked[Verb.PREDICATE]
    assert asked["task"]["Pod"] == {"metadata": {"annotations": {"example.com/a": "b"}}}


async def test_a_refused_gang_is_asked_about_again_and_gets_its_places_then() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, NO)
    rig.node("n1", "n2", cpu=8000)
    members = gang(rig)
    with rig.at_work():
        await advance(1)
        assert rig.places(*members) == ["", ""]
        assert rig.why("g").endswith(f"{AT}too warm (2)")
        assert len(rig.judge.nodes()) == 2
        rig.judge.says(Verb.PREDICATE, YES)
        await advance(AGAIN_NO_S)
        assert rig.places(*members) == ["n1", "n1"]
        assert len(rig.judge.nodes()) == 4


async def test_nodes_without_room_are_asked_about_when_room_comes() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", "n2", cpu=1000)
    rig.pod("other", node="n2", phase="Running", scheduler="stock")
    rig.pod("mine", node="n1", phase="Running", scheduler="stock")
    members = gang(rig, size=1)
    with rig.at_work():
        await advance(2)
        assert rig.judge.nodes() == []
        rig.delete("other")
        await advance(2)
        assert rig.places(*members) == ["n2"]
    assert rig.judge.nodes() == ["n2"]


async def test_no_more_nodes_are_asked_about_than_needed() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node(*(f"n{number:03}" for number in range(3 * ENOUGH)), cpu=8000)
    gang(rig)
    with rig.at_work():
        await advance(1)
    assert ENOUGH <= len(rig.judge.nodes()) <= ENOUGH + 16


async def test_calls_under_way_are_bounded() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.judge.takes_s = 0.1
    rig.node(*(f"n{number:03}" for number in range(100)), cpu=8000)
    gang(rig)
    with rig.at_work():
        await advance(2)
    assert rig.judge.most_under_way == 16


async def test_only_pods_that_ask_for_managed_resources_are_asked_about() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE, managedResources=["example.com/card"]))
    rig.judge.says(Verb.PREDICATE, NO)
    rig.node("n1", cpu=8000, extra={"example.com/card": 4})
    rig.pod("plain")
    rig.pod("judged", shape=OF_CARD)
    with rig.at_work():
        await advance(1)
        assert rig.places("plain", "judged") == ["n1", ""]
    assert {each["task"]["Name"] for each in rig.judge.asked[Verb.PREDICATE]} == {"judged"}


async def test_scores_are_asked_for_in_one_call_about_the_allowed_nodes() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE, Verb.PRIORITIZE))
    rig.judge.says(Verb.PREDICATE, allowing("n1", "n3"))
    rig.judge.says(Verb.PRIORITIZE, {"nodeScore": {"n1": 1.0, "n3": 2.5, "n9": 100.0}})
    rig.node("n1", "n2", "n3", cpu=8000)
    members = gang(rig)
    with rig.at_work():
        await advance(1)
        assert rig.places(*members) == ["n3", "n3"]
    [asked] = rig.judge.asked[Verb.PRIORITIZE]
    assert [node["Name"] for node in asked["nodes"]] == ["n1", "n3"]


# --- failures ------------------------------------------------------------------------------------


async def test_a_gang_waits_for_a_server_that_fails_and_the_operator_is_told() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, "HTTP 503")
    rig.node("n1", "n2", cpu=8000)
    members = gang(rig)
    before = calls(Verb.PREDICATE, "failed")
    with rig.at_work():
        await advance(60)
        assert rig.places(*members) == ["", ""]
        assert rig.why("g").endswith(f"{AT}HTTP 503")
        assert rig.follower.notices() == (
            f"the HTTP extender does not answer {URL}/predicate: HTTP 503; groups wait for it",
        )
        assert 4 <= len(rig.judge.nodes()) <= 16  # pauses grow to half a minute
        assert calls(Verb.PREDICATE, "failed") - before == len(rig.judge.nodes())
        rig.judge.says(Verb.PREDICATE, YES)
        await advance(31)
        assert rig.places(*members) == ["n1", "n1"]
        assert rig.follower.notices() == ()


async def test_an_ignorable_server_that_fails_is_passed_over_with_a_metric_and_a_notice() -> None:
    rig = JudgedRig(conf(*Verb, ignorable="true"))
    rig.node("n1", "n2", cpu=8000)
    needs = make_amounts(cpu=2000, memory=2 << 30, pods=2)
    rig.group("g", minimum=2, min_resources=needs, phase=GroupPhase.PENDING)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g")
    before = calls(Verb.PREDICATE, "ignored")
    with rig.at_work():
        await advance(2)
        assert rig.places("g-0", "g-1") == ["n1", "n1"]
        said = rig.follower.notices()
    assert f"the HTTP extender does not answer {URL}/predicate: HTTP 404; it is passed over" in said
    assert calls(Verb.PREDICATE, "ignored") > before


@pytest.mark.parametrize(("later_s", "placed"), [(AGAIN_S + 5, True), (FRESH_S + 5, False)])
async def test_what_was_answered_counts_for_a_minute_while_the_server_fails(
    later_s: float, placed: bool
) -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", cpu=2000)
    members = gang(rig, size=4)
    with rig.at_work():
        await advance(1)
        rig.judge.says(Verb.PREDICATE, "HTTP 503")
        await advance(later_s)
        rig.node("n1", cpu=8000)
        await advance(1)
        assert rig.places(*members) == ["n1" if placed else ""] * 4


async def test_an_answer_that_makes_no_sense_is_a_failure() -> None:
    rig = JudgedRig(conf(Verb.PRIORITIZE))
    rig.judge.says(Verb.PRIORITIZE, {"nodeScore": {"n1": "much"}})
    rig.node("n1", cpu=8000)
    gang(rig)
    with rig.at_work():
        await advance(1)
        assert rig.why("g").endswith(f"{AT}nodeScore[...]: Expected `float`, got `str`")


async def test_a_slow_server_stalls_neither_filter_nor_the_cycles_of_others() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE, httpTimeout="20s", managedResources="example.com/card"))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.judge.takes_s = 15.0
    rig.node(
        *(f"n{number}" for number in range(40)),
        cpu=8000,
        extra={"example.com/card": 4},
    )
    rig.pod("judged", shape=OF_CARD)
    with rig.at_work():
        await advance(1)
        began, at = time.perf_counter(), rig.clock()
        rig.pod("plain")
        assert isinstance(rig.filter("plain"), Chosen)
        refused = rig.filter("judged")
        assert not isinstance(refused, Chosen)
        assert rig.clock() == at
        assert time.perf_counter() - began < 1.0
        cycles = rig.planning.log.cycles
        await advance(10)
        assert rig.planning.log.cycles >= cycles + 9
        assert rig.judge.under_way == 16
        await advance(10)
        assert rig.places("judged") == ["n0"]  # as soon as some have answered


async def test_a_replica_that_stands_by_does_not_ask() -> None:
    standing = Activity(clock=lambda: 0.0, elected=True, namespace="", name="", identity="me")
    rig = JudgedRig(conf(Verb.PREDICATE), activity=standing)
    rig.node("n1", cpu=8000)
    gang(rig)
    with rig.at_work():
        await advance(5)
    assert rig.judge.asked == {}


async def test_another_configuration_forgets_all_answers() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, NO)
    rig.node("n1", cpu=8000)
    members = gang(rig)
    with rig.at_work():
        await advance(1)
        assert rig.parts.configuration.load(conf(Verb.PRIORITIZE))
        rig.judge.says(Verb.PRIORITIZE, {"nodeScore": {}})
        await advance(3)
        assert rig.places(*members) == ["n1", "n1"]


# --- groups and queues ---------------------------------------------------------------------------


def newcomer(rig: JudgedRig) -> None:
    rig.node("n1", cpu=8000)
    needs = make_amounts(cpu=2000)
    rig.group("g", minimum=2, min_resources=needs, phase=GroupPhase.PENDING)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g")


async def test_a_group_is_admitted_when_the_server_votes_for_it() -> None:
    rig = JudgedRig(conf(Verb.ENQUEUEABLE))
    rig.judge.says(Verb.ENQUEUEABLE, {"status": -1})
    newcomer(rig)
    with rig.at_work():
        await advance(2)
        assert rig.why("g") == f"{AT}the group is not admitted"
        rig.judge.says(Verb.ENQUEUEABLE, {"status": 1})
        await advance(AGAIN_NO_S + 1)
        assert rig.places("g-0", "g-1") == ["n1", "n1"]
    asked = rig.judge.asked[Verb.ENQUEUEABLE][0]["job"]
    assert (asked["Name"], asked["MinAvailable"], asked["Queue"]) == ("g", 2, "default")
    assert set(asked["Tasks"]) == {"uid-g-0", "uid-g-1"}


async def test_a_group_is_asked_about_as_it_would_be_with_all_its_places() -> None:
    rig = JudgedRig(conf(Verb.READY))
    rig.judge.says(Verb.READY, {"status": False})
    newcomer(rig)
    with rig.at_work():
        await advance(2)
        assert rig.places("g-0", "g-1") == ["", ""]
        rig.judge.says(Verb.READY, {"status": True})
        await advance(AGAIN_NO_S + 1)
        assert rig.places("g-0", "g-1") == ["n1", "n1"]
    asked = rig.judge.asked[Verb.READY][0]["job"]
    assert set(asked["TaskStatusIndex"]) == {"2"}


async def test_a_queue_that_the_server_calls_overused_waits() -> None:
    rig = JudgedRig(conf(Verb.OVERUSED))
    rig.judge.says(Verb.OVERUSED, {"overused": True})
    newcomer(rig)
    with rig.at_work():
        await advance(2)
        assert rig.places("g-0", "g-1") == ["", ""]
        rig.judge.says(Verb.OVERUSED, {"overused": False})
        await advance(AGAIN_NO_S + 1)
        assert rig.places("g-0", "g-1") == ["n1", "n1"]
    assert rig.judge.asked[Verb.OVERUSED][0]["queue"]["Name"] == "default"


async def test_rounds_are_told_of_and_wait_for_their_opening() -> None:
    rig = JudgedRig(conf(Verb.OPEN, Verb.CLOSE, Verb.PREDICATE))
    rig.judge.says(Verb.OPEN, "HTTP 500")
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", cpu=8000)
    members = gang(rig)
    with rig.at_work():
        await advance(2)
        assert rig.why("g").endswith(f"{AT}HTTP 500")
        assert rig.judge.nodes() == []
        rig.judge.says(Verb.OPEN, {})
        rig.judge.says(Verb.CLOSE, {})
        await advance(5)
        assert rig.places(*members) == ["n1", "n1"]
    opened = rig.judge.asked[Verb.OPEN][-1]
    assert set(opened["Nodes"]) == {"n1"}
    assert set(opened["Jobs"]) == {"default/g"}
    assert set(opened["Queues"]) == {"root", "default"}
    assert opened["NodeList"] == ["n1"]
    assert len(rig.judge.asked[Verb.CLOSE]) == 1


# --- victims -------------------------------------------------------------------------------------


def contended(rig: JudgedRig) -> None:
    """Two pods of ``low`` fill the node; ``high`` wants half of it."""
    rig.node("n1", cpu=4000)
    rig.group("low", minimum=1)
    for number in range(2):
        rig.pod(
            f"low-{number}",
            group="low",
            node="n1",
            phase="Running",
            started=1.0,
            shape=make_shape(cpu=2000),
        )
    rig.see("priorityclasses", PriorityClass("high", 100))
    rig.group("high", minimum=1, priority_class="high")
    rig.pod("high-0", group="high", gates=(GATE,), shape=make_shape(cpu=2000), priority=100)


def evicted(rig: JudgedRig) -> list[str]:
    return [write.target for write in rig.api.of("evict")]


PREEMPTING = "enqueue, allocate, preempt, backfill"


async def test_victims_are_asked_about_before_their_intent_is_stored() -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE, actions=PREEMPTING))
    rig.judge.says(Verb.PREEMPTABLE, "HTTP 503")
    contended(rig)
    with rig.at_work():
        await advance(3)
        assert rig.api.intents == {}
        assert evicted(rig) == []
        rig.judge.says(Verb.PREEMPTABLE, lambda asked: {"status": 1, "victims": asked["evictees"]})
        await advance(10)
        assert len(evicted(rig)) == 1
    asked = rig.judge.asked[Verb.PREEMPTABLE][-1]
    assert asked["evictor"]["Name"] == "high-0"
    assert [f"default/{each['Name']}" for each in asked["evictees"]] == evicted(rig)


@pytest.mark.parametrize("spared", ["low-0", "low-1"])
async def test_a_pod_that_the_server_spares_stays_and_another_goes(spared: str) -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE, actions=PREEMPTING))

    def choose(asked: Json) -> Json:
        return {"status": 1, "victims": [v for v in asked["evictees"] if v["Name"] != spared]}

    rig.judge.says(Verb.PREEMPTABLE, choose)
    contended(rig)
    with rig.at_work():
        await advance(10)
        assert evicted(rig) == [f"default/low-{'1' if spared == 'low-0' else '0'}"]


async def test_a_server_that_lets_no_pod_go_is_told_of_in_the_reason() -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE, actions=PREEMPTING))
    rig.judge.says(Verb.PREEMPTABLE, {"status": 1, "victims": []})
    contended(rig)
    with rig.at_work():
        await advance(10)
        assert evicted(rig) == []
        assert "2 that the HTTP extender does not let go" in rig.why("high")


@pytest.mark.parametrize("answer", [{"status": 0}, "HTTP 503"])
async def test_a_server_without_a_say_or_that_is_passed_over_lets_pods_go(
    answer: Json | str,
) -> None:
    rig = JudgedRig(conf(Verb.PREEMPTABLE, actions=PREEMPTING, ignorable=True))
    rig.judge.says(Verb.PREEMPTABLE, answer)
    contended(rig)
    with rig.at_work():
        await advance(10)
        assert len(evicted(rig)) == 1


# --- events --------------------------------------------------------------------------------------


async def test_places_given_and_given_back_are_told() -> None:
    rig = JudgedRig(conf(Verb.ALLOCATE, Verb.DEALLOCATE, Verb.ENQUEUED))
    for verb in (Verb.ALLOCATE, Verb.DEALLOCATE, Verb.ENQUEUED):
        rig.judge.says(verb, {"errorMessage": ""})
    newcomer(rig)
    with rig.at_work():
        await advance(1)
        told = [each["task"] for each in rig.judge.asked[Verb.ALLOCATE]]
        assert [(t["Name"], t["NodeName"], t["Status"]) for t in told] == [
            ("g-0", "n1", 2),
            ("g-1", "n1", 2),
        ]
        assert [each["job"]["Name"] for each in rig.judge.asked[Verb.ENQUEUED]] == ["g"]
        assert rig.judge.asked[Verb.DEALLOCATE] == []
        rig.delete("g-0")
        await advance(1)
        gone = [each["task"]["Name"] for each in rig.judge.asked[Verb.DEALLOCATE]]
        assert gone[0] == "g-0"


async def test_events_that_fail_are_not_sent_again_and_hold_nothing_up() -> None:
    rig = JudgedRig(conf(Verb.ALLOCATE))
    rig.judge.says(Verb.ALLOCATE, {"errorMessage": "no"})
    before = calls(Verb.ALLOCATE, "failed")
    newcomer(rig)
    with rig.at_work():
        await advance(5)
        assert rig.places("g-0", "g-1") == ["n1", "n1"]
    assert len(rig.judge.asked[Verb.ALLOCATE]) == 2
    assert calls(Verb.ALLOCATE, "failed") - before == 2
