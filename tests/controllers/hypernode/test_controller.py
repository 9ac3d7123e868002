"""HyperNodes on the API server: their status."""

from collections.abc import Awaitable, Callable

import pytest

from app.controllers.hypernode.controller import INDEXES, HyperNodeController
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import HYPER_NODES, NODES
from app.wire.unstructured import Key, Object
from tests.controllers import play
from tests.controllers.play import Play, item


def build(stage: Play) -> list[Controller]:
    return [HyperNodeController(stage.stores, api=stage.api, clock=stage.clock)]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    return play.run(scenario, follows=INDEXES, build=build)


def node(stage: Play, node_name: str, **node_labels: str) -> None:
    stage.fake.put(NODES, item(NODES, node_name, metadata={"labels": node_labels}))


def hyper_node(stage: Play, hyper_name: str, pattern: str) -> None:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    stage.fake.put(
        HYPER_NODES, item(HYPER_NODES, hyper_name, spec={"tier": 1, "members": [member]})
    )


def status(stage: Play, hyper_name: str) -> Object:
    found: Object = stage.stored(HYPER_NODES, Key("", hyper_name))["status"]
    return found


def test_the_count_follows_the_nodes() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "a1")
        await stage.start()
        hyper_node(stage, "h", "^a")
        await stage.settle()
        assert status(stage, "h")["nodeCount"] == 1
        (condition,) = status(stage, "h")["conditions"]
        assert (condition["type"], condition["status"]) == ("MembersResolved", "True")
        assert condition["observedGeneration"] == 1
        since = condition["lastTransitionTime"]
        await stage.later(60)
        node(stage, "a2")
        node(stage, "b1")
        await stage.settle()
        assert status(stage, "h")["nodeCount"] == 2
        assert status(stage, "h")["conditions"][0]["lastTransitionTime"] == since
        stage.fake.remove(NODES, Key("", "a1"))
        stage.fake.remove(NODES, Key("", "a2"))
        await stage.settle()
        assert status(stage, "h")["nodeCount"] == 0
        assert status(stage, "h")["conditions"][0]["reason"] == "Empty"
        assert status(stage, "h")["conditions"][0]["lastTransitionTime"] != since

    run(scenario)


def test_conditions_of_others_stay_and_have_their_own_times() -> None:
    other = {
        "type": "Healthy",
        "status": "True",
        "reason": "Seen",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }

    async def scenario(stage: Play) -> None:
        await stage.start()
        node(stage, "n1")
        hyper_node(stage, "h", "n")
        stage.fake.edit(HYPER_NODES, Key("", "h"), {"status": {"conditions": [other]}})
        await stage.settle()
        kept, ours = status(stage, "h")["conditions"]
        assert kept == other
        assert (ours["type"], ours["status"]) == ("MembersResolved", "True")
        assert ours["lastTransitionTime"] == times.seconds(stage.clock())
        assert (
            ours["observedGeneration"]
            == stage.stored(HYPER_NODES, Key("", "h"))["metadata"]["generation"]
        )

    run(scenario)


@pytest.mark.parametrize("failure", [Failure.CONFLICT, Failure.PASSING])
def test_a_status_that_could_not_be_written_is_written_later(failure: Failure) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.fail(failure, lambda request: request.subresource == "status", times=2)
        hyper_node(stage, "h", "n")
        await stage.later(5)
        assert status(stage, "h")["nodeCount"] == 0

    run(scenario)


def test_a_status_that_somebody_else_wrote_is_put_right() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1")
        hyper_node(stage, "h", "n")
        await stage.start()
        before = status(stage, "h")
        stage.fake.edit(HYPER_NODES, Key("", "h"), {"status": {"nodeCount": 9}})
        await stage.settle()
        assert status(stage, "h") == before

    run(scenario)


def test_a_node_that_only_beats_its_heart_costs_nothing() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        node(stage, "a1")
        hyper_node(stage, "h", "^a")
        await stage.settle()
        before = len(stage.fake.requests)
        stage.fake.edit(NODES, Key("", "a1"), {"status": {"heartbeat": 1}})
        await stage.settle()
        assert len(stage.fake.requests) == before

    run(scenario)
