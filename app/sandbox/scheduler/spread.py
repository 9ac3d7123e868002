"""Topology spread: the hard constraints (``DoNotSchedule``) only."""

from __future__ import annotations

from collections import Counter

from app.sandbox.apiserver.selectors import label_selector_matches
from app.sandbox.scheduler.affinity import node_matches
from app.sandbox.scheduler.cluster import NodeState
from app.sandbox.scheduler.taints import untolerated
from app.wire.documents import Document, items, labels_of


def hard_constraints(pod: Document) -> list[Document]:
    """The constraints of the pod that a node must meet; soft ones are left out."""
    return [
        one
        for one in items(pod, "spec", "topologySpreadConstraints")
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    ]


def lacks_key(pod: Document, node: NodeState) -> bool:
    """Whether the node has no label for the topology key of some hard constraint."""
    return not _has_keys(hard_constraints(pod), node)


def _has_keys(constraints: list[Document], node: NodeState) -> bool:
    """Whether the node is in a domain of each constraint; it counts for none otherwise."""
    labels = labels_of(node.document)
    return all(one["topologyKey"] in labels for one in constraints)


def too_skewed(pod: Document, node: NodeState, nodes: list[NodeState]) -> bool:
    """Whether one more pod here would leave the domains too uneven."""
    constraints = hard_constraints(pod)
    labelled = [other for other in nodes if _has_keys(constraints, other)]
    return any(_breaks(one, pod, node, nodes=labelled) for one in constraints)


def _breaks(
    constraint: Document, pod: Document, node: NodeState, *, nodes: list[NodeState]
) -> bool:
    key, selector = constraint["topologyKey"], constraint.get("labelSelector")
    counts: Counter[str] = Counter()
    for other in nodes:
        if _is_counted(constraint, pod, other):
            counts[labels_of(other.document)[key]] += _matching(selector, pod, other)
    least = min(counts.values(), default=0)
    if len(counts) < constraint.get("minDomains", 1):
        least = 0
    here = counts[labels_of(node.document)[key]]
    itself = 1 if label_selector_matches(selector, labels_of(pod)) else 0
    return bool(here + itself - least > constraint["maxSkew"])


def _is_counted(constraint: Document, pod: Document, node: NodeState) -> bool:
    """Whether the pods of the node count, by the policies of the constraint."""
    by_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    if by_affinity and not node_matches(pod, node.document):
        return False
    by_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return not (by_taints and untolerated(node.document, items(pod, "spec", "tolerations")))


def _matching(selector: Document | None, pod: Document, node: NodeState) -> int:
    namespace = pod["metadata"].get("namespace")
    return sum(
        1
        for placed in node.pods.values()
        if placed.document["metadata"].get("namespace") == namespace
        and not placed.document["metadata"].get("deletionTimestamp")
        and label_selector_matches(selector, labels_of(placed.document))
    )
