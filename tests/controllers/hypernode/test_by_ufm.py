"""HyperNodes of what UFM answers, by Volcano's rules."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.hypernode import by_ufm
from app.controllers.hypernode.making import Known, TopologyError
from app.wire.kinds import NODES
from app.wire.unstructured import labels
from tests.controllers.hypernode.shapes import known, nodes, source_of, tree
from tests.controllers.play import item
from tests.scale import examples

NOTHING = Known({})


def port(system: str | None, peer: str | None, kind: str = "Computer IB Port") -> object:
    """A port as UFM's documentation shows it, with what matters first."""
    return {
        "description": kind,
        "system_name": system,
        "peer_node_name": peer,
        "number": 1,
        "external_number": 1,
        "physical_state": "Link Up",
        "path": f"default / Computer: {system} / HCA-1/1",
        "tier": 1,
        "lid": 3,
        "logical_state": "Active",
        "capabilities": ["healthy_operations", "reset", "disable"],
        "active_speed": None,
        "enabled_speed": [],
        "node_description": f"{system} mlx5_0",
        "systemID": "248a0703008a850a",
    }


def fabric(links: Iterable[tuple[str, str]]) -> by_ufm.Fabric:
    return by_ufm.read_fabric(json.dumps([port(*link) for link in links]).encode())


def rails(*groups: tuple[str, str]) -> by_ufm.Fabric:
    """Each computer of a group is connected to each leaf switch of it."""
    return fabric(
        (node, leaf) for computers, leaves in groups for node in computers for leaf in leaves
    )


def test_leaf_switches_that_share_computers_are_one_domain() -> None:
    found = by_ufm.hyper_nodes(
        rails(("abcd", "0123"), ("efgh", "4567")), nodes(*"hgfedcba"), NOTHING
    )
    assert tree(found) == {
        "leaf-hn-0": (1, ["a", "b", "c", "d"]),
        "leaf-hn-1": (1, ["e", "f", "g", "h"]),
        "spine-hn": (2, ["leaf-hn-0", "leaf-hn-1"]),
    }
    assert {source_of(each) for each in found.values()} == {"ufm"}
    assert all(len(labels(each)) == 1 for each in found.values())


def test_switches_that_hang_together_by_a_chain_of_computers_are_one_domain() -> None:
    chain = fabric([("a", "1"), ("a", "2"), ("b", "2"), ("b", "3"), ("c", "3"), ("d", "9")])
    found = by_ufm.hyper_nodes(chain, nodes(*"abcd"), NOTHING)
    assert tree(found)["leaf-hn-0"] == (1, ["a", "b", "c"])
    assert tree(found)["leaf-hn-1"] == (1, ["d"])


def test_a_computer_that_is_no_node_joins_nothing() -> None:
    told = fabric([("a", "1"), ("b", "2"), ("storage", "1"), ("storage", "2")])
    found = by_ufm.hyper_nodes(told, nodes("a", "b", "c"), NOTHING)
    assert tree(found) == {
        "leaf-hn-0": (1, ["a"]),
        "leaf-hn-1": (1, ["b"]),
        "spine-hn": (2, ["leaf-hn-0", "leaf-hn-1"]),
    }


def test_a_node_is_found_by_its_host_name_too() -> None:
    node = item(NODES, "10.0.0.1", metadata={"labels": {"kubernetes.io/hostname": "a"}})
    found = by_ufm.hyper_nodes(fabric([("a", "1")]), [node], NOTHING)
    assert tree(found)["leaf-hn-0"] == (1, ["10.0.0.1"])


def test_ports_of_switches_and_ports_that_are_not_connected_count_for_nothing() -> None:
    told = [
        port("a", "leaf"),
        port("b", "N/A"),
        port("c", ""),
        port("d", None),
        port(None, "leaf"),
        port("leaf", "a", "Switch IB Port"),
        {},
    ]
    assert by_ufm.read_fabric(json.dumps(told).encode()) == {"a": {"leaf"}}


