"""The table of webhooks: which rules judge or change which kind at which path.

Paths, and names where Volcano gives them, are Volcano's; a denial is shown with the name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.webhooks.colocation import check_colocation
from app.webhooks.cronjobs import check_cron_job
from app.webhooks.hypernodes import check_hyper_node
from app.webhooks.job_defaults import default_job
from app.webhooks.job_rules import check_new_job
from app.webhooks.job_updates import check_job_update
from app.webhooks.jobflows import check_flow
from app.webhooks.object_types import is_readable, is_whole
from app.webhooks.patching import Step, json_patch
from app.webhooks.podgroups import check_group, default_group
from app.webhooks.pods import change_pod, check_pod
from app.webhooks.queues import check_queue_or_deletion, default_queue
from app.webhooks.schema_words import beyond_schema
from app.webhooks.world import Operation, Request, World
from app.wire import kinds
from app.wire.findings import Findings
from app.wire.kinds import Resource
from app.wire.unstructured import Object

Validate = Callable[[Request, World], Findings]
Mutate = Callable[[Request, World], Object]


class UnknownPath(ValueError):
    """A name in the list of enabled webhooks that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One path: exactly one of ``validate`` and ``mutate`` is set."""

    path: str
    name: str
    resource: Resource
    operations: tuple[Operation, ...]
    validate: Validate | None = None
    mutate: Mutate | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one request."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: Sequence[Step] = ()


def check_job(request: Request, world: World) -> Findings:
    """A new job, or a change of one."""
    rules = check_new_job if request.operation == "CREATE" else check_job_update
    return rules(request, world)


_CREATE: Final[tuple[Operation, ...]] = ("CREATE",)
_CREATE_UPDATE: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")
_BOTH: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")
_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")

WEBHOOKS: Final = (
    Webhook(
        path="/jobs/mutate",
        name="mutatejob.volcano.sh",
        resource=kinds.JOBS,
        operations=_BOTH,
        mutate=default_job,
    ),
    Webhook(
        path="/jobs/validate",
        name="validatejob.volcano.sh",
        resource=kinds.JOBS,
        operations=_BOTH,
        validate=check_job,
    ),
    Webhook(
        path="/podgroups/mutate",
        name="mutatepodgroup.volcano.sh",
        resource=kinds.POD_GROUPS,
        operations=_CREATE,
        mutate=default_group,
    ),
    Webhook(
        path="/podgroups/validate",
        name="validatepodgroup.volcano.sh",
        resource=kinds.POD_GROUPS,
        operations=_BOTH,
        validate=check_group,
    ),
    Webhook(
        path="/pods/mutate",
        name="mutatepod.volcano.sh",
        resource=kinds.PODS,
        operations=_CREATE,
        mutate=change_pod,
    ),
    Webhook(
        path="/pods/validate",
        name="validatepod.volcano.sh",
        resource=kinds.PODS,
        operations=_CREATE_UPDATE,
        validate=check_pod,
    ),
    Webhook(
        path="/queues/mutate",
        name="mutatequeue.volcano.sh",
        resource=kinds.QUEUES,
        operations=_CREATE,
        mutate=default_queue,
    ),
    Webhook(
        path="/queues/validate",
        name="validatequeue.volcano.sh",
        resource=kinds.QUEUES,
        operations=_ALL,
        validate=check_queue_or_deletion,
    ),
    Webhook(
        path="/hypernodes/validate",
        name="validatehypernode.volcano.sh",
        resource=kinds.HYPER_NODES,
        operations=_BOTH,
        validate=check_hyper_node,
    ),
    Webhook(
        path="/jobflows/validate",
        name="validatejobflow.volcano.sh",
        resource=kinds.JOB_FLOWS,
        operations=_BOTH,
        validate=check_flow,
    ),
    Webhook(
        path="/cronjobs/validate",
        name="validatecronjob.volcano.sh",
        resource=kinds.CRON_JOBS,
        operations=_BOTH,
        validate=check_cron_job,
    ),
    Webhook(
        path="/colocationconfigurations/validate",
        name="validatecolocationconfiguration.volcano.sh",
        resource=kinds.COLOCATION_CONFIGURATIONS,
        operations=_BOTH,
        validate=check_colocation,
    ),
)

PATHS: Final = tuple(webhook.path for webhook in WEBHOOKS)


def chosen(paths: Iterable[str]) -> tuple[Webhook, ...]:
    """The webhooks at ``paths``; raises `UnknownPath`."""
    known = {webhook.path: webhook for webhook in WEBHOOKS}
    wanted = list(dict.fromkeys(paths))
    unknown = [path for path in wanted if path not in known]
    if unknown:
        raise UnknownPath(f"no webhook at {', '.join(unknown)}; there are {', '.join(PATHS)}")
    return tuple(known[path] for path in wanted)


def decide(webhook: Webhook, request: Request, world: World) -> Verdict:
    """Judge or change one object."""
    if request.operation not in webhook.operations:
        expected = " or ".join(f"'{operation}'" for operation in webhook.operations)
        return Verdict(False, f"expect operation to be {expected} ")
    if not (is_whole(request.item) and is_whole(request.old)):
        return Verdict(True)
    if webhook.mutate is not None:
        changed = webhook.mutate(request, world)
        return Verdict(True, patch=json_patch(request.item, changed))
    assert webhook.validate is not None
    if not is_readable(webhook.resource, request.item):
        return Verdict(True)
    findings = webhook.validate(request, world)
    if findings.errors:
        findings.errors += beyond_schema(webhook.resource, request.item)
    return Verdict(
        allowed=not findings.errors,
        message=findings.message(),
        warnings=findings.told(),
    )
