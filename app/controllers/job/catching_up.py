"""Asking the API server for what the watch owes, where a decision depends on it."""

from collections.abc import Mapping

from app.controllers.job.fresh import Fresh
from app.controllers.job.known_jobs import KnownJobs
from app.controllers.job.reader import Reader, Seen
from app.controllers.job.view import Job
from app.controllers.ports import Api, ApiError, Failure
from app.kit.workqueue import Again
from app.wire.kinds import JOBS, POD_GROUPS, PODS, Resource
from app.wire.unstructured import key_of


class CatchingUp:
    """Completes what the ``reader`` sees."""

    def __init__(
        self, api: Api, *, fresh: Mapping[Resource, Fresh], jobs: KnownJobs, reader: Reader
    ) -> None:
        self._api = api
        self._fresh = fresh
        self._jobs = jobs
        self._reader = reader

    async def caught_up(self, seen: Seen) -> Seen:
        """``seen`` with what we wrote and the watch has not shown, where that matters.

        A job whose last write failed is asked for at once: the write may have been done all the
        same, and from a status that does not count a pod yet nothing would tell that it is gone.
        """
        job = seen.job
        if self._jobs.is_in_doubt(job):
            job = await self._asked_for(job)
        await self._ask_for_overdue(job)
        return self._reader.around(job)

    async def _asked_for(self, job: Job) -> Job:
        try:
            item = await self._api.get(JOBS, job.key)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                raise Again("the job is gone") from error
            raise
        self._jobs.trust(job)
        return self._jobs.answered(job, item)

    async def _ask_for_overdue(self, job: Job) -> None:
        for kind in (PODS, POD_GROUPS):
            fresh = self._fresh[kind]
            for item in fresh.overdue(job.uid):
                try:
                    fresh.created(await self._api.get(kind, key_of(item)))
                except ApiError as error:
                    if error.failure is not Failure.NOT_FOUND:
                        raise
                    fresh.gone(key_of(item))
