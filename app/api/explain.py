"""Why somebody waits, and where room is kept: for people, and for the job controller."""

from fastapi import APIRouter, Response

from app.api.body import BadRequest, json_value
from app.api.services import ExtenderServices
from app.model.ids import GroupKey, group_key
from app.service.explanations import explain_group, slots_to_pin


def explain_router(services: ExtenderServices) -> APIRouter:
    """``/explain/*`` and ``/plan/*``."""
    router = APIRouter()
    cache, planning = services.cache, services.planning

    @router.get("/explain/{namespace}/{name}", tags=["explain"])
    async def explain(namespace: str, name: str) -> Response:
        """Why a PodGroup or a pod waits, with numbers."""
        key = _key_of(services, namespace, name)
        story = explain_group(cache, planning, key)
        if story is None:
            raise BadRequest(f"no PodGroup or pod {namespace}/{name} is known", status=404)
        return json_value(story)

    @router.get("/plan/{namespace}/{podgroup}", tags=["plan"])
    async def slots(namespace: str, podgroup: str) -> Response:
        """Where members that do not exist yet may be created, pinned: role -> nodes.

        Not of roles whose pods kube-scheduler would refuse when pinned, by a rule of their topology
        spread or as they must be near members that come with them: those come by the gate. 503
        where another replica decides.
        """
        if not planning.activity.active:
            raise BadRequest("another replica leads, ask that one", status=503)
        group = cache.groups.get(group_key(namespace, podgroup))
        if group is None:
            raise BadRequest(f"no PodGroup {namespace}/{podgroup} is known", status=404)
        body = {
            "phase": group.phase.value,
            "generation": planning.log.generation,
            "slots": slots_to_pin(cache, group),
        }
        return json_value(body)

    return router


def _key_of(services: ExtenderServices, namespace: str, name: str) -> GroupKey:
    key = group_key(namespace, name)
    if key in services.cache.groups:
        return key
    for member in services.cache.members.values():
        if member.pod.namespace == namespace and member.pod.name == name:
            return member.group
    return key
