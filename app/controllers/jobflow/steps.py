"""The steps of a JobFlow, and the job that each is.

A step that is listed twice is one step that has to wait for everything both say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.controllers.jobflow.merging import merged
from app.kit import graphs
from app.wire.kinds import JOBS
from app.wire.unstructured import Key, Object, controlled_by, name, namespace, spec

BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
BY_FLOW: Final = "volcano.sh/createdByJobFlow"
_LONGEST_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class Step:
    """One step; ``name`` is that of its JobTemplate. Maps are as the user wrote them."""

    name: str
    job: Key
    targets: tuple[str, ...]
    probes: tuple[Mapping[str, Any], ...]
    patches: tuple[Mapping[str, Any], ...]


def steps_of(flow: Object) -> dict[str, Step]:
    """The steps by name, in their order."""
    found: dict[str, Step] = {}
    for entry in spec(flow).get("flows") or ():
        depends = entry.get("dependsOn") or {}
        probe, patch = depends.get("probe"), (entry.get("patch") or {}).get("jobSpec")
        before = found.get(entry["name"])
        found[entry["name"]] = Step(
            name=entry["name"],
            job=Key(namespace(flow), f"{name(flow)}-{entry['name']}"),
            targets=(*(before.targets if before else ()), *(depends.get("targets") or ())),
            probes=(*(before.probes if before else ()), *([probe] if probe else [])),
            patches=(*(before.patches if before else ()), *([patch] if patch else [])),
        )
    return found


def problem(steps: Mapping[str, Step]) -> str:
    """Why the steps can never all be done; empty when they can."""
    edges = {step.name: step.targets for step in steps.values()}
    unknown = graphs.undefined(edges)
    if unknown:
        return f"jobflow Flow is not DAG: vertex is not defined: {', '.join(unknown)}"
    cyclic = graphs.on_cycles(edges)
    if cyclic:
        return f"jobflow Flow is not DAG: a cycle holds {', '.join(cyclic)}"
    return ""


def job_of(step: Step, flow: Object, template: Object) -> Object:
    """The job of a step: the spec of its template with the step's patches."""
    wanted = dict(spec(template))
    for patch in step.patches:
        wanted = merged(wanted, patch)
    origin = {
        BY_TEMPLATE: f"{namespace(template)}.{name(template)}",
        BY_FLOW: f"{namespace(flow)}.{name(flow)}",
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": step.job.name,
            "namespace": step.job.namespace,
            "annotations": origin,
            "labels": {k: v for k, v in origin.items() if len(v) <= _LONGEST_LABEL},
            "ownerReferences": [controlled_by(flow)],
        },
        "spec": wanted,
    }
