"""Node selectors and affinity, and affinity between pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from app.model.integers import int64
from app.sandbox.apiserver.selectors import label_selector_matches
from app.sandbox.scheduler.cluster import Namespaces, Neighbourhood, NodeState, PlacedPod
from app.wire.documents import Document, items, labels_of, name_of, section

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _expression_holds(expression: Document, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    present = labels.get(key)
    match expression["operator"]:
        case "In":
            return present in values
        case "NotIn":
            return present not in values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
        case "Gt":
            return _compares(present, values, lambda left, right: left > right)
        case "Lt":
            return _compares(present, values, lambda left, right: left < right)
        case _:
            return False


def _compares(present: str | None, values: list[str], holds: Callable[[int, int], bool]) -> bool:
    if present is None or not values:
        return False
    have, bound = int64(present), int64(values[0])
    return have is not None and bound is not None and holds(have, bound)


def _term_holds(term: Document, node: Document) -> bool:
    expressions, fields = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_expression_holds(one, labels_of(node)) for one in expressions) and all(
        _expression_holds(one, name) for one in fields
    )


def _required_terms(pod: Document) -> list[Document] | None:
    required = section(pod, "spec", "affinity", "nodeAffinity").get(_REQUIRED)
    return items(required, "nodeSelectorTerms") if required else None


def node_matches(pod: Document, node: Document) -> bool:
    """Whether the node satisfies ``nodeSelector`` and required node affinity."""
    labels = labels_of(node)
    wanted = section(pod, "spec", "nodeSelector")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    terms = _required_terms(pod)
    return terms is None or any(_term_holds(term, node) for term in terms)


def pinned_nodes(pod: Document) -> frozenset[str] | None:
    """The nodes that ``matchFields`` names, when every term names some; None otherwise."""
    terms = _required_terms(pod)
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        found = [
            set(one.get("values") or [])
            for one in items(term, "matchFields")
            if one.get("key") == "metadata.name" and one.get("operator") == "In"
        ]
        if not found:
            return None
        names |= set.intersection(*found)
    return frozenset(names)


def _terms(pod: Document, kind: str) -> list[Document]:
    return items(pod, "spec", "affinity", kind, _REQUIRED)


def _selects(term: Document, owner: Document, other: Document, *, among: Namespaces) -> bool:
    return _looks_into(
        term, name_of(owner).namespace, name_of(other).namespace, among=among
    ) and label_selector_matches(term.get("labelSelector"), labels_of(other))


def _looks_into(term: Document, home: str, namespace: str, *, among: Namespaces) -> bool:
    """Whether the term is about pods of the namespace: named, selected, or its own by default."""
    names, selector = items(term, "namespaces"), term.get("namespaceSelector")
    if not names and selector is None:
        return namespace == home
    return namespace in names or label_selector_matches(selector, among.get(namespace, {}))


def _in_domain(nodes: Iterable[NodeState], key: str, value: str | None) -> Iterator[PlacedPod]:
    for node in nodes:
        if value is not None and labels_of(node.document).get(key) == value:
            yield from node.pods.values()


def anti_affinity_broken(pod: Document, node: NodeState, around: Neighbourhood) -> bool:
    """Whether the pod's own required anti-affinity excludes the node."""
    labels = labels_of(node.document)
    return any(
        _selects(term, pod, placed.document, among=around.namespaces)
        for term in _terms(pod, "podAntiAffinity")
        for placed in _in_domain(around.nodes, term["topologyKey"], labels.get(term["topologyKey"]))
    )


def is_repelled(pod: Document, node: NodeState, around: Neighbourhood) -> bool:
    """Whether a placed pod's required anti-affinity excludes this pod from the node."""
    labels = labels_of(node.document)
    for other in around.repelling:
        for placed in other.repellers.values():
            for term in _terms(placed.document, "podAntiAffinity"):
                key = term["topologyKey"]
                here = labels.get(key)
                same = here is not None and labels_of(other.document).get(key) == here
                if same and _selects(term, placed.document, pod, among=around.namespaces):
                    return True
    return False


def affinity_unmet(pod: Document, node: NodeState, around: Neighbourhood) -> bool:
    """Whether the pod's required affinity to other pods is not met on the node.

    The first pod of a group that is to keep together may start anywhere: a term that matches the
    pod itself and nothing that is placed is met by any node that has the topology key.
    """
    labels, among = labels_of(node.document), around.namespaces
    for term in _terms(pod, "podAffinity"):
        key = term["topologyKey"]
        if key not in labels:
            return True
        if any(
            _selects(term, pod, placed.document, among=among)
            for placed in _in_domain(around.nodes, key, labels.get(key))
        ):
            continue
        anywhere = any(
            _selects(term, pod, placed.document, among=among)
            for other in around.nodes
            for placed in other.pods.values()
        )
        if anywhere or not _selects(term, pod, pod, among=among):
            return True
    return False
