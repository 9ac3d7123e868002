"""HyperNodes on the API server: their status, and those that labels make."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import yaml

from app.controllers.hypernode.controller import INDEXES, HyperNodeController
from app.controllers.hypernode.discoverer import LabelDiscoverer
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES, NODES
from app.wire.unstructured import Key, Object, labels, name, spec, uid
from tests.controllers import play
from tests.controllers.play import Play, item

CONF = Key("pumice-system", "volcano-controller-configmap")


def build(stage: Play) -> list[Controller]:
    return [
        HyperNodeController(stage.stores, api=stage.api, clock=stage.clock),
        LabelDiscoverer(stage.stores, api=stage.api, events=stage.events, config_map=CONF),
    ]


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


def configure(stage: Play, *entries: Mapping[str, Any], text: str = "") -> None:
    conf = text or yaml.safe_dump({"networkTopologyDiscovery": list(entries)})
    data = {"volcano-controller.conf": conf}
    stage.fake.put(CONFIG_MAPS, item(CONFIG_MAPS, CONF.name, namespace=CONF.namespace, data=data))


def by_label(*levels: str, enabled: bool = True) -> Mapping[str, Any]:
    types = {"topo": [{"nodeLabel": level} for level in levels]}
    return {"source": "label", "enabled": enabled, "config": {"networkTopologyTypes": types}}


def discovered(stage: Play) -> dict[tuple[int, str], list[str]]:
    """Members of what was discovered, by tier and label value; HyperNodes by theirs."""
    found = [
        each
        for each in stage.fake.all(HYPER_NODES)
        if labels(each).get("volcano.sh/network-topology-source") == "label"
    ]
    value = {
        name(each): next(v for k, v in labels(each).items() if not k.startswith("volcano.sh"))
        for each in found
    }
    return {
        (spec(each)["tier"], value[name(each)]): sorted(
            value.get(m["selector"]["exactMatch"]["name"], m["selector"]["exactMatch"]["name"])
            for m in spec(each)["members"]
        )
        for each in found
    }


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


def test_labels_make_a_tree() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("zone", "rack", "kubernetes.io/hostname"))
        await stage.start()
        node(stage, "n1", zone="z", rack="r1")
        node(stage, "n2", zone="z", rack="r1")
        node(stage, "n3", zone="z", rack="r2")
        node(stage, "n4", rack="r3")
        node(stage, "n5", zone="z")
        await stage.settle()
        assert discovered(stage) == {
            (1, "r1"): ["n1", "n2"],
            (1, "r2"): ["n3"],
            (1, "r3"): ["n4"],
            (2, "z"): ["r1", "r2"],
        }
        (top,) = [each for each in stage.fake.all(HYPER_NODES) if spec(each)["tier"] == 2]
        assert name(top).startswith("hypernode-topo-tier2-")
        assert top["status"]["nodeCount"] == 3

    run(scenario)


def test_a_tier_is_called_as_its_label_where_there_is_room_for_that() -> None:
    long = f"{'a' * 63}.{'b' * 63}.{'c' * 63}/{'d' * 63}"

    async def scenario(stage: Play) -> None:
        node(stage, "n1", **{"rack": "r1", "zone": "z", long: "x"})
        configure(stage, by_label(long, "zone", "rack", "kubernetes.io/hostname"))
        await stage.start()
        found = stage.fake.all(HYPER_NODES)
        assert {spec(each)["tier"]: spec(each).get("tierName") for each in found} == {
            1: "rack",
            2: "zone",
            3: None,
        }

    run(scenario)


def test_a_tier_that_has_no_name_yet_gets_one() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1", rack="r1")
        configure(stage, by_label("rack", "kubernetes.io/hostname"))
        await stage.start()
        (made,) = stage.names(HYPER_NODES)
        stage.fake.edit(HYPER_NODES, Key("", made), {"spec": {"tierName": None}})
        await stage.settle()
        (found,) = stage.fake.all(HYPER_NODES)
        assert spec(found)["tierName"] == "rack"

    run(scenario)


def test_what_was_discovered_follows_the_labels_and_the_rest_is_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        hyper_node(stage, "by-hand", "n1")
        node(stage, "n1", rack="r1")
        node(stage, "n2", rack="r1")
        await stage.start()
        names = stage.names(HYPER_NODES)
        node(stage, "n2", rack="r2")
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"], (1, "r2"): ["n2"]}
        assert set(names) <= set(stage.names(HYPER_NODES))
        node(stage, "n2", rack="r1")
        await stage.settle()
        assert stage.names(HYPER_NODES) == names
        assert "by-hand" in names

    run(scenario)


def test_a_new_owner_keeps_what_it_finds_and_catches_up() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("zone", "rack"))
        for number in range(4):
            node(stage, f"n{number}", zone="z", rack=f"r{number % 2}")
        await stage.start()
        before = {name(each): uid(each) for each in stage.fake.all(HYPER_NODES)}
        for _ in range(2):
            requests = len(stage.fake.requests)
            await stage.kill()
            await stage.start()
            assert {each.verb for each in stage.fake.requests[requests:]} == {"get"}
        await stage.kill()
        node(stage, "n3", zone="z", rack="r0")
        await stage.start()
        assert {name(each): uid(each) for each in stage.fake.all(HYPER_NODES)} == before
        assert discovered(stage) == {
            (1, "r0"): ["n0", "n2", "n3"],
            (1, "r1"): ["n1"],
            (2, "z"): ["r0", "r1"],
        }

    run(scenario)


def test_what_somebody_takes_away_or_changes_is_put_right() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        (made,) = stage.names(HYPER_NODES)
        stage.fake.edit(HYPER_NODES, Key("", made), {"spec": {"tier": 7}})
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"]}
        stage.fake.remove(HYPER_NODES, Key("", made))
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    run(scenario)


def test_a_change_of_the_configuration_takes_effect_and_switching_off_deletes_nothing() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1", rack="r1", zone="z")
        await stage.start()
        assert discovered(stage) == {}
        configure(stage, by_label("rack"))
        await stage.later(20)
        assert discovered(stage) == {(1, "r1"): ["n1"]}
        configure(stage, by_label("zone"))
        await stage.later(20)
        assert discovered(stage) == {(1, "z"): ["n1"]}
        configure(stage, by_label("zone", enabled=False))
        await stage.later(20)
        stage.fake.remove(CONFIG_MAPS, CONF)
        await stage.later(20)
        assert discovered(stage) == {(1, "z"): ["n1"]}

    assert run(scenario).told.told == []


def test_tabs_separate_in_the_configuration() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1", rack="r1")
        text = yaml.safe_dump({"networkTopologyDiscovery": [by_label("rack")]})
        configure(stage, text=text.replace("source: ", "source:\t"))
        await stage.start()
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    assert run(scenario).told.told == []


def test_a_source_there_is_none_of_is_told_of_once() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, {"source": "ufm", "enabled": True}, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        await stage.later(100)
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    assert run(scenario).told.messages("UnsupportedSource") == [
        "no HyperNodes are discovered from ufm; the only source is label"
    ]


def test_a_configuration_that_cannot_be_read_changes_nothing_and_is_told_of() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        for text in ("a: [", "[]", "networkTopologyDiscovery: {a: b}"):
            configure(stage, text=text)
            await stage.later(20)
        configure(
            stage,
            {
                "source": "label",
                "enabled": True,
                "config": {"networkTopologyTypes": {"t": [{"label": "rack"}]}},
            },
        )
        await stage.later(20)
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    assert len(run(scenario).told.messages("InvalidConfiguration")) >= 3
