"""A job made of flags: one task, one container."""

import shlex
from dataclasses import dataclass

from app.cli.endings import Code, CommandFailed
from app.wire import quantity
from app.wire.kinds import JOBS
from app.wire.unstructured import Object

LABEL = "job.volcano.sh"
DEFAULT_AMOUNTS = "cpu=1000m,memory=100Mi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What ``job run`` and ``vsub`` were asked for."""

    name: str
    namespace: str
    image: str = "busybox"
    minimum: int = 1
    replicas: int = 1
    requests: str = DEFAULT_AMOUNTS
    limits: str = DEFAULT_AMOUNTS
    scheduler: str = "volcano"
    queue: str = ""
    command: str = ""


def job_of(order: Order) -> Object:
    """The Job; CommandFailed for what cannot be read."""
    if not order.name:
        raise CommandFailed(Code.USAGE, "job name cannot be left blank")
    container: Object = {
        "name": order.name,
        "image": order.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": amounts(order.requests, flag="--requests"),
            "limits": amounts(order.limits, flag="--limits"),
        },
    }
    if order.command:
        container["command"] = _words(order.command)
    template = {
        "metadata": {"name": order.name, "labels": {LABEL: order.name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: Object = {
        "minAvailable": order.minimum,
        "schedulerName": order.scheduler,
        "tasks": [{"replicas": order.replicas, "template": template}],
    }
    if order.queue:
        spec["queue"] = order.queue
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": order.name, "namespace": order.namespace},
        "spec": spec,
    }


def amounts(text: str, *, flag: str) -> dict[str, str]:
    """``cpu=1,memory=1Gi`` as a resource list."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        resource, equals, amount = (piece.strip() for piece in part.partition("="))
        if not (resource and equals and amount) or "=" in amount:
            raise CommandFailed(
                Code.USAGE,
                f"{flag}: invalid argument syntax {part}, expected <resource>=<value>",
            )
        try:
            quantity.parse(amount)
        except quantity.QuantityError as error:
            raise CommandFailed(Code.USAGE, f"{flag}: {resource}: {error}") from error
        if resource in found:
            raise CommandFailed(Code.USAGE, f"{flag}: {resource} is there twice")
        found[resource] = amount
    return found


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        why = "--command: a quotation mark is not closed, or a backslash ends it"
        raise CommandFailed(Code.USAGE, why) from error
