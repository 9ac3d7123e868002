"""``matchLabelKeys`` and ``mismatchLabelKeys``: written into label selectors when a pod is created.

The scheduler looks at the selectors only: what counts are the labels that the pod began with. A
rule without a selector selects nothing and stays so.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.wire.documents import Document, items, labels_of, section

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def merge_label_keys(pod: Document) -> None:
    """Of terms about other pods and of spread constraints; ``pod`` is new."""
    labels = labels_of(pod)
    for term in _terms(section(pod, "spec", "affinity")):
        _merge(term, labels, fields=("matchLabelKeys", "mismatchLabelKeys"))
    for constraint in items(pod, "spec", "topologySpreadConstraints"):
        _merge(constraint, labels, fields=("matchLabelKeys",))


def _terms(affinity: Document) -> Iterator[Document]:
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from items(affinity, kind, _REQUIRED)
        for weighted in items(affinity, kind, _PREFERRED):
            yield section(weighted, "podAffinityTerm")


def _merge(rule: Document, labels: dict[str, str], *, fields: tuple[str, ...]) -> None:
    selector = rule.get("labelSelector")
    added = [
        {"key": key, "operator": _OPERATORS[field], "values": [labels[key]]}
        for field in fields
        for key in items(rule, field)
        if key in labels
    ]
    if selector is not None and added:
        expressions = [*items(selector, "matchExpressions"), *added]
        rule["labelSelector"] = {**selector, "matchExpressions": expressions}
