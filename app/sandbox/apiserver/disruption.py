"""PodDisruptionBudgets: their status, kept as the disruption controller keeps it, and eviction.

Healthy pods are those that are Ready and not going. Percentages and ``maxUnavailable`` refer to
the number of pods that the selector finds.
"""

from __future__ import annotations

import math

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.deletion import Deletion, parse_delete_options
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.selectors import label_selector_matches
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document, condition, is_terminal, labels_of, name_of, section

BUDGETS = "policy/poddisruptionbudgets"
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def _is_healthy(pod: Document) -> bool:
    ready = condition(pod, "Ready")
    going = pod["metadata"].get("deletionTimestamp")
    return bool(ready and ready.get("status") == "True" and not going)


def _amount(value: object, total: int) -> int:
    text = str(value)
    return math.ceil(total * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def budget_status(budget: Document, pods: list[Document]) -> Document:
    """What the budget allows, given the pods it covers."""
    spec, total = section(budget, "spec"), len(pods)
    healthy = sum(1 for pod in pods if _is_healthy(pod))
    if spec.get("maxUnavailable") is not None:
        desired = max(0, total - _amount(spec["maxUnavailable"], total))
    else:
        desired = _amount(spec.get("minAvailable", 1), total)
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(0, healthy - desired) if total else 0,
        "expectedPods": total,
        "observedGeneration": budget["metadata"].get("generation", 1),
    }


class Disruption:
    """Keeps every budget's status up to date with the pods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.on_change(self._changed)

    def covering(self, pod: Document) -> list[Document]:
        namespace = name_of(pod).namespace
        return [
            budget
            for budget in self._store.ordered(BUDGETS, namespace)
            if label_selector_matches(section(budget, "spec").get("selector"), labels_of(pod))
        ]

    def _changed(self, change: StoreChange) -> None:
        if change.storage == BUDGETS and change.kind is not ChangeKind.DELETED:
            self._refresh(change.document)
        elif change.storage == "/pods":
            for budget in self.covering(change.document):
                self._refresh(budget)

    def _refresh(self, budget: Document) -> None:
        selector = section(budget, "spec").get("selector")
        pods = [
            pod
            for pod in self._store.ordered("/pods", name_of(budget).namespace)
            if label_selector_matches(selector, labels_of(pod)) and not is_terminal(pod)
        ]
        status = budget_status(budget, pods)
        if budget.get("status") != status:
            self._store.put(BUDGETS, {**budget, "status": status})


def evict(
    operations: Operations,
    target: Target,
    eviction: Document,
    *,
    deletion: Deletion,
    disruption: Disruption,
    dry_run: bool = False,
) -> Document:
    """``pods/eviction``: a delete that budgets may refuse with 429."""
    pod = operations.stored(target)
    if section(eviction, "metadata").get("name") != target.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    tried = {"dryRun": "All"} if dry_run else {}
    options = parse_delete_options(section(eviction, "deleteOptions"), tried)
    covering = disruption.covering(pod)
    if _is_healthy(pod) and not is_terminal(pod):
        _check_budgets(covering)
    deletion.delete(target, options)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


def _check_budgets(covering: list[Document]) -> None:
    if len(covering) > 1:
        raise errors.ApiError(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
            " not support.",
        )
    for budget in covering:
        status = section(budget, "status")
        if status.get("disruptionsAllowed", 0) <= 0:
            text = (
                f"The disruption budget {budget['metadata']['name']} needs"
                f" {status.get('desiredHealthy', 0)} healthy pods and has"
                f" {status.get('currentHealthy', 0)} currently"
            )
            cause = {"reason": "DisruptionBudget", "message": text}
            raise errors.ApiError(429, "TooManyRequests", _VIOLATED, details={"causes": [cause]})
