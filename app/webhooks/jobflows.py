"""JobFlows: their dependencies form no cycle (volcano.md §6.6)."""

from app.webhooks.findings import Findings, at, listed
from app.webhooks.graphs import on_cycles
from app.webhooks.reading import mapping, mappings, text, texts
from app.webhooks.world import Request, World
from app.wire.unstructured import is_deleting

NOT_DAG = "jobflow Flow is not DAG"


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
    return findings
