"""The beginnings of objects that belong to a job."""

from app.jobplugins.plugin import JobFacts
from app.wire.kinds import Resource
from app.wire.unstructured import Object


def owned(resource: Resource, name: str, job: JobFacts) -> Object:
    """An object without content that goes when the job goes."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "ownerReferences": [dict(job.owner)],
        },
    }


def selector(job: JobFacts) -> dict[str, str]:
    """The labels that all pods of a job have, and no others."""
    return {"volcano.sh/job-name": job.name, "volcano.sh/job-namespace": job.namespace}
