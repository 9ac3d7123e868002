"""The objects that a job's plugins want beside its pods.

What is to be made is in ``status.controlledResources`` before it is made, and leaves it after it is
deleted: what is left over by whoever stopped in between is found again.
"""

from collections.abc import Callable
from typing import Final

from app.controllers.job.view import Job
from app.controllers.jobplugins.catalogue import JobPlugins
from app.controllers.jobplugins.wanted import Change, Create, Remove, Wanted
from app.controllers.ports import Api, ApiError, Failure
from app.service.workqueue import Again
from app.wire import unstructured
from app.wire.unstructured import Object

ReadPlugins = Callable[[Object], JobPlugins]
"""The plugins of a job; raises `PluginError`."""

_PREFIX: Final = "plugin-"
_TRIES: Final = 3


def is_plugin(resource: str) -> bool:
    """Whether an entry of ``controlledResources`` stands for a plugin."""
    return resource.startswith(_PREFIX)


def are_left(job: Job) -> bool:
    """Whether objects of plugins may be there."""
    return any(map(is_plugin, job.status.get("controlledResources") or {}))


async def ensure(api: Api, plugins: JobPlugins) -> None:
    """Make every object as it is wanted."""
    for wanted in plugins.objects():
        for _ in range(_TRIES):
            if await _is_done(api, wanted):
                break
        else:
            raise Again(f"{wanted.resource} {wanted.key} is in the way")


async def remove(api: Api, plugins: JobPlugins) -> None:
    """Delete those that are the job's own."""
    for wanted in plugins.objects():
        stored = await _stored(api, wanted)
        if stored is None or unstructured.is_deleting(stored) or not wanted.is_ours(stored):
            continue
        await _delete(api, wanted, unstructured.uid(stored))


async def _is_done(api: Api, wanted: Wanted) -> bool:
    step = wanted.step(await _stored(api, wanted))
    if isinstance(step, Create):
        return await _is_created(api, wanted, step.item)
    if isinstance(step, Change):
        await api.patch(wanted.resource, wanted.key, step.patch)
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
