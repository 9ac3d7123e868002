"""HyperNodes as a JSON document tells them, for those whose network has another manager.

The document is one object. ``domains`` lists the domains of the network, and each becomes a
HyperNode of its name::

    {"domains": [
      {"name": "rack-1", "tier": 1, "tierName": "rack", "nodes": ["node-1", "node-2"]},
      {"name": "rack-2", "tier": 1, "tierName": "rack", "nodes": ["node-3"]},
      {"name": "row-1", "tier": 2, "tierName": "row", "domains": ["rack-1", "rack-2"]}]}

``nodes`` are nodes of the cluster; those that are not there are left out, as are domains that have
none. ``domains`` are of a lower tier. A node, and a domain, is in one domain at most. Other fields
have no meaning.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec

from app.controllers.hypernode.making import Known, TopologyError, hyper_node
from app.model.names import subdomain_problems
from app.wire.controller_conf import REST
from app.wire.unstructured import Object, name

MOST_DOMAINS: Final = 20_000
_HIGHEST_TIER: Final = 1000

_Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000_000)]


class Domain(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """One domain, as the document has it."""

    name: str
    tier: Annotated[int, msgspec.Meta(ge=0, le=_HIGHEST_TIER)]
    tier_name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    nodes: _Names = ()
    domains: _Names = ()


class _Document(msgspec.Struct, gc=False):
    domains: Annotated[list[Domain], msgspec.Meta(min_length=1, max_length=MOST_DOMAINS)]


_decode = msgspec.json.Decoder(_Document).decode

Domains = Mapping[str, Domain]


def read_document(body: bytes) -> Domains:
    """The domains by name; raises `TopologyError` where they are no tree."""
    try:
        document = _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TopologyError(f"not a document of domains: {error}") from error
    found: dict[str, Domain] = {}
    for each in document.domains:
        problems = subdomain_problems(each.name)
        if problems:
            raise TopologyError(f"domain {each.name[:253]!r}: {problems[0]}")
        if each.name in found:
            raise TopologyError(f"domain {each.name} is there twice")
        found[each.name] = each
    _check_tree(found)
    return found


def _check_tree(domains: Domains) -> None:
    """Lower tiers lie below higher ones, so nothing can lie below itself."""
    above: dict[str, str] = {}
    node_of: dict[str, str] = {}
    for each in domains.values():
        for below in each.domains:
            there = domains.get(below)
            if there is None:
                raise TopologyError(f"domain {each.name}: there is no domain {below[:253]!r}")
            if there.tier >= each.tier:
                tiers = f"{there.tier} and {each.tier}"
                raise TopologyError(f"domain {below} is below {each.name}, their tiers are {tiers}")
            _only_once(below, each.name, above, what="domain")
        for node in each.nodes:
            _only_once(node, each.name, node_of, what="node")


def _only_once(item: str, domain: str, before: dict[str, str], *, what: str) -> None:
    other = before.setdefault(item, domain)
    if other != domain:
        raise TopologyError(f"{what} {item[:253]} is in both {other} and {domain}")


def hyper_nodes(domains: Domains, nodes: Iterable[Object], known: Known) -> dict[str, Object]:
    """The HyperNodes, by name; raises `TopologyError`."""
    there = {name(node) for node in nodes}
    found: dict[str, Object] = {}
    for each in sorted(domains.values(), key=lambda domain: (domain.tier, domain.name)):
        inside = sorted(there.intersection(each.nodes))
        below = sorted(found.keys() & set(each.domains))
        if not inside and not below:
            continue
        if each.name in known.foreign:
            raise TopologyError(f"HyperNode {each.name} is there already, and not of this source")
        found[each.name] = hyper_node(
            each.name, REST, tier=each.tier, tier_name=each.tier_name, nodes=inside, below=below
        )
    if not found:
        raise TopologyError("no domain has a node of this cluster")
    return found
