"""Writes of the pods of jobs, many at a time."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from app.controllers.job.deletion import delete_object
from app.controllers.job.fresh import Fresh
from app.controllers.job.members import Member
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import OUT_OF_SYNC, SETTLED
from app.controllers.ports import Api, ApiError, Clock, Failure
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import PODS
from app.wire.unstructured import Key, Object, key_of

CONCURRENT_WRITES: Final = 32
SLICE_S: Final = 1.0
"""How long pods of one job are made before its status is written and it is looked at again."""
_TOLD: Final = 3
_MARK: Final[Mapping[str, str]] = MappingProxyType({OUT_OF_SYNC: "true"})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_SETTLED: Final[Mapping[str, str]] = MappingProxyType({SETTLED: "true"})


class Created(NamedTuple):
    """Pods as they are there, what failed, and pods of an earlier job that are in the way."""

    pods: Sequence[Object]
    errors: Sequence[ApiError]
    in_the_way: Sequence[Key]


class PodWriter:
    """Creates, marks and deletes pods, and notes what the API server answers."""

    def __init__(self, api: Api, fresh: Fresh, *, clock: Clock) -> None:
        self._api = api
        self._fresh = fresh
        self._clock = clock
        self._busy = asyncio.Semaphore(CONCURRENT_WRITES)

    async def create(self, job: Job, pods: Sequence[Callable[[], Object]]) -> Created:
        """Make and create pods, some at a time.

        One that is there already is taken over. After `SLICE_S` no more are begun, but for the
        first few, so that a job whose turn comes late gets on too: the rest are left to the next
        look, which sees what has happened meanwhile and tells of it.
        """
        until = self._clock() + SLICE_S
        first, rest = pods[:CONCURRENT_WRITES], pods[CONCURRENT_WRITES:]
        outcomes = await asyncio.gather(
            *(self._create(job, pod) for pod in first),
            *(self._create(job, pod, until=until) for pod in rest),
        )
        return Created(
            [outcome for outcome in outcomes if isinstance(outcome, dict)],
            [outcome for outcome in outcomes if isinstance(outcome, ApiError)],
            [outcome for outcome in outcomes if isinstance(outcome, Key)],
        )

    async def mark(self, pods: Iterable[Member]) -> list[ApiError]:
        """Put the mark of a deletion of our own on the pods."""
        unmarked = (member for member in pods if not member.marked)
        return await _errors_of(self._mark(member) for member in unmarked)

    async def claim(self, pods: Iterable[Member]) -> list[ApiError]:
        """:meth:`mark` the pods, if they are as they were seen; raises :class:`Again` otherwise.

        What is gone by then was evicted.
        """
        errors = await _errors_of(self._claim(member) for member in pods)
        if any(error.failure is Failure.CONFLICT for error in errors):
            raise Again("pods have changed meanwhile")
        return errors

    async def settle(self, pods: Iterable[Member]) -> None:
        """Note that the pods' success is no news; raises :class:`Again` if that has to wait."""
        errors = await _errors_of(self._settle(member) for member in pods)
        # What is refused for good must not keep the job from all else.
        waiting = [error for error in errors if error.failure is not Failure.REFUSED]
        if waiting:
            raise Again(texts_of(waiting))

    async def delete(self, pods: Iterable[Member]) -> list[ApiError]:
        """Delete the pods, some at a time; returns what failed."""
        return await _errors_of(self._delete(member) for member in pods)

    async def _create(
        self, job: Job, make: Callable[[], Object], *, until: float = math.inf
    ) -> Object | ApiError | Key | None:
        """The pod, or why there is none: an earlier job's has that key; None: its time is over."""
        async with self._busy:
            if self._clock() > until:
                return None
            pod = make()
            try:
                made = await self._api.create(PODS, pod)
            except ApiError as error:
                if error.failure is not Failure.EXISTS:
                    return error
                return await self._adopt(job, key_of(pod), error)
        self._fresh.created(made)
        return made

    async def _adopt(self, job: Job, key: Key, error: ApiError) -> Object | ApiError | Key:
        """The pod there, which is ours if an earlier try made it and got no answer.

        An earlier job's is gone soon.
        """
        try:
            there = await self._api.get(PODS, key)
        except ApiError as unknown:
            return unknown
        owner = unstructured.owner_of(there)
        if owner is None or owner.uid != job.uid:
            return key if job.is_left_over(there) else error
        self._fresh.created(there)
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
                made = await self._api.patch(PODS, key_of(member.item), body)
            except ApiError as error:
                if error.failure is not Failure.NOT_FOUND:
                    return error
                self._fresh.ended(member.item, annotations=late)
                return None
        self._fresh.changed(made)
        return None

    async def _delete(self, member: Member) -> ApiError | None:
        async with self._busy:
            try:
                await delete_object(self._api, PODS, member.item, noted_in=self._fresh)
            except ApiError as error:
                return error
        return None


async def _errors_of(requests: Iterable[Awaitable[ApiError | None]]) -> list[ApiError]:
    return [error for error in await asyncio.gather(*requests) if error is not None]


def texts_of(errors: Sequence[ApiError]) -> str:
    """The first of the errors' texts, each once, and how many more there are."""
    return first_of(sorted({str(error) for error in errors}), apart="; ")


def first_of(texts: Sequence[str], *, apart: str = ", ") -> str:
    """The first of ``texts``, and how many more there are."""
    more = len(texts) - _TOLD
    return apart.join(texts[:_TOLD]) + (f"{apart}and {more} more" if more > 0 else "")
