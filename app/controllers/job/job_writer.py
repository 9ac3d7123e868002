"""Writes of jobs: every write of a status states the version that it was made from."""

from app.controllers.job import status
from app.controllers.job.known_jobs import KnownJobs
from app.controllers.job.view import Job
from app.controllers.ports import Api, ApiError, Failure
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import JOBS
from app.wire.unstructured import Object


class JobWriter:
    """Writes, and notes what the API server answers."""

    def __init__(self, api: Api, jobs: KnownJobs) -> None:
        self._api = api
        self._jobs = jobs

    async def write_status(self, job: Job, made: Object) -> Job:
        """Make the status so; the job as stored then."""
        patch = status.patch(job, made)
        return job if patch is None else await self._patch(job, patch, "status")

    async def write(self, job: Job, body: Object) -> Job:
        """Change the job itself."""
        metadata = {
            **(body.get("metadata") or {}),
            "resourceVersion": unstructured.version(job.item),
            "uid": job.uid,
        }
        return await self._patch(job, {**body, "metadata": metadata})

    async def _patch(self, job: Job, patch: Object, subresource: str = "") -> Job:
        try:
            item = await self._api.patch(JOBS, job.key, patch, subresource=subresource)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                raise Again("the job is gone") from error
            self._jobs.doubt(job)
            if error.failure is Failure.CONFLICT:
                raise Again("the job has changed meanwhile") from error
            raise
        return self._jobs.answered(job, item)
