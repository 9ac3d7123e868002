"""Tells of each JobTemplate which jobs were made from it."""

from collections.abc import Iterator, Mapping
from typing import Final

from app.controllers.jobflow.steps import BY_TEMPLATE
from app.controllers.ports import Api, ApiError, Failure
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.wire.kinds import JOB_TEMPLATES, JOBS, Resource
from app.wire.unstructured import Key, Object, annotations, key_of, labels, name, namespace, status


def template_of(job: Object) -> str:
    """``namespace.name`` of the JobTemplate that a job was made from; empty: of none."""
    return str(labels(job).get(BY_TEMPLATE) or annotations(job).get(BY_TEMPLATE) or "")


INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    JOB_TEMPLATES: {},
    JOBS: {"template": template_of},
}
"""How this controller finds objects in the stores."""


class JobTemplateController:
    """See the module."""

    name = "jobtemplate-controller"
    kinds = (JOB_TEMPLATES, JOBS)

    def __init__(self, stores: Mapping[Resource, Store], *, api: Api) -> None:
        self._stores = stores
        self._api = api

    def keys(self, change: ObjectChange) -> Iterator[Key]:
        """The template; jobs matter when they come and go."""
        if change.resource is JOB_TEMPLATES:
            yield key_of(change.item)
        elif change.old is None or change.new is None:
            origin, inside = template_of(change.item), namespace(change.item)
            if origin.startswith(f"{inside}."):
                yield Key(inside, origin.removeprefix(f"{inside}."))

    async def reconcile(self, key: Key) -> None:
        """Write the list if it has changed."""
        template = self._stores[JOB_TEMPLATES].get(key)
        if template is None:
            return
        jobs = self._stores[JOBS].by("template", f"{key.namespace}.{key.name}")
        names = sorted(name(job) for job in jobs if namespace(job) == key.namespace)
        if names == (status(template).get("jobDependsOnList") or []):
            return
        body = {"status": {"jobDependsOnList": names}}
        try:
            await self._api.patch(JOB_TEMPLATES, key, body, subresource="status")
        except ApiError as error:
            if error.failure is not Failure.NOT_FOUND:
                raise
