"""What is written to pods, groups and queues: patches and bodies as plain JSON values.

Opening a gate is a JSON patch, because two things must hold at once: the gate is found by its place
in the list, and node affinity has a list of alternatives, each of which needs the pin. The patch
tests the pod's UID and the gate before it changes anything, so on a pod that was made anew or that
another writer has changed meanwhile it fails as a whole.

Statuses are merge patches: lists are replaced whole, and a key that shall go is null.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from app.model.amounts import Amounts
from app.model.ids import NO_NODE, NodeName
from app.model.pod import Pod
from app.model.shape import AffinityLayout
from app.model.workload import Condition, GroupPhase
from app.wire import quantity
from app.wire.objects.affinity import NODE_NAME_FIELD, REQUIRED

JsonObject = dict[str, Any]

WAKE: Final = "pumice.sh/wake"
"""The annotation, or the label, whose change wakes a pod."""

_GATES: Final = "/spec/schedulingGates"
_AFFINITY: Final = "/spec/affinity"
_NODE_AFFINITY: Final = f"{_AFFINITY}/nodeAffinity"
_TERMS: Final = f"{_NODE_AFFINITY}/{REQUIRED}/nodeSelectorTerms"


def open_gate(pod: Pod, *, pin: NodeName = NO_NODE) -> list[JsonObject]:
    """JSON patch that removes our gates from ``pod`` and, with ``pin``, ties it to that node."""
    ours = {f"{_GATES}/{pod.gates.index(gate)}": gate for gate in pod.own_gates}
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        *({"op": "test", "path": f"{at}/name", "value": gate} for at, gate in ours.items()),
        *(_pin(pin, pod.shape.affinity_layout) if pin else ()),
        *({"op": "remove", "path": at} for at in reversed(ours)),  # so that the places stay right
    ]


def nomination(node: NodeName | None) -> JsonObject:
    """Merge patch of a pod's status: the node to try first, None to take that back."""
    return {"status": {"nominatedNodeName": node}}


def merged(one: JsonObject | None, other: JsonObject) -> JsonObject:
    """Two status patches as one."""
    if one is None:
        return other
    return {"status": {**one["status"], **other["status"]}}


def pod_condition(kind: str, status: str, *, reason: str, message: str, at: str) -> JsonObject:
    """Strategic merge patch of a pod's status: one condition, the others stay."""
    condition = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }
    return {"status": {"conditions": [condition]}}


def without_condition(kind: str) -> JsonObject:
    """Strategic merge patch of a pod's status: the condition of that type goes."""
    return {"status": {"conditions": [{"type": kind, "$patch": "delete"}]}}


def wake(token: str, *, uid: str, by_label: bool = False) -> JsonObject:
    """Merge patch of a pod that makes kube-scheduler try it again; each time another ``token``.

    kube-scheduler asks the plugin that refused a pod whether a change helps. The one for affinity
    to other pods looks at the pod's own labels (as their anti-affinity may) and at no annotation.
    """
    metadata: JsonObject = {"uid": uid, "annotations": {WAKE: token}}
    if by_label:
        metadata["labels"] = {WAKE: token}
    return {"metadata": metadata}


def group_status(
    *,
    phase: GroupPhase,
    running: int,
    succeeded: int,
    failed: int,
    conditions: Iterable[Condition],
) -> JsonObject:
    """Merge patch of a PodGroup's whole status."""
    status: JsonObject = {
        "running": running,
        "succeeded": succeeded,
        "failed": failed,
        "conditions": [_condition(condition) for condition in conditions],
    }
    if phase is not GroupPhase.NEW:
        status["phase"] = phase.value
    return {"status": status}


def with_conditions(old: Sequence[Condition], new: Iterable[Condition]) -> tuple[Condition, ...]:
    """``old`` with the entries of ``new``, each in the place of the one of its type."""
    merged = {condition.type: condition for condition in old}
    merged.update({condition.type: condition for condition in new})
    return tuple(merged.values())


def queue_allocated(allocated: Amounts, *, before: Amounts = ()) -> JsonObject:
    """Merge patch of a queue's status; what was there ``before`` and is not any more goes."""
    written: dict[str, str | None] = {name: None for name, _ in before}
    written.update(quantity.texts(allocated))
    return {"status": {"allocated": written}}


def queue(name: str, *, weight: int = 1, reclaimable: bool = True, parent: str = "") -> JsonObject:
    """A new Queue."""
    spec: JsonObject = {"weight": weight, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _pin(node: NodeName, layout: AffinityLayout | None) -> Iterator[JsonObject]:
    """Adds the pin to every alternative, creating what is not there.

    In a gated pod the API server keeps an empty term empty; it matches no node anyway.
    """
    only = {"key": NODE_NAME_FIELD, "operator": "In", "values": [node]}
    required: JsonObject = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    if layout is None:
        yield _add(_AFFINITY, {"nodeAffinity": {REQUIRED: required}})
    elif not layout.node_affinity:
        yield _add(_NODE_AFFINITY, {REQUIRED: required})
    elif not layout.terms_with_fields:
        yield _add(f"{_NODE_AFFINITY}/{REQUIRED}", required)
    else:
        for i, has_fields in enumerate(layout.terms_with_fields):
            if has_fields:
                yield _add(f"{_TERMS}/{i}/matchFields/-", only)
            elif i not in layout.empty_terms:
                yield _add(f"{_TERMS}/{i}/matchFields", [only])


def _add(path: str, value: object) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def _condition(condition: Condition) -> JsonObject:
    parts = {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition_id,
        "lastTransitionTime": condition.changed,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {key: value for key, value in parts.items() if value}