def test_a_domain_keeps_its_name_when_a_switch_comes_before_it() -> None:
    before = by_ufm.hyper_nodes(rails(("ab", "45"), ("cd", "67")), nodes(*"abcd"), NOTHING)
    assert tree(before)["leaf-hn-0"] == (1, ["a", "b"])
    told = rails(("ef", "01"), ("abx", "45"), ("cd", "67"))
    after = by_ufm.hyper_nodes(told, nodes(*"abcdefx"), known(before))
    assert tree(after) == {
        "leaf-hn-0": (1, ["a", "b", "x"]),
        "leaf-hn-1": (1, ["c", "d"]),
        "leaf-hn-2": (1, ["e", "f"]),
        "spine-hn": (2, ["leaf-hn-0", "leaf-hn-1", "leaf-hn-2"]),
    }


def test_of_a_domain_that_falls_apart_the_greater_part_keeps_the_name() -> None:
    before = by_ufm.hyper_nodes(rails(("abcde", "45")), nodes(*"abcde"), NOTHING)
    after = by_ufm.hyper_nodes(rails(("ab", "4"), ("cde", "5")), nodes(*"abcde"), known(before))
    assert tree(after)["leaf-hn-0"] == (1, ["c", "d", "e"])
    assert tree(after)["leaf-hn-1"] == (1, ["a", "b"])


def test_names_of_other_hyper_nodes_are_not_taken() -> None:
    others = known({}, ["leaf-hn-0", "spine-hn", "spine-hn-1"])
    found = by_ufm.hyper_nodes(fabric([("a", "1")]), nodes("a"), others)
    assert sorted(found) == ["leaf-hn-1", "spine-hn-2"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not a list of ports"),
        (b"<html>", "not a list of ports"),
        (b"{}", "Expected `array`, got `object`"),
        (b"[1]", r"Expected `object`, got `int` - at `\$\[0\]`"),
        (b'[{"system_name": 7}]', r"Expected `str \| null`, got `int` - at `\$\[0\].system_name`"),
        (b'[{"x": ' + b"[" * 100_000, "not a list of ports"),
        (b"\x1f\x8b\x08", "not a list of ports"),
        (b"[]", "no port of a computer is connected to a switch"),
        (json.dumps([port("s", "t", "Switch IB Port")]).encode(), "no port of a computer"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        by_ufm.read_fabric(body)


def test_a_fabric_of_another_cluster_is_refused() -> None:
    with pytest.raises(TopologyError, match="none of 2 computers is a node of this cluster"):
        by_ufm.hyper_nodes(fabric([("a", "1"), ("b", "1")]), nodes("c"), NOTHING)


def test_a_hundred_thousand_computers_are_read_and_those_of_the_cluster_kept() -> None:
    ports = ",".join(
        f'{{"description":"Computer IB Port","system_name":"n{number}",'
        f'"peer_node_name":"leaf{number // 20}"}}'
        for number in range(100_000)
    )
    told = by_ufm.read_fabric(f"[{ports}]".encode())
    assert len(told) == 100_000
    found = by_ufm.hyper_nodes(told, nodes("n7", "n19", "n20"), NOTHING)
    assert tree(found)["leaf-hn-0"] == (1, ["n19", "n7"])
    assert tree(found)["leaf-hn-1"] == (1, ["n20"])


LINKS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("12345678")), min_size=1, max_size=20
)


@given(LINKS, LINKS)
@examples(300)
def test_whatever_is_linked_is_together_and_asking_again_changes_nothing(
    first: list[tuple[str, str]], then: list[tuple[str, str]]
) -> None:
    there = nodes(*"abcdefgh")
    found = by_ufm.hyper_nodes(fabric(first), there, NOTHING)
    assert by_ufm.hyper_nodes(fabric(first), there, known(found)) == found
    after = by_ufm.hyper_nodes(fabric(then), there, known(found))
    groups = [set(inside) for tier, inside in tree(after).values() if tier == 1]
    assert sorted(node for group in groups for node in group) == sorted({n for n, _ in then})
    for leaf in {leaf for _, leaf in then}:
        linked = {node for node, other in then if other == leaf}
        assert any(linked <= group for group in groups)
    assert sorted(tree(after)["spine-hn"][1]) == sorted(after.keys() - {"spine-hn"})
