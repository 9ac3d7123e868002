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
        condition, _ = status(stage, "h")["conditions"]
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
        kept, ours, _ = status(stage, "h")["conditions"]
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


def condition(stage: Play, hyper_name: str, kind: str) -> tuple[str, str, str]:
    """Status, reason and message."""
    found = {each["type"]: each for each in status(stage, hyper_name)["conditions"]}[kind]
    return found["status"], found["reason"], found["message"]


def test_hyper_nodes_of_a_tier_that_share_nodes_say_so_until_they_do_not() -> None:
    async def scenario(stage: Play) -> None:
        for name in ("a1", "a2", "b1"):
            node(stage, name)
        await stage.start()
        hyper_node(stage, "h", "^a")
        hyper_node(stage, "i", "1$")
        await stage.settle()
        assert condition(stage, "h", "TreeConsistent") == (
            "False",
            "Overlap",
            "it has nodes of i too",
        )
        assert condition(stage, "i", "TreeConsistent")[2] == "it has nodes of h too"
        assert condition(stage, "h", "MembersResolved")[0] == "True"
        stage.fake.edit(HYPER_NODES, Key("", "i"), {"spec": {"tier": 2}})
        await stage.settle()
        assert condition(stage, "h", "TreeConsistent")[0] == "True"
        assert condition(stage, "i", "TreeConsistent")[0] == "True"
        hyper_node(stage, "j", "^b")
        stage.fake.edit(HYPER_NODES, Key("", "i"), {"spec": {"tier": 1}})
        await stage.settle()
        assert condition(stage, "i", "TreeConsistent")[2] == "it has nodes of h, j too"
        stage.fake.remove(HYPER_NODES, Key("", "j"))
        stage.fake.remove(NODES, Key("", "a1"))
        await stage.settle()
        assert condition(stage, "h", "TreeConsistent")[0] == "True"

    run(scenario)


def tree(stage: Play, hyper_name: str, tier: int, *members: tuple[str, str]) -> None:
    """A HyperNode with members by type and name."""
    told = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for kind, each in members]
    spec = {"tier": tier, "members": told}
    stage.fake.put(HYPER_NODES, item(HYPER_NODES, hyper_name, spec=spec))


def test_members_that_are_missing_or_above_themselves_are_told_and_mixed_depth_is_not() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1")
        node(stage, "n2")
        await stage.start()
        tree(stage, "rack", 1, ("Node", "n1"))
        tree(stage, "mixed", 2, ("HyperNode", "rack"), ("Node", "n2"))
        tree(stage, "lacks", 3, ("HyperNode", "mixed"), ("HyperNode", "gone"), ("Node", "n9"))
        tree(stage, "one", 4, ("HyperNode", "two"))
        tree(stage, "two", 5, ("HyperNode", "one"))
        await stage.settle()
        told = {
            name: condition(stage, name, "MembersResolved")[1:]
            for name in ("mixed", "lacks", "one", "two")
        }
        assert told == {
            "mixed": ("Resolved", "every member was found"),
            "lacks": ("NoSuchMember", "there is no HyperNode gone, Node n9"),
            "one": ("Cycle", "it is a member of itself"),
            "two": ("Cycle", "it is a member of itself"),
        }
        assert condition(stage, "mixed", "TreeConsistent")[0] == "True"
        tree(stage, "low", 1, ("HyperNode", "mixed"))
        await stage.settle()
        assert condition(stage, "low", "TreeConsistent")[1:] == (
            "TierOrder",
            "its tier is not above that of mixed",
        )
        assert status(stage, "mixed")["nodeCount"] == status(stage, "lacks")["nodeCount"] == 2

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
