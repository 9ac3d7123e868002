"""The jobs with all that belongs to them, read and written.

Reads see our own writes (``fresh``). Every write of a status states the version it was made from.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from app.controllers.job import group, policies, status, sync
from app.controllers.job.fresh import Fresh
from app.controllers.job.members import Member, members
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import OUT_OF_SYNC, SETTLED
from app.controllers.ports import Api, ApiError, Clock, Events, Failure
from app.controllers.runtime import ObjectChange, Stores
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Resource
from app.wire.unstructured import Key, Object, key_of

log = logging.getLogger(__name__)

CONCURRENT_WRITES: Final = 32
SLICE_S: Final = 1.0
"""How long pods of one job are made before its status is written and it is looked at again."""
_TOLD: Final = 3
_MARK: Final[Mapping[str, str]] = MappingProxyType({OUT_OF_SYNC: "true"})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_SETTLED: Final[Mapping[str, str]] = MappingProxyType({SETTLED: "true"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as it is now; ``group`` is its PodGroup unless that is missing or going."""

    job: Job
    members: Sequence[Member]
    group: Object | None


@dataclass(frozen=True, slots=True)
class _Read:
    changes: int
    members: Sequence[Member]


def without(seen: Seen, taken: Sequence[Member]) -> Seen:
    """``seen`` but for the pods that we take away."""
    gone = sync.uids(taken)
    return replace(seen, members=[member for member in seen.members if member.uid not in gone])


