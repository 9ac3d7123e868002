"""Jobs as they are known: from the watch, or from the answer to a write that is newer."""

from app.controllers.job.fresh import Fresh
from app.controllers.job.view import Job
from app.wire import unstructured
from app.wire.unstructured import Key, Object


class KnownJobs:
    """Reads the spec of a job again only when that has changed."""

    def __init__(self, fresh: Fresh, *, scheduler: str) -> None:
        """``scheduler`` is that of pods whose template names none."""
        self._fresh = fresh
        self._scheduler = scheduler
        self._jobs: dict[str, Job] = {}
        self._unsure: set[str] = set()

    def get(self, key: Key) -> Job | None:
        """The job of that name, or None."""
        item = self._fresh.get(key)
        if item is None:
            return None
        before = self._jobs.get(unstructured.uid(item))
        return self._known(Job(item, self._scheduler) if before is None else before.as_now(item))

    def answered(self, job: Job, item: Object) -> Job:
        """The API server answered with ``item`` for ``job``; the job as it is then."""
        self._fresh.changed(item)
        return self._known(job.as_now(item))

    def doubt(self, job: Job) -> None:
        """A write failed, and may have been done all the same."""
        self._unsure.add(job.uid)

    def trust(self, job: Job) -> None:
        """The job was asked for."""
        self._unsure.discard(job.uid)

    def is_in_doubt(self, job: Job) -> bool:
        """Whether the job has to be asked for."""
        return job.uid in self._unsure

    def forget(self, uid: str) -> None:
        """Forget a job that is gone."""
        self._jobs.pop(uid, None)
        self._unsure.discard(uid)

    def _known(self, job: Job) -> Job:
        self._jobs[job.uid] = job
        return job
