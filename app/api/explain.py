"""Why pods and groups wait, and where room is kept: for people, and for the job controller."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import BadRequest, json_for, json_value, refusals
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.core.ordering import LinePosition
from app.model.ids import GroupKey, group_key
from app.model.workload import GroupPhase
from app.service.cycle.advising import Advice, advise
from app.service.cycle.beyond_minimum import bearable_beyond
from app.service.telling.evicting import of_tenant
from app.service.telling.explanations import Story, explain_group, slots_to_pin

_REFUSALS = refusals(
    {
        404: "nothing of that name is known",
        503: "another replica leads; says which",
        "default": "refused; says why",
    }
)


@dataclass(frozen=True, slots=True)
class Slots:
    """``slots``: role -> nodes, of the planning cycle ``generation``.

    ``bearable``: role -> how many more members the queue can hold now, where a ResourceQuota counts
    members that wait; null where none does.
    """

    phase: GroupPhase
    generation: int
    slots: Mapping[str, tuple[str, ...]]
    bearable: Mapping[str, int] | None


def explain_router(services: ExtenderServices) -> APIRouter:
    """``/explain/*`` and ``/plan/*``."""
    router = Router()
    cache, planning = services.cache, services.planning

    @router.get(
        "/explain/{namespace}/{name}",
        tags=["explain"],
        responses=_REFUSALS | {200: {"model": Story}},
    )
    async def explain(request: Request, namespace: str, name: str) -> Response:
        """Why a PodGroup or a pod waits, with numbers. 503 where another replica decides."""
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        async with services.questions.in_turn(viewer):
            key = key_of(services, namespace, name)
            story = explain_group(cache, services.reasons, key, queries=planning.queries)
            if story is None:
                raise BadRequest(f"no PodGroup or pod {namespace}/{name} is known", status=404)
            if viewer.namespace is not None:
                story = _of_tenant(story, viewer.namespace)
            return json_for(viewer, story, namespaces=cache.namespaces_heard_of)

    @router.get(
        "/plan/{namespace}/{podgroup}",
        tags=["plan"],
        responses=_REFUSALS | {200: {"model": Slots}},
    )
    async def slots(namespace: str, podgroup: str) -> Response:
        """Where members that do not exist yet may be created, pinned: role -> nodes.

        Not of roles whose pods kube-scheduler would refuse when pinned, by a rule of their topology
        spread or as they must be near members that come with them: those come by the gate. 503
        where another replica decides.
        """
        services.require_lead()
        group = cache.groups.get(group_key(namespace, podgroup))
        if group is None:
            raise BadRequest(f"no PodGroup {namespace}/{podgroup} is known", status=404)
        bearable = bearable_beyond(cache, planning.queries, group)
        slots = slots_to_pin(cache, group)
        return json_value(Slots(group.phase, planning.log.generation, slots, bearable))

    _tell_more(router, services)
    return router


def _tell_more(router: APIRouter, services: ExtenderServices) -> None:
    cache, planning = services.cache, services.planning

    @router.get(
        "/line/{namespace}/{name}",
        tags=["explain"],
        responses=_REFUSALS | {200: {"model": LinePosition}},
    )
    async def line(request: Request, namespace: str, name: str) -> Response:
        """Where a group that waits stands in the line of its queue, and what orders it.

        503 where another replica decides.
        """
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        async with services.questions.in_turn(viewer):
            key = key_of(services, namespace, name)
            gang = cache.registry.view(key) if key in cache.registry.pending else None
            if gang is None:
                known = key in cache.groups
                why = "does not wait, or is set aside" if known else "is not known"
                raise BadRequest(f"{namespace}/{name} {why}", status=404)
            position = planning.queries.line_position(gang)
            return json_for(viewer, position, namespaces=cache.namespaces_heard_of)

    @router.get(
        "/advice/{namespace}/{name}",
        tags=["explain"],
        responses=_REFUSALS | refusals({429: "too many questions wait"}) | {200: {"model": Advice}},
    )
    async def advice(request: Request, namespace: str, name: str) -> Response:
        """Single changes that would let a PodGroup or a pod run now, each tried by the planner.

        Nothing is changed. 503 where another replica decides.
        """
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        key = key_of(services, namespace, name)
        group = cache.groups.get(key)
        if group is None:
            raise BadRequest(f"no PodGroup or pod {namespace}/{name} is known", status=404)
        refusal = services.reasons.of(group)
        found = None
        if refusal is not None:
            with refusing(), services.questions.of(viewer):
                found = await advise(planning.simulations, key, refusal)
        told = found or Advice((), tried=0, complete=True)
        return json_for(viewer, told, namespaces=cache.namespaces_heard_of)


def _of_tenant(story: Story, namespace: str) -> Story:
    """The story with its eviction plans as the readers of one namespace are told them."""
    evictions = tuple(of_tenant(each, namespace) for each in story.evictions)
    return replace(story, evictions=evictions)


def key_of(services: ExtenderServices, namespace: str, name: str) -> GroupKey:
    """The key of the PodGroup, or of the group of the pod, of that name; it may not be known."""
    key = group_key(namespace, name)
    if key in services.cache.groups:
        return key
    found = services.cache.registry.of_pod(namespace, name)
    return key if found is None else found.key
