"""Makes jobs when their time has come.

A start is a name, so it is made once however often it is tried. What runs is worked out from the
jobs there are and from the status, and what starts were missed from the time of the last one: a
controller that was away loses nothing but starts that are too old. Before a start the CronJob is
read from the API server, as the watch may lag behind what was written last.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from app.controllers.cronjob.book import Book, book_of, moment
from app.controllers.cronjob.made import (
    SCHEDULED,
    beyond_limits,
    completed_at,
    job_at,
    key_at,
    phase,
)
from app.controllers.cronjob.schedule import Starts, starts
from app.controllers.garbage import is_finished
from app.controllers.ports import Api, ApiError, Clock, Events, Failure
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store, by_controller
from app.kit import cron
from app.kit.cron import Schedule, ScheduleError
from app.kit.workqueue import Again
from app.wire.kinds import CRON_JOBS, JOBS, Resource
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    is_deleting,
    key_of,
    metadata,
    name,
    namespace,
    owner_of,
    spec,
    uid,
    version,
)

INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    CRON_JOBS: {},
    JOBS: {"controller": by_controller},
}
"""How this controller finds objects in the stores."""

_TIMES: Final = ("schedule", "timeZone")
"""The fields that say when to start."""
_DELTA_S: Final = 0.1
"""A start is looked at so much later than it is due."""
_LOOK_S: Final = 60.0
"""How long a worker sleeps at most: the clock on the wall may be set meanwhile."""
_REFUSED_S: Final = 30.0
"""The pause after a job was refused; what refuses it (a closed queue, a quota) may change."""


class CronJobController:
    """See the module."""

    name = "cronjob-controller"
    kinds = (CRON_JOBS, JOBS)

    def __init__(
        self, stores: Mapping[Resource, Store], *, api: Api, events: Events, clock: Clock
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._clock = clock
        """The one on the wall: schedules are about it."""
        self._deleted: set[str] = set()
        """Jobs deleted here that the watch still shows."""
        self._told: dict[Key, dict[str, str]] = {}
        """What each was warned of last, by reason."""
        self._changed: dict[Key, float] = {}
        """When the schedule was changed; it says nothing of the time before."""

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The CronJob; of jobs only their beginning and their end matter."""
        if change.resource is CRON_JOBS:
            if change.old is not None and change.new is not None:
                self._heed(change.old, change.new)
            return (key_of(change.item),)
        if change.new is None:
            self._deleted.discard(uid(change.item))
        owner = owner_of(change.item)
        if owner is None or (owner.api_version, owner.kind) != _KIND:
            return ()
        both = change.old is not None and change.new is not None
        if both and is_finished(change.old or {}) == is_finished(change.new or {}):
            return ()
        return (Key(namespace(change.item), owner.name),)

    async def reconcile(self, key: Key) -> None:
        """Take stock, start what is due, note it, and let old jobs go."""
        cron_job = self._stores[CRON_JOBS].get(key)
        if cron_job is None:
            self._told.pop(key, None)
            self._changed.pop(key, None)
            return
        book = await self._take_stock(cron_job)
        if is_deleting(cron_job):
            await self._note(cron_job, book)
            return
        following, failure = None, None
        try:
            following = await self._run(cron_job, book)
        except (Again, ApiError) as error:
            # The rest is done all the same: a job that is to go may be what the next one has no
            # room beside (in a quota).
            failure = error
        await self._note(cron_job, book)
        for job in beyond_limits(cron_job, self._jobs(cron_job)):
            await self._delete(cron_job, job)
        if failure is not None:
            raise failure
        if following is not None:
            left = following + _DELTA_S - self._clock()
            raise Again("the next start", after_s=min(max(left, 0.0), _LOOK_S))

    def _heed(self, old: Object, new: Object) -> None:
        """Note when the schedule is changed."""
        if any(spec(old).get(field) != spec(new).get(field) for field in _TIMES):
            self._changed[key_of(new)] = self._clock()

    async def _take_stock(self, cron_job: Object) -> Book:
        """What runs and what has succeeded, going by the jobs."""
        book = book_of(cron_job)
        jobs = {uid(job): job for job in self._jobs(cron_job)}
        for job in jobs.values():
            book.succeeded = max(book.succeeded, completed_at(job))
            book.started = max(book.started, moment(annotations(job).get(SCHEDULED)))
            if is_finished(job):
                if book.strike(uid(job)):
                    said = f"Saw completed job: {name(job)}, condition: {phase(job)}"
                    await self._events.record(cron_job, "Normal", "SawCompletedJob", said)
            elif is_deleting(job):
                continue
            elif SCHEDULED in annotations(job):
                book.enter(job)
            elif uid(job) not in book.active:
                said = f"Saw a job that the controller did not create or forgot: {name(job)}"
                await self._events.record(cron_job, "Warning", "OrphanedJob", said)
        for reference in list(book.active.values()):
            if reference["uid"] not in jobs and not await self._is_there(reference):
                book.strike(reference["uid"])
                said = f"Active job went missing: {reference['name']}"
                await self._events.record(cron_job, "Warning", "StaleReference", said)
        return book

    async def _is_there(self, reference: Object) -> bool:
        """Whether a job exists that the watch does not show."""
        try:
            job = await self._api.get(JOBS, Key(reference["namespace"], reference["name"]))
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return False
            raise
        return uid(job) == str(reference["uid"])

    async def _run(self, cron_job: Object, book: Book) -> float | None:
        """Start what is due; returns when to look again, None: not before something changes."""
        found = await self._starts(cron_job, book)
        if found is None:
            return None
        if found.missed is not None:
            await self._tell_missed(cron_job, found.missed)
        if found.too_many:
            said = (
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                "check clock skew"
            )
            await self._events.record(cron_job, "Warning", "TooManyMissedTimes", said)
        if found.due is not None and await self._is_current(cron_job):
            await self._start(cron_job, book, found.due)
        return found.following

    async def _tell_missed(self, cron_job: Object, at: float) -> None:
        when = datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
        said = f"Missed scheduled time to start a job: {when}"
        await self._warn_once(cron_job, "MissSchedule", said)

    async def _warn_once(self, cron_job: Object, reason: str, said: str) -> None:
        told = self._told.setdefault(key_of(cron_job), {})
        if told.get(reason) != said:
            told[reason] = said
            await self._events.record(cron_job, "Warning", reason, said)

    async def _starts(self, cron_job: Object, book: Book) -> Starts | None:
        """The starts by its schedule; None: it is suspended, or its schedule says nothing."""
        given = spec(cron_job)
        if given.get("suspend"):
            return None
        schedule = await self._schedule(cron_job)
        if schedule is None:
            return None
        since = book.started or moment(metadata(cron_job).get("creationTimestamp"))
        found = starts(
            schedule,
            since=max(since, self._changed.get(key_of(cron_job), 0.0)),
            now=self._clock(),
            deadline_s=given.get("startingDeadlineSeconds"),
        )
        if found.following is None and found.due is None:
            said = f"schedule {given.get('schedule')} has no time in the next years"
            await self._warn_once(cron_job, "InvalidSchedule", said)
            return None
        return found

    async def _schedule(self, cron_job: Object) -> Schedule | None:
        text, zone = str(spec(cron_job).get("schedule") or ""), spec(cron_job).get("timeZone")
        try:
            cron.zone_of(zone or "")
        except ScheduleError as error:
            said = f'invalid timeZone: "{zone}": {error}'
            await self._warn_once(cron_job, "InvalidTimeZone", said)
            return None
        if "TZ" in text:
            said = (
                f'CRON_TZ or TZ used in schedule "{text}" is not officially supported; set '
                "spec.timeZone instead"
            )
            await self._warn_once(cron_job, "UnsupportedSchedule", said)
        try:
            return cron.parse(text, cron.zone_of(zone or ""))
        except ScheduleError as error:
            said = f'unparseable schedule: "{text}" : {error}'
            await self._warn_once(cron_job, "UnParseableCronJobSchedule", said)
            return None

    async def _is_current(self, cron_job: Object) -> bool:
        """Whether the watch has shown all that was written to it; False: it is gone."""
        try:
            stored = await self._api.get(CRON_JOBS, key_of(cron_job))
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return False
            raise
        if version(stored) != version(cron_job):
            raise Again("the watch is behind")
        return True

    async def _start(self, cron_job: Object, book: Book, at: float) -> None:
        policy = spec(cron_job).get("concurrencyPolicy")
        if policy == "Forbid" and book.active:
            said = (
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid"
            )
            await self._events.record(cron_job, "Warning", "ForbidConcurrent", said)
            return
        if policy == "Replace":
            await self._replace(cron_job, book)
        job = await self._create(cron_job, at)
        book.started = at
        if job is not None and not is_finished(job):
            book.enter(job)

    async def _replace(self, cron_job: Object, book: Book) -> None:
        for reference in list(book.active.values()):
            said = f"Deleting job {reference['name']} because a new one starts"
            await self._events.record(cron_job, "Warning", "ReplaceConcurrent", said)
            await self._delete(cron_job, {"metadata": reference})
            book.strike(reference["uid"])

    async def _create(self, cron_job: Object, at: float) -> Object | None:
        """The job of a start, made now or before; None: a foreign job has its name."""
        zone = cron.zone_of(spec(cron_job).get("timeZone") or "")
        try:
            job = await self._api.create(JOBS, job_at(cron_job, at, zone))
        except ApiError as error:
            if error.failure is not Failure.EXISTS:
                await self._refused(cron_job, error)
                raise
            return await self._existing(cron_job, at)
        said = f"Created job {name(job)}"
        await self._events.record(cron_job, "Normal", "SuccessfulCreate", said)
        return job

    async def _existing(self, cron_job: Object, at: float) -> Object | None:
        try:
            job = await self._api.get(JOBS, key_at(cron_job, at))
        except ApiError as error:
            if error.failure is not Failure.NOT_FOUND:
                await self._events.record(cron_job, "Warning", "FailedGet", f"Get job: {error}")
            raise
        owner = owner_of(job)
        if owner is not None and owner.uid == uid(cron_job):
            return job
        said = f"Job {name(job)} exists and does not belong to this CronJob"
        await self._events.record(cron_job, "Warning", "ForeignJob", said)
        return None

    async def _refused(self, cron_job: Object, error: ApiError) -> None:
        if "because it is being terminated" in str(error):
            said = f"Not starting a job: {error}"
            await self._events.record(cron_job, "Warning", "NamespaceTerminating", said)
        else:
            said = f"Error creating job: {error}"
            await self._events.record(cron_job, "Warning", "FailedCreate", said)
        if error.failure is Failure.REFUSED:
            raise Again(said, after_s=_REFUSED_S) from error

    async def _delete(self, cron_job: Object, job: Object) -> None:
        """Delete a job of this CronJob; it may be gone already."""
        key = key_of(job)
        try:
            await self._api.delete(JOBS, key, uid=uid(job))
        except ApiError as error:
            if error.failure in (Failure.NOT_FOUND, Failure.CONFLICT):
                return
            said = f"Deleted job: {error}"
            await self._events.record(cron_job, "Warning", "FailedDelete", said)
            raise
        self._deleted.add(uid(job))
        said = f"Deleted job {key.name}"
        await self._events.record(cron_job, "Normal", "SuccessfulDelete", said)

    async def _note(self, cron_job: Object, book: Book) -> None:
        """Write the status if it says something else than before."""
        if book.as_status() == book_of(cron_job).as_status():
            return
        body = {
            "metadata": {"resourceVersion": version(cron_job)},
            "status": book.as_status(),
        }
        try:
            stored = await self._api.patch(CRON_JOBS, key_of(cron_job), body, subresource="status")
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return
            if error.failure is Failure.CONFLICT:
                raise Again("the watch is behind") from error
            raise
        self._stores[CRON_JOBS].renew(stored)

    def _jobs(self, cron_job: Object) -> list[Object]:
        jobs = self._stores[JOBS].by("controller", uid(cron_job))
        return [job for job in jobs if uid(job) not in self._deleted]


_KIND: Final = (CRON_JOBS.api_version, CRON_JOBS.kind)
