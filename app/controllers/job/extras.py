"""The objects that a job's plugins want beside its pods.

What is to be made is in ``status.controlledResources`` before it is made, and leaves it after it is
deleted: what is left over by a controller that stopped in between is found again. An object of that
name which is not the job's is left alone, see :class:`InTheWay`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from app.controllers.job.view import Job
from app.controllers.ports import Api, ApiError, Failure
from app.jobplugins.catalogue import JobPlugins
from app.jobplugins.wanted import Create, Leave, Remove, Step, Wanted, Writing
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.unstructured import Object

ReadPlugins = Callable[[Object], JobPlugins]
"""The plugins of a job; raises `PluginError`."""

_PREFIX: Final = "plugin-"
_TRIES: Final = 3


class InTheWay(Exception):
    """Objects have the names that plugins want for theirs, and are not the job's."""

    def __init__(self, found: Sequence[Wanted]) -> None:
        each = " and ".join(f"{wanted.resource.kind} {wanted.key}" for wanted in found)
        one = len(found) == 1
        text = (
            f"{each} {'does' if one else 'do'} not belong to this job and"
            f" {'is' if one else 'are'} left alone; delete {'it' if one else 'them'}, or give the"
            " job another name"
        )
        super().__init__(text)


def is_plugin(resource: str) -> bool:
    """Whether an entry of ``controlledResources`` stands for a plugin."""
    return resource.startswith(_PREFIX)


def are_left(job: Job) -> bool:
    """Whether objects of plugins may be there."""
    return any(map(is_plugin, job.status.get("controlledResources") or {}))


async def ensure(api: Api, plugins: JobPlugins) -> None:
    """Make every object as it is wanted; raises `InTheWay` when another object is there."""
    strange = [wanted for wanted in plugins.objects() if not await _is_made(api, wanted)]
    if strange:
        raise InTheWay(strange)


async def remove(api: Api, plugins: JobPlugins) -> None:
    """Delete those that are the job's own."""
    for wanted in plugins.objects():
        stored = await _stored(api, wanted)
        if stored is None or unstructured.is_deleting(stored) or not wanted.is_ours(stored):
            continue
        await _delete(api, wanted, unstructured.uid(stored))


async def _is_made(api: Api, wanted: Wanted) -> bool:
    """Make the object; returns whether it could be: another object may be there."""
    for _ in range(_TRIES):
        stored = await _stored(api, wanted)
        step = wanted.step(stored)
        if isinstance(step, Leave):
            return False
        if await _is_done(
            api, wanted, step, uid="" if stored is None else unstructured.uid(stored)
        ):
            return True
    raise Again(f"{wanted.resource} {wanted.key} is in the way")


async def _is_done(api: Api, wanted: Wanted, step: Step | None, *, uid: str) -> bool:
    """Take the step; ``uid``: of the object that it was made for."""
    if isinstance(step, Create):
        return await _is_created(api, wanted, step.item)
    if isinstance(step, Writing):
        await api.patch(wanted.resource, wanted.key, {"metadata": {"uid": uid}, **step.patch})
        return True
    if isinstance(step, Remove):
        await _delete(api, wanted, step.uid)
    return step is None


async def _is_created(api: Api, wanted: Wanted, item: Object) -> bool:
    try:
        await api.create(wanted.resource, item)
    except ApiError as error:
        if error.failure is not Failure.EXISTS:
            raise
        return False
    return True


async def _stored(api: Api, wanted: Wanted) -> Object | None:
    try:
        return await api.get(wanted.resource, wanted.key)
    except ApiError as error:
        if error.failure is not Failure.NOT_FOUND:
            raise
        return None


async def _delete(api: Api, wanted: Wanted, uid: str) -> None:
    try:
        await api.delete(wanted.resource, wanted.key, uid=uid)
    except ApiError as error:
        if error.failure is not Failure.NOT_FOUND:
            raise
