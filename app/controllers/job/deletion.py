"""Deletions of objects of jobs."""

from app.controllers.job.fresh import Fresh
from app.controllers.ports import Api, ApiError, Failure
from app.wire import unstructured
from app.wire.kinds import Resource
from app.wire.unstructured import Object, key_of


async def delete_object(api: Api, kind: Resource, item: Object, *, noted_in: Fresh) -> None:
    """Delete exactly this object; one that is gone already is noted as well."""
    try:
        await api.delete(kind, key_of(item), uid=unstructured.uid(item))
    except ApiError as error:
        if error.failure is not Failure.NOT_FOUND:
            raise
        noted_in.ended(item)
    else:
        noted_in.deleted(item)
