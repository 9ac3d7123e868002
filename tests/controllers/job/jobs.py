"""Jobs and members for tests of the pure parts."""

from collections.abc import Mapping
from typing import Any

from app.controllers.job.members import Member, members
from app.controllers.job.view import Job
from app.wire.kinds import JOBS
from app.wire.unstructured import Object


def make_job(
    spec: Mapping[str, Any], *, status: Mapping[str, Any] | None = None, **metadata: Any
) -> Job:
    """A job as the controller reads it."""
    item: Object = {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "metadata": {
            "name": "job",
            "namespace": "ns",
            "uid": "u-1",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": dict(spec),
        "status": dict(status or {}),
    }
    return Job(item, "volcano")


def in_phase(phase: str, **status: Any) -> dict[str, Any]:
    """A status."""
    return {"state": {"phase": phase}, **status}


def make_pod(name: str, phase: str = "Pending", *, version: int = 0, **fields: Any) -> Object:
    """A pod of the job; the name says task and index."""
    task, _, index = name.rpartition("-")
    annotations = {
        "volcano.sh/task-spec": task.removeprefix("job-"),
        "volcano.sh/task-index": index,
        "volcano.sh/job-version": str(version),
        **fields.pop("annotations", {}),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"u-{name}",
            "annotations": annotations,
            **fields.pop("metadata", {}),
        },
        "spec": fields.pop("spec", {}),
        "status": {"phase": phase, **fields},
    }


def of(*pods: Object) -> list[Member]:
    """The members that pods are."""
    return members(pods)
