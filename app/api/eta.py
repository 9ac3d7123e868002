"""When a group that waits will start, by what is known of run times."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import BadRequest, json_for, refusals
from app.api.explain import key_of
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.cache.gangs.groups import Group
from app.cache.gangs.trail import job_of
from app.model.viewer import Viewer
from app.service.telling.etas import EtaTeller, GroupEta

_REFUSALS = refusals(
    {
        404: "nothing of that name is known",
        429: "too many questions wait",
        503: "another replica leads; says which",
        "default": "refused; says why",
    }
)


@dataclass(frozen=True, slots=True)
class GroupEtas:
    """The ETAs of groups that wait."""

    etas: tuple[GroupEta, ...]


def eta_router(services: ExtenderServices) -> APIRouter:
    """``/eta`` and below."""
    router = Router()
    cache, etas = services.cache, services.planning.etas
    teller = EtaTeller(cache, etas, services.reasons)

    @router.get("/eta", tags=["ask"], responses=_REFUSALS | {200: {"model": GroupEtas}})
    async def of_all(request: Request) -> Response:
        """When each group that waits starts. 503 where another replica decides."""
        viewer = await services.access.operator(request)
        services.require_lead()
        return await _many(viewer, namespace=None)

    @router.get("/eta/{namespace}", tags=["ask"], responses=_REFUSALS | {200: {"model": GroupEtas}})
    async def of_namespace(request: Request, namespace: str) -> Response:
        """When each group of a namespace that waits starts. 503 where another replica decides."""
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        return await _many(viewer, namespace=namespace)

    @router.get(
        "/eta/{namespace}/{name}", tags=["ask"], responses=_REFUSALS | {200: {"model": GroupEta}}
    )
    async def of_one(request: Request, namespace: str, name: str) -> Response:
        """When a PodGroup, a job or a pod starts. 503 where another replica decides.

        Nothing is decided by it, and nothing is written.
        """
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        group = _group(services, namespace, name)
        with refusing(), services.questions.of(viewer):
            answer = await etas.of(group.key) if group.key in cache.registry.pending else None
        told = teller.tell(group, answer, own=viewer.namespace)
        return json_for(viewer, told, namespaces=cache.namespaces_heard_of)

    async def _many(viewer: Viewer, *, namespace: str | None) -> Response:
        with refusing(), services.questions.of(viewer):
            found = await etas.all()
        told = tuple(
            teller.tell(group, answer, own=viewer.namespace)
            for key, answer in found.items()
            if (group := cache.groups.get(key)) is not None and namespace in (None, group.namespace)
        )
        return json_for(viewer, GroupEtas(told), namespaces=cache.namespaces_heard_of)

    return router


def _group(services: ExtenderServices, namespace: str, name: str) -> Group:
    groups = services.cache.groups
    found = groups.get(key_of(services, namespace, name))
    if found is None:
        there = services.cache.registry.in_namespace(namespace).values()
        found = next((group for group in there if job_of(group) == name), None)
    if found is None:
        raise BadRequest(f"no PodGroup, job or pod {namespace}/{name} is known", status=404)
    return found
