"""``pods/eviction``: a delete that PodDisruptionBudgets may refuse.

Budgets guard pods that run and are Ready. A pod that has ended, waits or is going anyway is deleted
without a look at them; one that runs and is not Ready only where its budget says so, or is kept
all the same. Before it is deleted a pod gets the condition that says why.
"""

from __future__ import annotations

from dataclasses import replace

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.deletion import (
    DeleteOptions,
    Deletion,
    check_preconditions,
    parse_delete_options,
)
from app.sandbox.apiserver.disruption import (
    ALLOWED,
    SYNC_FAILED,
    Disruption,
    is_going,
    is_ready,
)
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.target import Target, success_status
from app.sandbox.clock import timestamp
from app.wire.documents import Document, condition, items, section

_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED = 2000
_UNGUARDED = frozenset({"Succeeded", "Failed", "Pending"})
_NOT_READ_YET = 10
"""Seconds after which a client is to ask again about a budget that is not looked at yet."""


def evict(
    operations: Operations,
    target: Target,
    eviction: Document,
    *,
    deletion: Deletion,
    disruption: Disruption,
    dry_run: bool = False,
) -> Document:
    """Delete the pod, or refuse with 429 where its budget does."""
    if section(eviction, "metadata").get("name") != target.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    tried = {"dryRun": "All"} if dry_run else {}
    options = parse_delete_options(section(eviction, "deleteOptions"), tried)
    pod = operations.stored(target)
    unguarded = section(pod, "status").get("phase") in _UNGUARDED or is_going(pod)
    asked = None if unguarded else _spent_on(pod, disruption, dry_run=options.dry_run)
    try:
        _delete(operations, target, options, deletion=deletion)
    except errors.ApiError as error:
        if error.reason == "Conflict" and asked is not None and not options.resource_version:
            raise _unread(asked) from error
        raise
    return success_status()


def _spent_on(pod: Document, disruption: Disruption, *, dry_run: bool) -> Document | None:
    """Take one of what its budget allows; the budget that lets an unhealthy pod go for nothing."""
    covering = disruption.covering(pod)
    if len(covering) > 1:
        raise errors.ApiError(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
            " not support.",
        )
    for budget in covering:
        if not is_ready(pod) and _lets_unhealthy_go(budget):
            return budget
        _check(budget)
        if not dry_run:
            disruption.spend(budget, pod)
    return None


def _lets_unhealthy_go(budget: Document) -> bool:
    """Whether a pod that is not Ready goes: it always may, or the application is whole anyway."""
    if section(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = section(budget, "status")
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _check(budget: Document) -> None:
    name, status = budget["metadata"]["name"], section(budget, "status")
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise _unread(budget)
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", "policy", name, why=why)
    if not status.get("disruptionsAllowed"):
        raise _refused(_why(name, budget))


def _why(name: str, budget: Document) -> str:
    status, allowed = section(budget, "status"), condition(budget, ALLOWED) or {}
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    said = allowed.get("message") if allowed.get("status") == "False" else ""
    if said and allowed.get("reason") == SYNC_FAILED:
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it"
            f" failed sync: {said}"
        )
    if healthy <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _unread(budget: Document) -> errors.ApiError:
    name = budget["metadata"]["name"]
    text = f"The disruption budget {name} is still being processed by the server."
    return _refused(text, retryAfterSeconds=_NOT_READ_YET)


def _refused(why: str, **more: int) -> errors.ApiError:
    causes = [{"reason": "DisruptionBudget", "message": why}]
    details: Document = {"causes": causes, **more}
    return errors.ApiError(429, "TooManyRequests", _VIOLATED, details=details)


def _delete(
    operations: Operations, target: Target, options: DeleteOptions, *, deletion: Deletion
) -> None:
    pod = operations.stored(target)
    if not options.dry_run:
        check_preconditions(pod, options, kind="Pod", group="")
        told = operations.store.put(target.kind.key, _told(pod, now=operations.clock.now()))
        if options.resource_version:
            options = replace(options, resource_version=told["metadata"]["resourceVersion"])
    deletion.delete(target, options)


def _told(pod: Document, *, now: float) -> Document:
    """The pod with the condition of an eviction."""
    before = condition(pod, "DisruptionTarget") or {}
    made = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    if before.get("status") == "True":
        made["lastTransitionTime"] = before.get("lastTransitionTime")
    listed: list[Document] = items(pod, "status", "conditions")
    listed = [made if one is before else one for one in listed]
    listed = listed if before else [*listed, made]
    return {**pod, "status": {**section(pod, "status"), "conditions": listed}}
