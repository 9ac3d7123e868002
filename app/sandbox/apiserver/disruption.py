"""PodDisruptionBudgets: their status, kept as the disruption controller keeps it.

Healthy pods are those that are Ready, not going, and not about to be evicted. Percentages and
``maxUnavailable`` refer to the replicas that the controllers of the selected pods want; pods
without a controller count for none. A budget whose pods have a controller that does not tell its
replicas allows no disruption, and its condition says why.
"""

from __future__ import annotations

import math

from app.sandbox.apiserver.jsonpath import lookup
from app.sandbox.apiserver.registry import Registry, ResourceKind
from app.sandbox.apiserver.selectors import label_selector_matches
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.sandbox.clock import Clock, parse_timestamp, timestamp
from app.wire.documents import Document, ObjectName, condition, labels_of, name_of, section

BUDGETS = "policy/poddisruptionbudgets"
ALLOWED = "DisruptionAllowed"
SYNC_FAILED = "SyncFailed"
DELETION_TIMEOUT_S = 120.0
"""Seconds for which a pod that may be evicted counts as gone, deleted or not."""


class SyncFailed(Exception):
    """Nothing tells how many pods there should be."""


def is_ready(pod: Document) -> bool:
    """Whether the pod's condition ``Ready`` is true; a missing condition counts as false."""
    return section({"ready": condition(pod, "Ready")}, "ready").get("status") == "True"


def is_going(pod: Document) -> bool:
    """Whether the pod's deletion has begun: its ``deletionTimestamp`` is set."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def _amount(value: int | str, total: int) -> int:
    text = str(value)
    return math.ceil(total * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def with_allowed_condition(status: Document, *, now: float) -> Document:
    """The status with the condition that goes with how many disruptions it allows."""
    enough = status["disruptionsAllowed"] > 0
    return _with_condition(
        status,
        is_true=enough,
        reason="SufficientPods" if enough else "InsufficientPods",
        message="",
        now=now,
    )


def _with_condition(
    status: Document, *, is_true: bool, reason: str, message: str, now: float
) -> Document:
    before = condition({"status": status}, ALLOWED) or {}
    made = {
        "type": ALLOWED,
        "status": "True" if is_true else "False",
        "lastTransitionTime": before.get("lastTransitionTime", ""),
        "reason": reason,
        "message": message,
    }
    if before.get("status") != made["status"]:
        made["lastTransitionTime"] = timestamp(now)
    if status.get("observedGeneration"):
        made["observedGeneration"] = status["observedGeneration"]
    return {**status, "conditions": [made]}


class Disruption:
    """Keeps every budget's status up to date with the pods and their controllers."""

    def __init__(self, store: Store, registry: Registry, *, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        store.on_change(self._changed)

    def covering(self, pod: Document) -> list[Document]:
        """The budgets that select the pod."""
        namespace = name_of(pod).namespace
        return [
            budget
            for budget in self._store.ordered(BUDGETS, namespace)
            if label_selector_matches(section(budget, "spec").get("selector"), labels_of(pod))
        ]

    def spend(self, budget: Document, pod: Document) -> None:
        """One disruption less: the pod is about to be evicted."""
        now, status = self._clock.now(), section(budget, "status")
        spent = {
            **status,
            "disruptionsAllowed": status["disruptionsAllowed"] - 1,
            "disruptedPods": {
                **(status.get("disruptedPods") or {}),
                pod["metadata"]["name"]: timestamp(now),
            },
        }
        if not spent["disruptionsAllowed"]:
            spent = with_allowed_condition(spent, now=now)
        self._store.put(BUDGETS, {**budget, "status": spent})

    def _changed(self, change: StoreChange) -> None:
        if change.storage == BUDGETS and change.kind is not ChangeKind.DELETED:
            self._refresh(change.document)
        elif change.storage == "/pods":
            for budget in self.covering(change.document):
                self._refresh(budget)
        elif change.kind is ChangeKind.MODIFIED and _wants(change.document) != _wants(
            change.previous
        ):
            for budget in self._store.ordered(BUDGETS, name_of(change.document).namespace):
                self._refresh(budget)

    def _refresh(self, budget: Document) -> None:
        status = self._status(budget)
        if budget.get("status") != status:
            self._store.put(BUDGETS, {**budget, "status": status})

    def _status(self, budget: Document) -> Document:
        now, before = self._clock.now(), section(budget, "status")
        selector = section(budget, "spec").get("selector")
        pods = [
            pod
            for pod in self._store.ordered("/pods", name_of(budget).namespace)
            if label_selector_matches(selector, labels_of(pod))
        ]
        try:
            expected, desired = self._wanted(section(budget, "spec"), pods)
        except SyncFailed as error:
            failed = {**_NOTHING, **before, "disruptionsAllowed": 0}
            return _with_condition(
                failed, is_true=False, reason=SYNC_FAILED, message=str(error), now=now
            )
        disrupted = _still_disrupted(before, pods, now=now)
        healthy = sum(
            is_ready(pod) and not is_going(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        status = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": max(0, healthy - desired) if expected > 0 else 0,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "conditions": before.get("conditions") or [],
            **({"disruptedPods": disrupted} if disrupted else {}),
        }
        return with_allowed_condition(status, now=now)

    def _wanted(self, spec: Document, pods: list[Document]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable", 1)
        if most is not None:
            expected = self._replicas(pods)
            return expected, max(0, expected - _amount(most, expected))
        expected = len(pods) if isinstance(least, int) else self._replicas(pods)
        return expected, _amount(least, expected)

    def _replicas(self, pods: list[Document]) -> int:
        """What the controllers of the pods want together."""
        wanted: dict[str, int] = {}
        for pod in pods:
            controller = _controller(pod)
            if controller is not None:
                uid, replicas = self._scale(controller, pod)
                wanted[uid] = replicas
        return sum(wanted.values())

    def _scale(self, owner: Document, pod: Document) -> tuple[str, int]:
        namespace, name = name_of(pod)
        kind = self._kind(owner)
        found = self._store.get(kind.key, ObjectName(namespace, owner["name"]))
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            raise SyncFailed(f'found no controllers for pod "{name}"')
        above = _controller(found)
        if kind.kind == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
            return self._scale(above, pod)
        wanted = next(iter(lookup(found, kind.scale.wanted)), 1)
        return owner["uid"], int(wanted)

    def _kind(self, owner: Document) -> ResourceKind:
        group, _, version = owner["apiVersion"].rpartition("/")
        for kind in self._registry.of_group(group, version):
            if kind.kind == owner["kind"]:
                if "scale" in kind.subresources:
                    return kind
                named = f"{kind.plural}.{group}" if group else kind.plural
                raise SyncFailed(f"{named} does not implement the scale subresource")
        text = f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"'
        raise SyncFailed(text)


_NOTHING: Document = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _controller(document: Document) -> Document | None:
    owners = document["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _wants(workload: Document | None) -> object:
    return section(workload or {}, "spec").get("replicas")


def _still_disrupted(before: Document, pods: list[Document], *, now: float) -> dict[str, str]:
    """The pods that were about to be evicted and are not going yet, while that may still come."""
    there = {pod["metadata"]["name"] for pod in pods if not is_going(pod)}
    return {
        name: since
        for name, since in (before.get("disruptedPods") or {}).items()
        if name in there and parse_timestamp(since) + DELETION_TIMEOUT_S > now
    }
