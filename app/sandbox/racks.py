"""Racks of the simulated cluster: a label on nodes, and HyperNodes that say so."""

from __future__ import annotations

from app.sandbox.nodes import RACK, NodeSpec, rack_name
from app.wire.documents import Document
from app.wire.kinds import HYPER_NODES

SPINE = "spine"
"""The HyperNode of all racks."""


def rack_documents(spec: NodeSpec) -> list[Document]:
    """A HyperNode of tier 1 for each rack, and one of tier 2 for them all; none without racks."""
    names = [rack_name(rack) for rack in range(spec.racks)]
    if not names:
        return []
    racks = [
        _hyper_node(name, tier=1, called="rack", of="Node", by=[{"labelMatch": _label(name)}])
        for name in names
    ]
    exact = [{"exactMatch": {"name": name}} for name in names]
    return [*racks, _hyper_node(SPINE, tier=2, called=SPINE, of="HyperNode", by=exact)]


def _label(rack: str) -> Document:
    return {"matchLabels": {RACK: rack}}


def _hyper_node(name: str, *, tier: int, called: str, of: str, by: list[Document]) -> Document:
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": HYPER_NODES.kind,
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": called,
            "members": [{"type": of, "selector": selector} for selector in by],
        },
    }
