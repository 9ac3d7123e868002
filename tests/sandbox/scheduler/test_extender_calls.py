"""How one call to the extender can go wrong, and what becomes of the pod: the measured facts."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import pytest

from app.sandbox.nodes import NodeSpec
from app.sandbox.ports import ExtenderUnreachable
from app.sandbox.scheduler.loop import LoopConfig
from app.wire.documents import Document
from tests.sandbox.documents import at, cpu
from tests.sandbox.scheduler.scripted import Answer, Stage, error, pass_all, play, refuse
from tests.sandbox.scheduler.test_loop import GATES, ours, pinned

RECORDED = Path(__file__).parents[2] / "wire" / "recorded"
TOO_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
TEN_SECONDS = LoopConfig(name="", profiles=frozenset(), http_timeout_s=10)
IGNORABLE = LoopConfig(name="", profiles=frozenset(), ignorable=True)


def fail_nodes(text: str = "waiting for gang") -> Answer:
    return lambda args: {"NodeNames": [], "FailedNodes": dict.fromkeys(args["NodeNames"], text)}


def test_a_bind_that_takes_too_long_is_an_error_and_begins_anew_with_filter() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours())
        await stage.clock.advance(9.9)
        assert stage.told("p") == ("", "")
        await stage.clock.advance(0.2)
        assert stage.told("p") == ("SchedulerError", f'Post "http://extender/bind": {TOO_LATE}')
        await stage.clock.advance(10)
        assert stage.extender.times("bind") == stage.extender.times("filter") == [0, 12]

    play(scenario, nodes=NodeSpec(count=1), tuning=TEN_SECONDS)


def test_every_expiry_climbs_the_ladder() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours())
        await stage.clock.advance(70)
        begun = stage.extender.times("bind")
        assert [later - sooner for sooner, later in itertools.pairwise(begun)] == [
            10 + wait for wait in (2, 3, 5, 9)
        ]

    play(scenario, nodes=NodeSpec(count=1), tuning=TEN_SECONDS)


def test_a_bind_that_expires_gives_its_room_back_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours("held", resources=cpu("4")), ours("other", resources=cpu("4")))
        await stage.clock.advance(9.9)
        assert stage.extender.verbs().count("bind") == 1
        await stage.clock.advance(0.2)
        assert stage.extender.verbs().count("bind") == 2
        assert stage.extender.calls[-1][2]["PodName"] == "other"

    play(scenario, nodes=NodeSpec(count=1), tuning=TEN_SECONDS)


def test_a_filter_that_takes_too_long_stops_the_loop_for_everybody_and_is_an_error() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter_holds = asyncio.Event()
        stage.create(ours("slow"), ours("behind"))
        await stage.clock.advance(9.9)
        assert len(stage.extender.calls) == 1
        stage.extender.filter_holds.set()
        await stage.clock.settle()
        assert stage.node_of("slow")
        assert stage.node_of("behind")
        stage.extender.filter_holds.clear()
        stage.create(ours("late"))
        await stage.clock.advance(10.1)
        assert stage.told("late") == (
            "SchedulerError",
            f'Post "http://extender/filter": {TOO_LATE}',
        )

    play(scenario, tuning=TEN_SECONDS)


@pytest.mark.parametrize("how", ["error", "unreachable"])
def test_an_ignorable_extender_that_fails_is_passed_over(how: str) -> None:
    async def scenario(stage: Stage) -> None:
        if how == "error":
            stage.extender.filter = error("not yet")
        else:
            stage.extender.unreachable = "EOF"
        stage.create(ours(affinity=pinned("node-00001")))
        await stage.clock.settle()
        assert stage.extender.verbs()[-1] == "bind"
        assert stage.node_of("p") == ("node-00001" if how == "error" else "")

    play(scenario, tuning=IGNORABLE)


def test_an_ignorable_extender_that_refuses_is_obeyed() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await stage.clock.settle()
        assert not stage.node_of("p")

    play(scenario, tuning=IGNORABLE)


def test_scores_that_do_not_come_are_done_without() -> None:
    async def scenario(stage: Stage) -> None:
        def fails(_: Document) -> list[Document]:
            raise ExtenderUnreachable("EOF")

        stage.extender.prioritize = fails
        stage.create(ours())
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "prioritize", "bind"]
        assert stage.node_of("p")

    play(scenario)


@pytest.mark.parametrize(
    "answer",
    [refuse(), fail_nodes(), error("no")],
    ids=["unresolvable", "failed", "error"],
)
def test_a_nomination_that_is_refused_leads_to_the_full_path_in_the_same_cycle(
    answer: Answer,
) -> None:
    async def scenario(stage: Stage) -> None:
        alone = "node-00001"
        stage.extender.filter = lambda args: (
            answer(args) if args["NodeNames"] == [alone] else pass_all(args)
        )
        stage.create(ours(schedulingGates=GATES))
        stage.patch("p", {"status": {"nominatedNodeName": alone}}, subresource="status")
        stage.patch("p", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "filter", "prioritize", "bind"]
        assert stage.node_of("p")
        assert "nominatedNodeName" not in stage.pod("p")["status"]

    play(scenario)


@pytest.mark.parametrize("node", ["node-00001", "nowhere"])
def test_a_nomination_to_a_full_or_unknown_node_never_reaches_the_extender(node: str) -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours("full", affinity=pinned("node-00001"), resources=cpu("4")))
        await stage.clock.settle()
        stage.create(ours(schedulingGates=GATES, resources=cpu("1")))
        stage.patch("p", {"status": {"nominatedNodeName": node}}, subresource="status")
        stage.extender.calls.clear()
        stage.patch("p", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        assert stage.extender.filtered("p") == [["node-00000", "node-00002"]]
        assert stage.node_of("p") in {"node-00000", "node-00002"}

    play(scenario)


def test_a_nomination_that_fits_skips_the_scores() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(schedulingGates=GATES))
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("p", nominated, subresource="status")
        stage.patch("p", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "bind"]

    play(scenario)


def test_a_held_pod_that_is_deleted_ends_in_an_event_when_its_bind_fails() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours())
        await stage.clock.settle()
        stage.sandbox.server.delete("/pods", at("p"))
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "prioritize", "bind"]
        stage.extender.holds.set()
        await stage.clock.advance(60)
        assert stage.extender.verbs().count("filter") == 1
        assert 'pods "p" not found' in stage.events("FailedScheduling")[0]["message"]

    play(scenario)


def test_changes_of_a_pod_whose_bind_is_held_are_not_seen_by_the_queue() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours())
        await stage.clock.settle()
        stage.patch("p", {"metadata": {"annotations": {"a": "b"}}})
        await stage.clock.advance(5)
        assert stage.extender.verbs().count("filter") == 1

    play(scenario)


def test_the_mark_of_form_b_is_no_resource_that_a_node_must_have() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(resources={"limits": {"pumice.sh/gang": "1"}}))
        await stage.clock.settle()
        assert stage.node_of("p")

    play(scenario)


def shape(value: object) -> object:
    """What kinds of things are where; names and numbers left out."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
def test_bodies_have_the_shape_that_was_recorded(verb: str) -> None:
    recorded = json.loads((RECORDED / f"{verb}.request.json").read_text())

    async def scenario(stage: Stage) -> None:
        stage.create(ours(resources=cpu("1")))
        await stage.clock.settle()
        sent = next(args for called, _, args in stage.extender.calls if called == verb)
        recorded.pop("Pod", None)
        pod = sent.pop("Pod", {})
        assert shape(sent) == shape(recorded)
        assert {"apiVersion", "kind"}.isdisjoint(pod)
        assert "managedFields" not in pod.get("metadata", {})

    play(scenario)
