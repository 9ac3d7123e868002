"""Trees of HyperNodes for tests."""

from collections.abc import Mapping, Sequence

from app.cache.nodes.domains import NetworkTree
from app.model.domains import Domains
from app.model.node import Node
from app.model.topology import HyperNode, HyperNodeMember, NetworkTopology, TopologyMode
from tests.builders import make_table


def node_names(*names: str) -> tuple[HyperNodeMember, ...]:
    """Nodes as members."""
    return tuple(HyperNodeMember(True, name=name) for name in names)


def hyper_nodes(*names: str) -> tuple[HyperNodeMember, ...]:
    """HyperNodes as members."""
    return tuple(HyperNodeMember(False, name=name) for name in names)


def make_domains(nodes: Sequence[Node], members: Sequence[HyperNode]) -> Domains:
    """The domains that the cache would build."""
    tree = NetworkTree()
    for node in nodes:
        tree.set_node(node)
    for each in members:
        tree.set(each)
    return tree.domains(make_table(tuple(nodes)))


def racks(**members: str) -> tuple[HyperNode, ...]:
    """HyperNodes of tier 1, each with the nodes that it names."""
    return tuple(
        HyperNode(name, 1, "rack", members=node_names(*names.split()))
        for name, names in members.items()
    )


def zone(name: str, *below: str, tier: int = 2) -> HyperNode:
    """A HyperNode above others."""
    return HyperNode(name, tier, "zone", members=hyper_nodes(*below))


def hard(tier: int) -> NetworkTopology:
    """All members in one domain of no higher tier."""
    return NetworkTopology(TopologyMode.HARD, tier)


SOFT = NetworkTopology(TopologyMode.SOFT)


def by_name(domains: Domains, nodes: Sequence[Node]) -> Mapping[str, frozenset[str]]:
    """The names of the nodes of each domain."""
    names = [node.name for node in sorted(nodes, key=lambda node: node.name)]
    return {
        name: frozenset(names[row] for row in domains.rows_of(at))
        for at, name in enumerate(domains.names)
    }
