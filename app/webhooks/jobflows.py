"""JobFlows: their dependencies form no cycle (volcano.md §6.6), and none is added after the end."""

from collections.abc import Iterable
from typing import Final

from app.kit.graphs import on_cycles
from app.webhooks.world import Request, World
from app.wire.findings import Findings, at, listed
from app.wire.reading import mapping, mappings, text, texts
from app.wire.unstructured import Object, is_deleting

NOT_DAG = "jobflow Flow is not DAG"
_ENDED: Final = frozenset({"Succeed", "Failed", "Terminating"})
"""Phases in which no further jobs are made."""


def check_flow(request: Request, _world: World) -> Findings:
    """What is wrong with the graph; a flow that is named twice depends on all it is given."""
    findings = Findings()
    if is_deleting(request.item):
        return findings
    flows = mappings(mapping(request.item.get("spec")).get("flows"))
    edges: dict[str, list[str]] = {}
    for flow in flows:
        targets = texts(mapping(flow.get("dependsOn")).get("targets"))
        edges.setdefault(text(flow.get("name")), []).extend(targets)
    for index, flow in enumerate(flows):
        for target in texts(mapping(flow.get("dependsOn")).get("targets")):
            if target not in edges:
                findings.refuse(
                    at("spec.flows", index, "dependsOn.targets"),
                    f"{NOT_DAG}: vertex is not defined: {target}",
                )
    cyclic = on_cycles(edges)
    if cyclic:
        findings.refuse("spec.flows", f"{NOT_DAG}: a cycle holds {listed(cyclic)}")
    _check_added(edges, request.old, findings)
    return findings


def _check_added(names: Iterable[str], old: Object, findings: Findings) -> None:
    """A flow that is added to a JobFlow that has ended would never run."""
    phase = text(mapping(mapping(old.get("status")).get("state")).get("phase"))
    if phase not in _ENDED:
        return
    before = {text(flow.get("name")) for flow in mappings(mapping(old.get("spec")).get("flows"))}
    added = [name for name in names if name not in before]
    if added:
        findings.refuse("spec.flows", f"{has_ended(phase)} {listed(added)}")


def has_ended(phase: str) -> str:
    """Before the names of flows that were added."""
    return f"the JobFlow has ended ({phase}), create another one for flows that are to run:"