class World:
    """What the job controller reads and writes."""

    def __init__(
        self, stores: Stores, *, api: Api, events: Events, clock: Clock, scheduler: str
    ) -> None:
        self.api = api
        self.events = events
        self.clock = clock
        self._stores = stores
        self._scheduler = scheduler
        self._fresh: dict[Resource, Fresh] = {
            kind: Fresh(stores[kind], clock=clock) for kind in (JOBS, PODS, POD_GROUPS)
        }
        self._members: dict[str, _Read] = {}
        self._jobs: dict[str, Job] = {}
        self._unsure: set[str] = set()
        self._busy = asyncio.Semaphore(CONCURRENT_WRITES)

    def saw(self, change: ObjectChange) -> None:
        """The watch showed something."""
        fresh = self._fresh.get(change.resource)
        if fresh is not None:
            fresh.saw(change)

    def fallen(self, change: ObjectChange) -> Member | None:
        """The pod that is gone with the change, if it had failed; to be asked before `saw`.

        As we know it: the watch may have shown it without our mark.
        """
        if change.resource is not PODS or change.new is not None:
            return None
        known = self._fresh[PODS].get(key_of(change.item))
        is_same = known is not None and unstructured.uid(known) == unstructured.uid(change.item)
        found = members([known if known is not None and is_same else change.item])
        return found[0] if found and found[0].phase == "Failed" else None

    def see(self, key: Key) -> Seen | None:
        """The job of that name, or None."""
        item = self._fresh[JOBS].get(key)
        return None if item is None else self.around(self._read(item))

    def around(self, job: Job) -> Seen:
        """The same job with what belongs to it now."""
        return Seen(job, self._members_of(job.uid), self._group(job))

    def still(self, job: Job, since: Seen) -> Seen:
        """:meth:`around`, where nobody took a pod away ``since``; raises :class:`Again` otherwise.

        What policies say to that comes first: a status that no longer counts the pod, or another
        pod in its place, would leave nothing to tell that it was evicted.
        """
        now = self.around(job)
        if not policies.are_there_any(job):
            return now
        staying = sync.uids(member for member in now.members if not member.deleting)
        for member in since.members:
            known = member.deleting or member.marked or member.version < job.version
            if member.uid not in staying and not known:
                raise Again(f"pod {member.name} was taken away meanwhile", after_s=0.0)
        return now

    def forget(self, uid: str) -> None:
        """That job is gone."""
        self._members.pop(uid, None)
        self._jobs.pop(uid, None)
        self._unsure.discard(uid)

    async def caught_up(self, seen: Seen) -> Seen:
        """``seen`` with what we wrote and the watch has not shown, where that matters.

        A job whose last write failed is asked for at once: the write may have been done all the
        same, and from a status that does not count a pod yet nothing would tell that it is gone.
        """
        job = seen.job
        if job.uid in self._unsure:
            job = await self._asked_for(job)
        await self._ask_for_overdue(job)
        return self.around(job)

    def unseen_pods(self, job: Job) -> list[Object]:
        """Pods that we made and the watch has not shown."""
        return self._fresh[PODS].unseen(job.uid)

    def queue(self, name: str) -> Object | None:
        """The queue of that name."""
        return self._stores[QUEUES].get(Key("", name))

    def priorities(self) -> dict[str, int]:
        """PriorityClass to its value."""
        classes = self._stores[PRIORITY_CLASSES].all()
        return {unstructured.name(item): int(item.get("value") or 0) for item in classes}

    async def write_status(self, job: Job, made: Object) -> Job:
        """Make the status so; the job as stored then."""
        patch = status.patch(job, made)
        return job if patch is None else await self._patch_job(job, patch, "status")

    async def write_job(self, job: Job, body: Object) -> Job:
        """Change the job itself."""
        metadata = {
            **(body.get("metadata") or {}),
            "resourceVersion": unstructured.version(job.item),
            "uid": job.uid,
        }
        return await self._patch_job(job, {**body, "metadata": metadata})

    async def write_group(self, wanted: Object, stored: Object | None) -> Object:
        """Create or bring up to date the PodGroup of a job."""
        if stored is None:
            made = await self.api.create(POD_GROUPS, wanted)
            self._fresh[POD_GROUPS].created(made)
            return made
        patch = group.change(stored, wanted)
        if patch is None:
            return stored
        made = await self.api.patch(POD_GROUPS, key_of(stored), patch)
        self._fresh[POD_GROUPS].changed(made)
        return made

    async def delete_group(self, stored: Object) -> None:
        """Delete a PodGroup."""
        await self._gone(POD_GROUPS, stored)

    async def create_pods(
        self, job: Job, pods: Sequence[Callable[[], Object]]
    ) -> tuple[list[Object], list[ApiError]]:
        """Make and create them, some at a time; those that are there, and what failed.

        One that is there already is taken over. After `SLICE_S` no more are begun, but for the
        first few, so that a job whose turn comes late gets on too: the rest are left to the next
        look, which sees what has happened meanwhile and tells of it.
        """
        until = self.clock() + SLICE_S
        first, rest = pods[:CONCURRENT_WRITES], pods[CONCURRENT_WRITES:]
        outcomes = await asyncio.gather(
            *(self._create(job, pod) for pod in first),
            *(self._create(job, pod, until=until) for pod in rest),
        )
        made = [outcome for outcome in outcomes if isinstance(outcome, dict)]
        return made, [outcome for outcome in outcomes if isinstance(outcome, ApiError)]

    async def mark(self, pods: Iterable[Member]) -> list[ApiError]:
        """Put the mark of a deletion of our own on them."""
        unmarked = (member for member in pods if not member.marked)
        return await _errors_of(self._mark(member) for member in unmarked)

    async def claim(self, pods: Iterable[Member]) -> list[ApiError]:
        """:meth:`mark`, if they still are as they were seen; raises :class:`Again` otherwise.

        What is gone by then was evicted.
        """
        errors = await _errors_of(self._claim(member) for member in pods)
        if any(error.failure is Failure.CONFLICT for error in errors):
            raise Again("pods have changed meanwhile")
        return errors

    async def settle(self, pods: Iterable[Member]) -> None:
        """Note that their success is no news; raises :class:`Again` if that has to wait."""
        errors = await _errors_of(self._settle(member) for member in pods)
        # What is refused for good must not keep the job from all else.
        waiting = [error for error in errors if error.failure is not Failure.REFUSED]
        if waiting:
            raise Again(texts_of(waiting))

    async def delete_pods(self, pods: Iterable[Member]) -> list[ApiError]:
        """Delete them all, some at a time; what failed."""
        return await _errors_of(self._delete(member) for member in pods)

    async def _asked_for(self, job: Job) -> Job:
        try:
            item = await self.api.get(JOBS, job.key)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                raise Again("the job is gone") from error
            raise
        self._unsure.discard(job.uid)
        self._fresh[JOBS].changed(item)
        return self._known(job.as_now(item))

    async def _ask_for_overdue(self, job: Job) -> None:
        for kind in (PODS, POD_GROUPS):
            fresh = self._fresh[kind]
            for item in fresh.overdue(job.uid):
                try:
                    fresh.created(await self.api.get(kind, key_of(item)))
                except ApiError as error:
                    if error.failure is not Failure.NOT_FOUND:
                        raise
                    fresh.gone(key_of(item))

    def _read(self, item: Object) -> Job:
        """Read its spec again only when that has changed."""
        before = self._jobs.get(unstructured.uid(item))
        return self._known(Job(item, self._scheduler) if before is None else before.as_now(item))

    def _known(self, job: Job) -> Job:
        self._jobs[job.uid] = job
        return job

    def _members_of(self, uid: str) -> Sequence[Member]:
        """Read again only what has changed: a large job is looked at for each of its pods."""
        pods = self._fresh[PODS]
        before = self._members.get(uid)
        changes = pods.changes(uid)
        if before is not None and before.changes == changes:
            return before.members
        known = {member.uid: member for member in before.members} if before else {}
        found = members(pods.owned_by(uid), known)
        self._members[uid] = _Read(pods.changes(uid), found)
        return found

    def _group(self, job: Job) -> Object | None:
        for key in group.keys(job):
            found = self._fresh[POD_GROUPS].get(key)
            owner = unstructured.owner_of(found) if found is not None else None
            if found is not None and owner is not None and owner.uid == job.uid:
                return None if unstructured.is_deleting(found) else found
        return None

    async def _patch_job(self, job: Job, patch: Object, subresource: str = "") -> Job:
        try:
            item = await self.api.patch(JOBS, job.key, patch, subresource=subresource)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                raise Again("the job is gone") from error
            self._unsure.add(job.uid)
            if error.failure is Failure.CONFLICT:
                raise Again("the job has changed meanwhile") from error
            raise
        self._fresh[JOBS].changed(item)
        return self._known(job.as_now(item))

    async def _create(
        self, job: Job, make: Callable[[], Object], *, until: float = math.inf
    ) -> Object | ApiError | None:
        """The pod, or why there is none; None: its time is over."""
        async with self._busy:
            if self.clock() > until:
                return None
            pod = make()
            try:
                made = await self.api.create(PODS, pod)
            except ApiError as error:
                if error.failure is not Failure.EXISTS:
                    return error
                return await self._adopt(job, key_of(pod), error)
        self._fresh[PODS].created(made)
        return made

    async def _adopt(self, job: Job, key: Key, error: ApiError) -> Object | ApiError:
        """It is ours if an earlier try made it and nobody has told us yet."""
        try:
            there = await self.api.get(PODS, key)
        except ApiError as unknown:
            return unknown
        owner = unstructured.owner_of(there)
        if owner is None or owner.uid != job.uid:
            return error
        self._fresh[PODS].created(there)
        return there

    async def _mark(self, member: Member) -> ApiError | None:
        """The watch may show late that it is gone; until then it is going, and that is answered."""
        return await self._noted(member, _MARK, only={"uid": member.uid}, late=_MARK)

    async def _claim(self, member: Member) -> ApiError | None:
        """Until the watch shows that it is gone it is going, which is to be answered."""
        seen = {"uid": member.uid, "resourceVersion": unstructured.version(member.item)}
        return await self._noted(member, _MARK, only=seen)

    async def _settle(self, member: Member) -> ApiError | None:
        return await self._noted(member, _SETTLED, only={"uid": member.uid})

    async def _noted(
        self,
        member: Member,
        note: Mapping[str, str],
        *,
        only: Mapping[str, str],
        late: Mapping[str, str] = _NOTHING,
    ) -> ApiError | None:
        """Put annotations on a pod; ``late``: those that it gets though it is gone."""
        async with self._busy:
            try:
                body = {"metadata": {**only, "annotations": dict(note)}}
                made = await self.api.patch(PODS, key_of(member.item), body)
            except ApiError as error:
                if error.failure is not Failure.NOT_FOUND:
                    return error
                self._fresh[PODS].ended(member.item, annotations=late)
                return None
        self._fresh[PODS].changed(made)
        return None

    async def _delete(self, member: Member) -> ApiError | None:
        async with self._busy:
            try:
                await self._gone(PODS, member.item)
            except ApiError as error:
                return error
        return None

    async def _gone(self, kind: Resource, item: Object) -> None:
        try:
            await self.api.delete(kind, key_of(item), uid=unstructured.uid(item))
        except ApiError as error:
            if error.failure is not Failure.NOT_FOUND:
                raise
            self._fresh[kind].ended(item)
        else:
            self._fresh[kind].deleted(item)


async def _errors_of(requests: Iterable[Awaitable[ApiError | None]]) -> list[ApiError]:
    return [error for error in await asyncio.gather(*requests) if error is not None]


def texts_of(errors: Sequence[ApiError]) -> str:
    """The first of them, each once, and how many more there are."""
    texts = sorted({str(error) for error in errors})
    more = len(texts) - _TOLD
    return "; ".join(texts[:_TOLD]) + (f"; and {more} more" if more > 0 else "")
