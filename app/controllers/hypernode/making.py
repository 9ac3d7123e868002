"""HyperNodes of a discovered topology as objects, and those that are there already."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.wire.kinds import HYPER_NODES
from app.wire.objects.hyper_nodes import members_of
from app.wire.unstructured import Object, labels, name, spec

SOURCE: Final = "volcano.sh/network-topology-source"
_LONGEST_TIER_NAME: Final = 253
"""What the schema takes; the key of a label may be longer."""


class TopologyError(ValueError):
    """What a source tells is no tree of domains; the text says why."""


@dataclass(frozen=True, slots=True)
class Known:
    """``ours``: the HyperNodes of a source, by name; ``foreign``: the names of all others."""

    ours: Mapping[str, Object]
    foreign: Collection[str] = frozenset()

    @classmethod
    def of(cls, source: str, items: Iterable[Object]) -> "Known":
        """``items`` as ``source`` sees them."""
        ours: dict[str, Object] = {}
        foreign: set[str] = set()
        for item in items:
            if labels(item).get(SOURCE) == source:
                ours[name(item)] = item
            else:
                foreign.add(name(item))
        return cls(ours, foreign)


def hyper_node(
    own_name: str,
    source: str,
    *,
    tier: int,
    tier_name: str = "",
    marks: Mapping[str, str] | None = None,
    nodes: Iterable[str] = (),
    below: Iterable[str] = (),
) -> Object:
    """A HyperNode of ``source`` that has ``nodes`` and the HyperNodes ``below`` as members."""
    members = [("Node", each) for each in nodes] + [("HyperNode", each) for each in below]
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": HYPER_NODES.kind,
        "metadata": {"name": own_name, "labels": {SOURCE: source, **(marks or {})}},
        "spec": {
            "tier": tier,
            **({"tierName": tier_name} if 0 < len(tier_name) <= _LONGEST_TIER_NAME else {}),
            "members": [
                {"type": kind, "selector": {"exactMatch": {"name": each}}}
                for kind, each in sorted(members)
            ],
        },
    }


def differs(stored: Object, wanted: Object) -> bool:
    """Whether ``stored`` lacks anything that is ``wanted``."""
    before = spec(stored)
    changed = any(before.get(key) != value for key, value in spec(wanted).items())
    return changed or not labels(wanted).items() <= labels(stored).items()


def member_nodes(item: Object) -> set[str]:
    """The nodes that a HyperNode names."""
    return {each.name for each in members_of(spec(item)) if each.is_node and each.name}
