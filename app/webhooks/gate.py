"""Which pods get the scheduling gate when they are created.

The same rule as the MutatingAdmissionPolicy in ``manifests/policy``: every pod of ours waits behind
the gate until it has a place, except pods that are bound already, pods made for one node (a slot of
the plan), and pods whose annotation ``pumice.sh/gate: "false"`` says otherwise.
"""

from collections.abc import Mapping
from typing import Any

from app.model.pod import GATE

EXEMPT = "pumice.sh/gate"


def gated(pod: Mapping[str, Any], *, schedulers: frozenset[str]) -> dict[str, Any] | None:
    """``pod`` with the gate, or None when it is left as it is."""
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if spec.get("schedulerName") not in schedulers or spec.get("nodeName"):
        return None
    if annotations.get(EXEMPT) == "false" or _pinned(spec):
        return None
    gates = spec.get("schedulingGates") or []
    if any(gate.get("name") == GATE for gate in gates):
        return None
    return {**pod, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def _pinned(spec: Mapping[str, Any]) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return False
    return all(
        any(
            field.get("key") == "metadata.name"
            and field.get("operator") == "In"
            and len(field.get("values") or ()) == 1
            for field in term.get("matchFields") or ()
        )
        for term in required.get("nodeSelectorTerms") or ()
    )
