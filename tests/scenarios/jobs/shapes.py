"""Tasks of jobs whose pods do one thing each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.clusters.client import Object

_LONG_S = 600
"""More than any test takes."""


def task(
    name: str,
    replicas: int = 1,
    *,
    command: Sequence[str],
    pod: Object | None = None,
    grace_s: int = 1,
    **more: Any,
) -> Object:
    """A task with one small container."""
    container = {
        "name": "c",
        "image": "busybox",
        "command": list(command),
        "resources": {"requests": {"cpu": "10m"}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_s,
        "automountServiceAccountToken": False,
        "containers": [container],
        **(pod or {}),
    }
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def done(replicas: int = 1, **more: Any) -> Object:
    """Pods that succeed."""
    return task("done", replicas, command=["true"], **more)


def bad(replicas: int = 1, **more: Any) -> Object:
    """Pods that fail."""
    return task("bad", replicas, command=["sh", "-c", "exit 1"], **more)


def up(replicas: int = 1, name: str = "up", **more: Any) -> Object:
    """Pods that run until they are told to go, and go at once then."""
    return task(name, replicas, command=["sleep", "infinity"], **more)


def held(replicas: int = 1, name: str = "up", **more: Any) -> Object:
    """Pods that run, and do not go when they are told to."""
    forever = ["sh", "-c", "sleep infinity"]
    return task(name, replicas, command=forever, grace_s=_LONG_S, **more)


def slow(replicas: int = 1, **more: Any) -> Object:
    """Pods that stay pending on their node."""
    waiter = {"name": "w", "image": "busybox", "command": ["sleep", "infinity"]}
    pod = {"initContainers": [waiter]}
    return task("slow", replicas, command=["sleep", "infinity"], pod=pod, **more)


def in_pairs(count: int = 2) -> Object:
    """A partition policy of so many partitions of two pods."""
    return {"totalPartitions": count, "partitionSize": 2}


def policy(event: str | Sequence[str], action: str, **more: Any) -> Object:
    """A lifecycle policy."""
    which = {"event": event} if isinstance(event, str) else {"events": list(event)}
    return {**which, "action": action, **more}


def make_job(*tasks: Object, needs: int, **more: Any) -> Object:
    """The spec of a job with these tasks that needs so many pods."""
    return {"minAvailable": needs, "tasks": list(tasks), **more}
