"""Which pods get the scheduling gate when they are created.

The same rule as the MutatingAdmissionPolicy in ``manifests/policy``: every pod of ours waits behind
the gate until it has a place, except pods that are bound already, pods made for one node (a slot of
the plan), and pods whose annotation ``pumice.sh/gate: "false"`` says otherwise.
"""

from collections.abc import Mapping
from typing import Any

from app.model.pod import GATE
from app.wire.reading import mapping, mappings, sequence, text

EXEMPT = "pumice.sh/gate"


def gated(pod: Mapping[str, Any], *, schedulers: frozenset[str]) -> dict[str, Any] | None:
    """``pod`` with the gate, or None when it is left as it is."""
    spec = mapping(pod.get("spec"))
    annotations = mapping(mapping(pod.get("metadata")).get("annotations"))
    if text(spec.get("schedulerName")) not in schedulers or spec.get("nodeName"):
        return None
    if annotations.get(EXEMPT) == "false" or _pinned(spec):
        return None
    gates = mappings(spec.get("schedulingGates"))
    if any(gate.get("name") == GATE for gate in gates):
        return None
    return {**pod, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def _pinned(spec: Mapping[str, Any]) -> bool:
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    if not required:
        return False
    return all(
        any(
            field.get("key") == "metadata.name"
            and field.get("operator") == "In"
            and len(sequence(field.get("values"))) == 1
            for field in mappings(term.get("matchFields"))
        )
        for term in mappings(required.get("nodeSelectorTerms"))
    )
