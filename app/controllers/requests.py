"""Requests of which some failures are an answer too."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.controllers.ports import Api, ApiError, Failure
from app.wire.kinds import Resource
from app.wire.unstructured import Key

GONE: Final = (Failure.NOT_FOUND, Failure.CONFLICT)
"""The object is gone, or by now another of its name, or another version, is there."""


@contextmanager
def unless(*failures: Failure) -> Iterator[None]:
    """A request that fails like this was not needed; any other failure is raised."""
    try:
        yield
    except ApiError as error:
        if error.failure not in failures:
            raise


async def is_stored(api: Api, resource: Resource, key: Key) -> bool:
    """Whether the object is there now; raises ApiError when that cannot be told."""
    with unless(Failure.NOT_FOUND):
        await api.get(resource, key)
        return True
    return False
