"""HyperNodes as NVIDIA's Unified Fabric Manager tells them (volcano.md §5.8).

UFM lists the ports of the fabric. A port of a computer names the computer and the leaf switch at
the other end. Leaf switches that share a computer, as those of several rails do, form one HyperNode
of tier 1 with all their computers; one HyperNode of tier 2 has all of these.

Only computers that are nodes of the cluster count: by their name, or by their host name. A storage
server that is connected to every leaf switch joins nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from app.controllers.hypernode.making import Known, TopologyError, hyper_node, member_nodes
from app.wire.controller_conf import UFM
from app.wire.unstructured import Object, labels, name

PORTS: Final = "/resources/ports"
BY_USER: Final = "/ufmRest"
BY_TOKEN: Final = "/ufmRestV3"

HOSTNAME: Final = "kubernetes.io/hostname"
_COMPUTER: Final = "Computer"
_NO_PEER: Final = frozenset({"", "N/A"})
_LEAF: Final = "leaf-hn-"
_SPINE: Final = "spine-hn"

Fabric = Mapping[str, Collection[str]]
"""Leaf switches by computer."""


class _Port(msgspec.Struct, gc=False):
    description: str | None = None
    system_name: str | None = None
    peer_node_name: str | None = None


_decode = msgspec.json.Decoder(list[_Port]).decode


def read_fabric(body: bytes) -> Fabric:
    """What UFM's list of ports tells; raises `TopologyError`."""
    try:
        ports = _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TopologyError(f"not a list of ports: {error}") from error
    fabric: dict[str, set[str]] = {}
    for port in ports:
        leaf = port.peer_node_name or ""
        if port.system_name and leaf not in _NO_PEER and _COMPUTER in (port.description or ""):
            fabric.setdefault(port.system_name, set()).add(leaf)
    if not fabric:
        raise TopologyError("no port of a computer is connected to a switch")
    return fabric


def hyper_nodes(fabric: Fabric, nodes: Iterable[Object], known: Known) -> dict[str, Object]:
    """The HyperNodes, by name; raises `TopologyError`."""
    by_leaf: dict[str, set[str]] = {}
    leaves_of: dict[str, Collection[str]] = {}
    for node in nodes:
        leaves = fabric.get(name(node)) or fabric.get(labels(node).get(HOSTNAME, ""))
        if leaves:
            leaves_of[name(node)] = leaves
            for leaf in leaves:
                by_leaf.setdefault(leaf, set()).add(name(node))
    if not by_leaf:
        raise TopologyError(f"none of {len(fabric)} computers is a node of this cluster")
    groups = _groups(by_leaf, leaves_of)
    leaf_names = _leaf_names(groups, known)
    spine = _spine_name(known)
    found = {
        own: hyper_node(own, UFM, tier=1, nodes=group)
        for own, group in zip(leaf_names, groups, strict=True)
    }
    return found | {spine: hyper_node(spine, UFM, tier=2, below=leaf_names)}


def _groups(
    by_leaf: Mapping[str, Collection[str]], leaves_of: Mapping[str, Collection[str]]
) -> list[set[str]]:
    """The nodes of leaf switches that hang together, in the order of their first leaf switch."""
    groups: list[set[str]] = []
    seen: set[str] = set()
    for first in sorted(by_leaf):
        if first in seen:
            continue
        seen.add(first)
        ahead, group = [first], set[str]()
        while ahead:
            for node in by_leaf[ahead.pop()]:
                if node not in group:
                    group.add(node)
                    fresh = [leaf for leaf in leaves_of[node] if leaf not in seen]
                    seen.update(fresh)
                    ahead += fresh
        groups.append(group)
    return groups


def _leaf_names(groups: list[set[str]], known: Known) -> list[str]:
    """Volcano's names; a group is called as the HyperNode that had most of its nodes.

    Volcano counts anew each time, so that a switch that comes or goes would give the others' names
    to other nodes, and running gangs would be held to those.
    """
    names: dict[int, str] = {}
    taken = set(known.foreign)
    for number, own in _had_most(groups, known):
        if number not in names and own not in taken:
            names[number] = own
            taken.add(own)
    free = 0
    for number in range(len(groups)):
        if number not in names:
            while f"{_LEAF}{free}" in taken:
                free += 1
            names[number] = f"{_LEAF}{free}"
            taken.add(names[number])
    return [names[number] for number in range(len(groups))]


def _had_most(groups: list[set[str]], known: Known) -> list[tuple[int, str]]:
    """Groups by number and HyperNodes that share nodes, those that share most before others."""
    had: dict[str, list[str]] = {}
    for own, item in sorted(known.ours.items()):
        for node in () if own.startswith(_SPINE) else member_nodes(item):
            had.setdefault(node, []).append(own)
    shared = Counter(
        (number, own)
        for number, group in enumerate(groups)
        for node in group
        for own in had.get(node, ())
    )
    return sorted(shared, key=lambda pair: (-shared[pair], pair))


def _spine_name(known: Known) -> str:
    there = sorted(own for own in known.ours if own.startswith(_SPINE))
    if there:
        return there[0]
    made, number = _SPINE, 0
    while made in known.foreign:
        number += 1
        made = f"{_SPINE}-{number}"
    return made
