"""Domains of the network as columns over the rows of the node table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.cache.nodes.domains import NetworkTree
from app.model.domains import Domains
from app.model.ids import CLUSTER
from app.model.node import Node
from app.model.topology import HyperNode, HyperNodeMember
from tests.builders import make_node, make_table
from tests.scale import examples

NODES = tuple(make_node(f"n{number}", labels={"rack": f"r{number // 2}"}) for number in range(6))


def node(name: str) -> HyperNodeMember:
    return HyperNodeMember(True, name=name)


def below(name: str) -> HyperNodeMember:
    return HyperNodeMember(False, name=name)


def domains(*hyper_nodes: HyperNode, nodes: tuple[Node, ...] = NODES) -> Domains:
    tree = NetworkTree()
    for each in nodes:
        tree.set_node(each)
    for hyper_node in hyper_nodes:
        tree.set(hyper_node)
    return tree.domains(make_table(nodes))


def as_sets(found: Domains) -> dict[str, tuple[int, set[int]]]:
    return {
        name: (int(found.tiers[at]), set(found.rows_of(at).tolist()))
        for at, name in enumerate(found.names)
    }


RACKS = (
    HyperNode("r0", 1, members=(node("n0"), node("n1"))),
    HyperNode("r1", 1, members=(HyperNodeMember(True, pattern="^n[23]$"),)),
)


def test_without_hyper_nodes_there_is_the_whole_cluster() -> None:
    assert as_sets(domains()) == {CLUSTER: (1, set(range(6)))}


def test_members_of_any_depth_are_below() -> None:
    zone = HyperNode("zone", 3, members=(below("r0"), below("r1"), node("n5")))
    found = domains(*RACKS, zone)
    assert as_sets(found) == {
        "r0": (1, {0, 1}),
        "r1": (1, {2, 3}),
        "zone": (3, {0, 1, 2, 3, 5}),
        CLUSTER: (4, set(range(6))),
    }
    assert found.parents.tolist() == [2, 2, 3, -1]


def test_missing_overlapping_and_cyclic_members_harm_no_other_domain() -> None:
    found = domains(
        *RACKS,
        HyperNode("gone", 1, members=(node("n9"), below("none"))),
        HyperNode("same", 1, members=(node("n1"), node("n2"))),
        HyperNode("x", 2, members=(below("y"), node("n4"))),
        HyperNode("y", 2, members=(below("x"), HyperNodeMember(True, problem="unreadable"))),
    )
    assert as_sets(found) == {
        "gone": (1, set()),
        "r0": (1, {0, 1}),
        "r1": (1, {2, 3}),
        "same": (1, {1, 2}),
        "x": (2, {4}),
        "y": (2, {4}),
        CLUSTER: (3, set(range(6))),
    }


def test_of_two_parents_the_lower_one_counts() -> None:
    found = domains(
        *RACKS, HyperNode("b", 2, members=(below("r0"),)), HyperNode("a", 3, members=(below("r0"),))
    )
    assert found.names[found.parents[found.names.index("r0")]] == "b"


def test_tiers_are_known_by_name() -> None:
    found = domains(HyperNode("r", 1, "rack"), HyperNode("z", 2, "zone"), HyperNode("y", 3, "zone"))
    assert found.tier_of_name == {"rack": 1, "zone": 3}


def test_domains_stay_the_same_object_while_nothing_changes() -> None:
    tree, table = NetworkTree(), make_table(NODES)
    for each in NODES:
        tree.set_node(each)
    assert tree.set(RACKS[0])
    before = tree.domains(table)
    assert not tree.set(RACKS[0])
    tree.set_node(NODES[0])
    assert tree.domains(table) is before
    tree.set_node(make_node("n0", labels={"rack": "other"}))
    assert tree.domains(table) is not before


_members = st.one_of(
    st.sampled_from("01234567").map(lambda n: node(f"n{n}")),
    st.sampled_from("abcd").map(below),
    st.sampled_from(["[02]", "5"]).map(lambda p: HyperNodeMember(True, pattern=p)),
)
_hyper_nodes = st.builds(
    HyperNode, st.sampled_from("abcd"), st.integers(0, 3), members=st.lists(_members).map(tuple)
)


@examples(60)
@given(st.lists(st.one_of(_hyper_nodes, st.sampled_from("abcd"), st.sampled_from(NODES))))
def test_followed_domains_equal_domains_made_anew(events: list[HyperNode | str | Node]) -> None:
    tree, known = NetworkTree(), dict[str, HyperNode]()
    nodes = {each.name: each for each in NODES}
    for each in NODES:
        tree.set_node(each)
    for event in events:
        if isinstance(event, HyperNode):
            known[event.name] = event
            tree.set(event)
        elif isinstance(event, Node):
            if nodes.pop(event.name, None) is None:
                nodes[event.name] = event
                tree.set_node(event)
            else:
                tree.drop_node(event.name)
        else:
            known.pop(event, None)
            tree.drop(event)
        table = make_table(tuple(nodes.values()))
        assert as_sets(tree.domains(table)) == as_sets(domains(*known.values(), nodes=table.nodes))


@examples(30)
@given(st.lists(_hyper_nodes), st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_sums_are_those_over_the_nodes_of_each_domain(
    hyper_nodes: list[HyperNode], numbers: list[int]
) -> None:
    found = domains(*hyper_nodes)
    sums = found.sums(np.array(numbers, dtype=np.int64)).tolist()
    assert sums == [sum(numbers[row] for row in rows) for _, rows in as_sets(found).values()]


def test_labels_of_nodes_are_the_tiers_while_there_are_no_hyper_nodes() -> None:
    tree, table = NetworkTree(), make_table(NODES)
    for each in NODES:
        tree.set_node(each)
    assert tree.set_labels(("rack",))
    assert not tree.set_labels(("rack",))
    by_label = {
        "r0": (1, {0, 1}),
        "r1": (1, {2, 3}),
        "r2": (1, {4, 5}),
        CLUSTER: (2, set(range(6))),
    }
    assert as_sets(tree.domains(table)) == by_label
    tree.set(HyperNode("only", 1, members=(node("n0"),)))
    assert set(as_sets(tree.domains(table))) == {"only", CLUSTER}
    tree.drop("only")
    assert as_sets(tree.domains(table)) == by_label
    assert tree.set_labels(())
    assert set(as_sets(tree.domains(table))) == {CLUSTER}
