"""HyperNodes as tests read them, and nodes as they write them."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.controllers.hypernode.making import Known
from app.wire.kinds import NODES
from app.wire.unstructured import Object, labels, spec
from tests.controllers.play import item


def nodes(*names: str) -> list[Object]:
    """Nodes without labels."""
    return [item(NODES, each) for each in names]


def members(hyper_node: Object) -> list[str]:
    """The names of its members, which are all told exactly."""
    return [each["selector"]["exactMatch"]["name"] for each in spec(hyper_node)["members"]]


def tree(found: Mapping[str, Object]) -> dict[str, tuple[int, list[str]]]:
    """Tier and members by name."""
    return {name: (spec(each)["tier"], members(each)) for name, each in found.items()}


def known(found: Mapping[str, Object], foreign: Iterable[str] = ()) -> Known:
    """HyperNodes of a source that are there, and the names of others."""
    return Known(found, frozenset(foreign))


def source_of(hyper_node: Object) -> Any:
    """What discovered it."""
    return labels(hyper_node).get("volcano.sh/network-topology-source")
