"""The garbage collector: finished jobs go when their time to live is over (volcano.md §5.5).

A job whose end its owner has still to note stays a little longer.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from app.controllers.ports import Api, Clock
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store
from app.kit.workqueue import Again
from app.wire import times
from app.wire.errors import DecodeError
from app.wire.kinds import JOBS, Resource
from app.wire.unstructured import Key, Object, is_deleting, key_of, spec, status, uid

FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})

_OWED_S: Final = 0.5
"""The pause while a job is owed a note."""


class GarbageCollector:
    """Deletes jobs with ``ttlSecondsAfterFinished``."""

    name = "gc-controller"
    kinds = (JOBS,)

    def __init__(
        self,
        stores: Mapping[Resource, Store],
        *,
        api: Api,
        clock: Clock,
        owed: Callable[[Object], bool],
    ) -> None:
        """``owed``: whether the owner of a job has still to note its end."""
        self._jobs = stores[JOBS]
        self._api = api
        self._clock = clock
        self._owed = owed

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The job itself, once it has an end."""
        if change.new is None or ends_at(change.new) is None:
            return ()
        return (key_of(change.new),)

    async def reconcile(self, key: Key) -> None:
        """Delete the job if its time is over; it is read again first, the watch may be late."""
        job = self._jobs.get(key)
        if job is None or self._left(job) is None:
            return
        with unless(*GONE):
            job = await self._api.get(JOBS, key)
            left = self._left(job)
            if left is None:
                return
            if left > 0:
                raise Again("not yet", after_s=left)
            if self._owed(job):
                raise Again("its end is not noted", after_s=_OWED_S)
            await self._api.delete(JOBS, key, uid=uid(job), propagation="Foreground")

    def _left(self, job: Object) -> float | None:
        """Seconds until the job goes; None: it stays."""
        end = ends_at(job)
        return None if end is None or is_deleting(job) else end - self._clock()


def is_finished(job: Object) -> bool:
    """Whether a job has ended for good; one that was aborted may be resumed."""
    return (status(job).get("state") or {}).get("phase") in FINISHED


def ends_at(job: Object) -> float | None:
    """When a job is to be deleted, seconds since the epoch; None: never, or not finished yet."""
    ttl = spec(job).get("ttlSecondsAfterFinished")
    if ttl is None or not is_finished(job):
        return None
    try:
        return times.parse(str(status(job)["state"].get("lastTransitionTime") or "")) + float(ttl)
    except DecodeError:
        return None
