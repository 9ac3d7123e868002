"""ColocationConfigurations on the API server: what they write into pods."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from app.controllers.colocation import INDEXES, ColocationController
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire.kinds import COLOCATION_CONFIGURATIONS, PODS
from app.wire.unstructured import Key, annotations
from tests.controllers import play
from tests.controllers.play import Play, item

CONFIG, NAME = "volcano.sh/colocation-config", "volcano.sh/colocation-config-name"
QUIET = {"highRatio": 100, "lowRatio": 20, "minRatio": 0}
QUIET_TEXT = '{"memoryQos":{"highRatio":100,"lowRatio":20}}'
OFFLINE = {"matchLabels": {"kind": "offline"}}


def build(stage: Play) -> list[Controller]:
    return [ColocationController(stage.stores, api=stage.api)]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    return play.run(scenario, follows=INDEXES, build=build)


def pod(stage: Play, pod_name: str, **fields: Any) -> None:
    """A pod with the label ``kind: offline``, unless told otherwise."""
    given = {"labels": {"kind": "offline"}, **fields.pop("metadata", {})}
    stage.fake.put(PODS, item(PODS, pod_name, metadata=given, spec={"containers": []}, **fields))


def configuration(stage: Play, config_name: str, *, namespace: str = "ns", **spec: Any) -> None:
    given = {"selector": OFFLINE, "memoryQos": QUIET, **spec}
    stage.fake.put(
        COLOCATION_CONFIGURATIONS,
        item(COLOCATION_CONFIGURATIONS, config_name, namespace=namespace, spec=given),
    )


def told(stage: Play, pod_name: str) -> Mapping[str, str]:
    said = annotations(stage.stored(PODS, Key("ns", pod_name)))
    return {key: said[key] for key in (CONFIG, NAME) if key in said}


def writes(stage: Play) -> int:
    return sum(request.verb == "patch" for request in stage.fake.requests)


def test_pods_that_a_selector_matches_are_told_and_others_are_not() -> None:
    async def scenario(stage: Play) -> None:
        configuration(stage, "quiet")
        configuration(stage, "elsewhere", namespace="other", selector={})
        pod(stage, "before")
        pod(stage, "online", metadata={"labels": {"kind": "online"}})
        await stage.start()
        pod(stage, "after")
        await stage.settle()
        assert told(stage, "before") == {CONFIG: QUIET_TEXT, NAME: "quiet"}
        assert told(stage, "after") == {CONFIG: QUIET_TEXT, NAME: "quiet"}
        assert told(stage, "online") == {}
        assert writes(stage) == 2
        await stage.later(600)
        assert writes(stage) == 2

    run(scenario)


def test_the_newest_counts_and_when_it_goes_the_one_before() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        await stage.start()
        configuration(stage, "z-old")
        await stage.later(5)
        configuration(stage, "a-new", memoryQos={"highRatio": 50})
        await stage.settle()
        assert told(stage, "p") == {CONFIG: '{"memoryQos":{"highRatio":50}}', NAME: "a-new"}
        stage.fake.remove(COLOCATION_CONFIGURATIONS, Key("ns", "a-new"))
        await stage.settle()
        assert told(stage, "p") == {CONFIG: QUIET_TEXT, NAME: "z-old"}
        stage.fake.remove(COLOCATION_CONFIGURATIONS, Key("ns", "z-old"))
        await stage.settle()
        assert told(stage, "p") == {CONFIG: "{}"}

    run(scenario)


@pytest.mark.parametrize(
    "change",
    [{"selector": {"matchLabels": {"kind": "other"}}}, {"selector": None}],
    ids=str,
)
def test_a_pod_that_is_selected_no_more_is_told_to_undo_it(change: dict[str, Any]) -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        configuration(stage, "quiet")
        await stage.start()
        configuration(stage, "quiet", **change)
        await stage.settle()
        assert told(stage, "p") == {CONFIG: "{}"}

    run(scenario)


def test_a_change_of_labels_is_followed() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p", metadata={"labels": {}})
        configuration(stage, "quiet")
        await stage.start()
        assert told(stage, "p") == {}
        pod(stage, "p")
        await stage.settle()
        assert told(stage, "p") == {CONFIG: QUIET_TEXT, NAME: "quiet"}

    run(scenario)


def test_what_volcano_wrote_is_not_written_again() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p", metadata={"annotations": {CONFIG: QUIET_TEXT, NAME: "quiet"}})
        pod(stage, "undone", metadata={"labels": {}, "annotations": {CONFIG: "{}"}})
        configuration(stage, "quiet")
        await stage.start()
        await stage.later(60)
        assert writes(stage) == 0

    run(scenario)


def test_pods_that_have_ended_or_are_ending_are_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "done", status={"phase": "Succeeded"})
        configuration(stage, "quiet")
        await stage.start()
        assert told(stage, "done") == {}

    run(scenario)


@pytest.mark.parametrize("failure", [Failure.NOT_FOUND, Failure.CONFLICT])
def test_a_pod_that_is_gone_by_then_is_not_tried_again(failure: Failure) -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        configuration(stage, "quiet")
        stage.fake.fail(failure, lambda request: request.verb == "patch", times=99)
        await stage.start()
        tried = writes(stage)
        assert tried > 0
        await stage.later(600)
        assert writes(stage) == tried

    run(scenario)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"memoryQos": {"highRatio": 0, "lowRatio": 0, "minRatio": 0}}, '{"memoryQos":{}}'),
        ({"memoryQos": None}, "{}"),
        ({"selector": {}}, QUIET_TEXT),
        (
            {"selector": {"matchExpressions": [{"key": "kind", "operator": "Exists"}]}},
            QUIET_TEXT,
        ),
    ],
    ids=str,
)
def test_the_text_is_volcanos(spec: dict[str, Any], text: str) -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        configuration(stage, "quiet", **spec)
        await stage.start()
        assert told(stage, "p") == {CONFIG: text, NAME: "quiet"}

    run(scenario)


def test_a_selector_that_cannot_be_read_selects_nothing() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        wrong = {"matchExpressions": [{"key": "kind", "operator": "Like"}]}
        configuration(stage, "quiet", selector=wrong)
        await stage.start()
        assert told(stage, "p") == {}

    run(scenario)
