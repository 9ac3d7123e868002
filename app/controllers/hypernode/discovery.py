"""HyperNodes as labels of nodes tell them (volcano.md §5.8).

A topology is a list of labels, the widest domain first. Nodes with the same value of the narrowest
label, below the same wider ones, form a HyperNode of tier 1; those form HyperNodes of tier 2 by the
next label, and so on up to the first label that a node lacks; a tier is called as its label. Names
end in a hash of where in the topology a HyperNode is, so the same labels give the same names.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from app.wire import go_yaml
from app.wire.kinds import HYPER_NODES
from app.wire.unstructured import Object, labels, name

SOURCE: Final = "volcano.sh/network-topology-source"
LABEL: Final = "label"
_HOSTNAME: Final = "kubernetes.io/hostname"
_LONGEST_NAME: Final = 200
_LONGEST_TIER_NAME: Final = 253
"""What the schema takes; the key of a label may be longer."""


class DiscoveryError(ValueError):
    """The configuration cannot be read."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """``topologies``: labels from the widest domain to the narrowest, by name; None: labels are
    not to be used. ``unsupported`` are sources that are asked for and that there are not."""

    topologies: Mapping[str, tuple[str, ...]] | None
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Branch:
    """A HyperNode by its topology and the labels' values from the widest to its own."""

    topology: str
    tier: int
    path: tuple[str | None, ...]


def read(text: str) -> Discovery:
    """The part of ``volcano-controller.conf`` about topology; raises `DiscoveryError`."""
    try:
        document = go_yaml.load(text) or {}
        entries = document.get("networkTopologyDiscovery") or []
        enabled = [entry for entry in entries if entry.get("enabled")]
        by_label = [entry for entry in enabled if entry.get("source") == LABEL]
        others = sorted({str(e.get("source")) for e in enabled if e.get("source") != LABEL})
        topologies = {
            str(topology): tuple(_label(level) for level in levels or ())
            for entry in by_label
            for topology, levels in _types(entry).items()
        }
    except yaml.YAMLError as error:
        why = f"not YAML: {go_yaml.problem(error)}"
        raise DiscoveryError(f"networkTopologyDiscovery cannot be read: {why}") from error
    except (AttributeError, TypeError) as error:
        why = "it is not of the expected shape"
        raise DiscoveryError(f"networkTopologyDiscovery cannot be read: {why}") from error
    return Discovery(topologies if by_label else None, tuple(others))


def hyper_nodes(
    topologies: Mapping[str, Sequence[str]], nodes: Iterable[Object]
) -> dict[str, Object]:
    """The HyperNodes, by name."""
    members: dict[_Branch, set[str | _Branch]] = {}
    keys: dict[_Branch, str] = {}
    for node in nodes:
        for topology, levels in topologies.items():
            below: str | _Branch = name(node)
            for place, key in _places(topology, levels, labels(node)):
                members.setdefault(place, set()).add(below)
                keys[place] = key
                below = place
    names = _names(members)
    return {
        names[place]: _hyper_node(place, keys[place], [_member(e, names) for e in inside], names)
        for place, inside in members.items()
    }


def _types(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (entry.get("config") or {}).get("networkTopologyTypes") or {}
    return found


def _label(level: Mapping[str, Any]) -> str:
    found = level.get("nodeLabel")
    if not isinstance(found, str) or not found:
        raise DiscoveryError("networkTopologyDiscovery: a level has no nodeLabel")
    return found


def _places(
    topology: str, levels: Sequence[str], found: Mapping[str, str]
) -> Iterable[tuple[_Branch, str]]:
    """The HyperNodes a node is in, from tier 1 upwards, each with its label."""
    wide = [level for level in levels if level != _HOSTNAME]
    path = tuple(found.get(level) for level in wide)
    for tier, level in enumerate(reversed(wide), start=1):
        if level not in found:
            return
        yield _Branch(topology, tier, path[: len(wide) - tier + 1]), level


def _names(places: Iterable[_Branch]) -> dict[_Branch, str]:
    names: dict[_Branch, str] = {}
    taken: set[str] = set()
    for place in sorted(places, key=repr):
        part = re.sub(r"[^a-z0-9.-]", "-", place.topology.lower())[:_LONGEST_NAME].strip(".-")
        tries = 0
        while (made := f"hypernode-{part}-tier{place.tier}-{_hash(place, tries)}") in taken:
            tries += 1
        taken.add(made)
        names[place] = made
    return names


def _hash(place: _Branch, tries: int) -> str:
    digest = hashlib.sha256(repr((place, tries)).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:5]


def _member(each: "str | _Branch", names: Mapping[_Branch, str]) -> tuple[str, str]:
    return ("Node", each) if isinstance(each, str) else ("HyperNode", names[each])


def _hyper_node(
    place: _Branch, key: str, members: list[tuple[str, str]], names: Mapping[_Branch, str]
) -> Object:
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": HYPER_NODES.kind,
        "metadata": {
            "name": names[place],
            "labels": {SOURCE: LABEL, key: place.path[-1]},
        },
        "spec": {
            "tier": place.tier,
            **({"tierName": key} if len(key) <= _LONGEST_TIER_NAME else {}),
            "members": [
                {"type": kind, "selector": {"exactMatch": {"name": each}}}
                for kind, each in sorted(members)
            ],
        },
    }
