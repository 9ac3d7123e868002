"""HyperNodes as labels of nodes tell them (volcano.md §5.8).

Nodes with the same value of a topology's narrowest label, below the same wider ones, form a
HyperNode of tier 1; those form HyperNodes of tier 2 by the next label, and so on up to the first
label that a node lacks; a tier is called as its label.

A topology with a selector is for its own nodes alone. Each has to have all labels, and the value of
a label alone tells the HyperNode, as in Volcano.

A HyperNode that is there, of the same topology, tier and value, keeps its name, whatever made it.
New names end in a hash of where in the topology the HyperNode is.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.controllers.hypernode.making import Known, TopologyError, hyper_node
from app.wire.controller_conf import LABEL, Level, Topology
from app.wire.unstructured import Object, labels, name

PROFILE: Final = "volcano.sh/network-topology-profile"


@dataclass(frozen=True, slots=True)
class _Branch:
    """A HyperNode by its topology and the labels' values from the widest to its own.

    Of a topology with a selector ``path`` is its own value alone.
    """

    topology: str
    tier: int
    path: tuple[str | None, ...]

    @property
    def start(self) -> str:
        """How its name begins."""
        part = re.sub(r"[^a-z0-9.-]", "-", self.topology.lower()).strip(".-")
        return f"hypernode-{part}-tier{self.tier}-"


@dataclass(frozen=True, slots=True)
class _Domain:
    branch: _Branch
    level: Level
    profile: str

    @property
    def marks(self) -> Mapping[str, str]:
        """The labels of the HyperNode, beside that of its source."""
        profile = {PROFILE: self.profile} if self.profile else {}
        return {self.level.label: self.branch.path[-1] or "", **profile}


def hyper_nodes(
    topologies: Collection[Topology], nodes: Iterable[Object], known: Known
) -> dict[str, Object]:
    """The HyperNodes, by name; raises `TopologyError`."""
    members: dict[_Branch, set[str | _Branch]] = {}
    domains: dict[_Branch, _Domain] = {}
    above: dict[_Branch, _Branch] = {}
    for node in nodes:
        for topology in _topologies_of(node, topologies):
            below: str | _Branch = name(node)
            for domain in _domains_of(topology, node):
                members.setdefault(domain.branch, set()).add(below)
                domains[domain.branch] = domain
                if isinstance(below, _Branch):
                    _check_above(above.setdefault(below, domain.branch), domain, domains[below])
                below = domain.branch
    names = _names(domains, known)
    return {
        names[branch]: hyper_node(
            names[branch],
            LABEL,
            tier=branch.tier,
            tier_name=domains[branch].level.tier_name,
            marks=domains[branch].marks,
            nodes=[each for each in inside if isinstance(each, str)],
            below=[names[each] for each in inside if isinstance(each, _Branch)],
        )
        for branch, inside in members.items()
    }


def _topologies_of(node: Object, topologies: Collection[Topology]) -> list[Topology]:
    found = labels(node)
    ours = [
        each
        for each in topologies
        if each.selector is not None and each.selector.items() <= found.items()
    ]
    if len(ours) > 1:
        both = " and ".join(each.name for each in ours[:2])
        raise TopologyError(f"node {name(node)} is in both {both}")
    return ours or [each for each in topologies if each.selector is None]


def _domains_of(topology: Topology, node: Object) -> Iterable[_Domain]:
    """The HyperNodes a node is in, from tier 1 upwards."""
    found = labels(node)
    path = tuple(found.get(level.label) for level in topology.levels)
    for tier, level in enumerate(reversed(topology.levels), start=1):
        if level.label not in found:
            if topology.selector is None:
                return
            why = f"node {name(node)} of {topology.name} has no label {level.label}"
            raise TopologyError(why)
        end = len(path) - tier + 1
        start = 0 if topology.selector is None else end - 1
        profile = "" if topology.selector is None else topology.name
        yield _Domain(_Branch(topology.name, tier, path[start:end]), level, profile)


def _check_above(first: _Branch, domain: _Domain, below: _Domain) -> None:
    if first != domain.branch:
        label = domain.level.label
        raise TopologyError(
            f"{below.level.label}={below.branch.path[-1]} of {domain.profile} is in both "
            f"{label}={first.path[-1]} and {label}={domain.branch.path[-1]}"
        )


def _names(domains: Mapping[_Branch, _Domain], known: Known) -> dict[_Branch, str]:
    """Those of now where there are some, new ones for the rest."""
    ordered = sorted(domains, key=repr)
    kept = _kept({branch: domains[branch] for branch in ordered}, known)
    taken = {*kept.values(), *known.foreign}
    names = dict(kept)
    for branch in ordered:
        tries = 0
        while branch not in names:
            made = branch.start + _hash(branch, tries)
            if made not in taken:
                names[branch] = made
                taken.add(made)
            tries += 1
    return names


def _kept(domains: Mapping[_Branch, _Domain], known: Known) -> dict[_Branch, str]:
    """First the names that we would give, then those that another gave to the same domain."""
    kept = {
        branch: made
        for branch in domains
        if (made := branch.start + _hash(branch, 0)) in known.ours
    }
    taken = set(kept.values())
    marked: dict[tuple[str, str], list[str]] = {}
    for each, item in sorted(known.ours.items()):
        for mark in labels(item).items():
            marked.setdefault(mark, []).append(each)
    for branch, domain in domains.items():
        if branch in kept:
            continue
        same = marked.get((domain.level.label, branch.path[-1] or ""), ())
        free = (each for each in same if each not in taken and each.startswith(branch.start))
        if (found := next(free, None)) is not None:
            kept[branch] = found
            taken.add(found)
    return kept


def _hash(branch: _Branch, tries: int) -> str:
    digest = hashlib.sha256(repr((branch, tries)).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:5]
