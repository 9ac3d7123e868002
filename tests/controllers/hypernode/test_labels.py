"""HyperNodes that labels of nodes make."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import yaml

from app.controllers.ports import Failure
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES
from app.wire.unstructured import Key, labels, name, spec, uid
from tests.controllers.hypernode import discovering
from tests.controllers.hypernode.discovering import CONF, configure, hyper_node, node
from tests.controllers.play import Play, item


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    """Play a scenario without servers."""
    return discovering.run(lambda stage, _: scenario(stage))


def by_label(*levels: str, enabled: bool = True, **types: Any) -> Mapping[str, Any]:
    """Levels of one topology, the node itself left out; or topologies by name."""
    found = [{"nodeLabel": level} for level in (*levels, "kubernetes.io/hostname")]
    config = {"networkTopologyTypes": types or {"topo": found}}
    return {"source": "label", "enabled": enabled, "config": config}


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


def test_labels_make_a_tree() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("zone", "rack"))
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
        configure(stage, by_label(long, "zone", "rack"))
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
        configure(stage, by_label("rack"))
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
            assert stage.fake.requests[requests:] == []
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
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"]}
        configure(stage, by_label("zone"))
        await stage.settle()
        assert discovered(stage) == {(1, "z"): ["n1"]}
        configure(stage, by_label("zone", enabled=False))
        await stage.settle()
        stage.fake.remove(CONFIG_MAPS, CONF)
        await stage.settle()
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
        configure(stage, {"source": "roce", "enabled": True}, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        await stage.later(100)
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    assert run(scenario).told.messages("UnsupportedSource") == [
        "no HyperNodes are discovered from roce; there are label, ufm, rest"
    ]


def test_what_has_no_effect_is_told_of() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, {**by_label("rack"), "intervall": "3m"})
        await stage.start()

    (said,) = run(scenario).told.messages("NoEffect")
    assert said.endswith("networkTopologyDiscovery[0].intervall: has no effect")


def test_a_configuration_that_cannot_be_read_leaves_the_last_one_at_work() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        for text in ("a: [", "[]", "networkTopologyDiscovery:\n- enabled: maybe\n"):
            configure(stage, text=text)
            await stage.settle()
        node(stage, "n2", rack="r1")
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1", "n2"]}
        configure(stage, by_label("zone"))
        await stage.settle()
        assert discovered(stage) == {}

    kept = "the configuration before it holds"
    path = "networkTopologyDiscovery[0].enabled"
    key = "volcano-controller.conf"
    assert run(scenario).told.messages("InvalidConfiguration") == [
        f"{key}: not YAML: line 1, column 5: expected the node content, but found "
        f"'<stream end>'; {kept}",
        f"{key}: line 1: the document: is not a mapping; {kept}",
        f"{key}: line 2: {path}: 'maybe' is not true or false; {kept}",
    ]


def test_a_config_map_without_the_key_leaves_the_last_configuration_at_work() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        await stage.start()
        other = item(CONFIG_MAPS, CONF.name, namespace=CONF.namespace, data={"other": ""})
        stage.fake.put(CONFIG_MAPS, other)
        node(stage, "n1", rack="r1")
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    (said,) = run(scenario).told.messages("InvalidConfiguration")
    assert said.startswith("volcano-controller.conf: the ConfigMap has no such key")


def test_config_maps_of_others_configure_nothing() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        await stage.start()
        for each in (Key("ns", CONF.name), Key(CONF.namespace, "other")):
            other = item(CONFIG_MAPS, each.name, namespace=each.namespace, data={"a": "b: ["})
            stage.fake.put(CONFIG_MAPS, other)
        node(stage, "n1", rack="r1")
        await stage.settle()
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    assert run(scenario).told.told == []


def test_the_last_level_stands_for_the_node_whatever_its_label() -> None:
    async def scenario(stage: Play) -> None:
        levels = [{"nodeLabel": each} for each in ("zone", "rack", "host")]
        configure(stage, by_label(topo=levels))
        node(stage, "n1", zone="z", rack="r1", host="h1")
        node(stage, "n2", zone="z", rack="r1", host="h2")
        await stage.start()
        assert discovered(stage) == {(1, "r1"): ["n1", "n2"], (2, "z"): ["r1"]}

    run(scenario)


def test_hyper_nodes_that_volcano_made_keep_their_names() -> None:
    async def scenario(stage: Play) -> None:
        named = {(1, "r1"): "hypernode-topo-tier1-x7k2p", (2, "z"): "hypernode-topo-tier2-abcde"}
        for (tier, value), each in named.items():
            key = "rack" if tier == 1 else "zone"
            marks = {"volcano.sh/network-topology-source": "label", key: value}
            member = {"type": "Node", "selector": {"exactMatch": {"name": "old"}}}
            stage.fake.put(
                HYPER_NODES,
                item(
                    HYPER_NODES,
                    each,
                    metadata={"labels": marks},
                    spec={"tier": tier, "members": [member]},
                ),
            )
        configure(stage, by_label("zone", "rack"))
        node(stage, "n1", zone="z", rack="r1")
        node(stage, "n2", zone="z", rack="r2")
        await stage.start()
        assert discovered(stage) == {(1, "r1"): ["n1"], (1, "r2"): ["n2"], (2, "z"): ["r1", "r2"]}
        assert set(named.values()) < set(stage.names(HYPER_NODES))

    run(scenario)


def test_a_name_that_a_hyper_node_made_by_hand_has_is_not_taken() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label("rack"))
        node(stage, "n1", rack="r1")
        await stage.start()
        (taken,) = stage.names(HYPER_NODES)
        stage.fake.edit(
            HYPER_NODES,
            Key("", taken),
            {"metadata": {"labels": {"volcano.sh/network-topology-source": None}}},
        )
        by_hand = stage.stored(HYPER_NODES, Key("", taken))["spec"]
        await stage.later(5)
        assert discovered(stage) == {(1, "r1"): ["n1"]}
        assert len(stage.names(HYPER_NODES)) == 2
        node(stage, "n2", rack="r1")
        await stage.settle()
        assert stage.stored(HYPER_NODES, Key("", taken))["spec"] == by_hand

    run(scenario)


def test_a_hyper_node_that_the_api_server_refuses_is_told_of_and_tried_again() -> None:
    async def scenario(stage: Play) -> None:
        node(stage, "n1", rack="r1")
        await stage.start()
        stage.fake.fail(
            Failure.REFUSED,
            lambda request: request.resource == HYPER_NODES and request.verb == "create",
            message="too large",
        )
        configure(stage, by_label("rack"))
        await stage.settle()
        assert discovered(stage) == {}
        await stage.later(61)
        assert discovered(stage) == {(1, "r1"): ["n1"]}

    told = run(scenario).told
    (said,) = told.messages("DiscoveryFailed")
    assert said.startswith("label: HyperNode hypernode-topo-tier1-")
    assert said.endswith(": too large; its HyperNodes stay as they are")
    assert told.messages("Discovered") == ["label: the topology is known again"]


def profile(name: str, *levels: tuple[str, str]) -> dict[str, Any]:
    """A topology for the nodes with that label, the node itself left out."""
    found = [{"nodeLabel": label, "tierName": called} for label, called in levels]
    return {
        "nodeSelector": {"matchLabels": {"profile": name}},
        "levels": [*found, {"nodeLabel": "kubernetes.io/hostname"}],
    }


DEEP = profile("deep", ("deep-cluster", "cluster"), ("deep-pod", "pod"))
SHALLOW = profile("shallow", ("shallow-cluster", "cluster"))


def test_topologies_of_different_depth_stand_beside_each_other() -> None:
    async def scenario(stage: Play) -> None:
        rest = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
        configure(stage, by_label(deep=DEEP, shallow=SHALLOW, rest=rest))
        node(stage, "d1", **{"profile": "deep", "deep-cluster": "c", "deep-pod": "p", "rack": "r"})
        node(stage, "s1", **{"profile": "shallow", "shallow-cluster": "c"})
        node(stage, "r1", rack="r")
        await stage.start()
        found = {
            (spec(each)["tierName"], labels(each).get("volcano.sh/network-topology-profile")): (
                spec(each)["tier"],
                len(spec(each)["members"]),
            )
            for each in stage.fake.all(HYPER_NODES)
        }
        assert found == {
            ("pod", "deep"): (1, 1),
            ("cluster", "deep"): (2, 1),
            ("cluster", "shallow"): (1, 1),
            ("rack", None): (1, 1),
        }

    run(scenario)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([{"profile": "deep", "deep-cluster": "c"}], "node n0 of deep has no label deep-pod"),
        ([{"profile": "deep", "deep-pod": "p"}], "node n0 of deep has no label deep-cluster"),
        (
            [
                {"profile": "deep", "deep-pod": "p", "deep-cluster": "c"},
                {"profile": "deep", "deep-pod": "p", "deep-cluster": "d"},
            ],
            "deep-pod=p of deep is in both deep-cluster=c and deep-cluster=d",
        ),
    ],
)
def test_labels_that_contradict_a_profile_change_nothing(
    nodes: list[dict[str, str]], said: str
) -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label(deep=DEEP, shallow=SHALLOW))
        node(stage, "before", **{"profile": "shallow", "shallow-cluster": "c"})
        await stage.start()
        for number, each in enumerate(nodes):
            node(stage, f"n{number}", **each)
        await stage.settle()
        assert [spec(each)["tier"] for each in stage.fake.all(HYPER_NODES)] == [1]

    told = run(scenario).told.messages("DiscoveryFailed")
    assert told[-1] == f"label: {said}; its HyperNodes stay as they are"


def test_a_node_of_two_profiles_changes_nothing() -> None:
    async def scenario(stage: Play) -> None:
        configure(stage, by_label(a=DEEP, b=DEEP))
        node(stage, "n1", **{"profile": "deep", "deep-pod": "p", "deep-cluster": "c"})
        await stage.start()
        assert stage.fake.all(HYPER_NODES) == []

    assert run(scenario).told.messages("DiscoveryFailed") == [
        "label: node n1 is in both a and b; its HyperNodes stay as they are"
    ]
