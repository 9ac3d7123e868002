"""What would start now: the largest gang of equal pods, by queue and request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import BadRequest, json_for, refusals
from app.api.imagined import imagined
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.core.texts import describe
from app.model.ids import QueueName
from app.service.cycle.fitting import MOST, Largest, largest
from app.service.cycle.simulations import NewGroup
from app.wire.errors import DecodeError
from app.wire.kinds import JOBS
from app.wire.quantity import QuantityError, amount
from app.wire.unstructured import Object

_REFUSALS = refusals(
    {
        400: "the request cannot be read; says what to write",
        404: "a queue, a namespace or a resource is not known",
        429: "too many questions wait",
        503: "another replica leads; says which",
        "default": "refused; says why",
    }
)
_WRITE = "write request=cpu=4,memory=8Gi"


@dataclass(frozen=True, slots=True)
class Fits:
    """``members`` pods of that ``request`` start together now, on ``nodes``: node -> pods.

    ``text`` tells why one more does not; empty: as many were tried as are ever tried.
    """

    queue: str
    request: Mapping[str, str]
    members: int
    nodes: Mapping[str, int]
    text: str


def fits_router(services: ExtenderServices) -> APIRouter:
    """``/fits``."""
    router = Router()
    cache, planning = services.cache, services.planning

    @router.get("/fits", tags=["ask"], responses=_REFUSALS | {200: {"model": Fits}})
    async def fits(
        asking: Request, request: str, queue: str = "default", namespace: str = "default"
    ) -> Response:
        """The largest gang of equal pods that would start now. Nothing is decided.

        ``request`` is that of one pod: ``cpu=4,memory=8Gi``. 503 where another replica decides.
        """
        viewer = await services.access.tenant(asking, namespace)
        services.require_lead()
        if QueueName(queue) not in cache.queues:
            raise BadRequest(f"no queue {queue} is known", status=404)
        asked = _request(request)

        async def gang_of(size: int) -> NewGroup:
            job = _job(asked, queue=queue, size=size)
            now = planning.simulations.clock()
            steps = imagined([job], cache, namespace=namespace, now=now)
            [made] = (await planning.simulations.drive(steps)).groups
            return made

        try:
            with refusing(), services.questions.of(viewer):
                found = await largest(planning.simulations, gang_of, most=_at_most(services, asked))
        except DecodeError as error:
            raise BadRequest(f"request: {error}") from None
        return json_for(viewer, _told(found, queue, asked), namespaces=cache.namespaces_heard_of)

    return router


def _told(found: Largest, queue: str, asked: Mapping[str, str]) -> Fits:
    places = () if found.fate is None else found.fate.places
    nodes = Counter(str(place.node) for place in places)
    text = "" if found.refusal is None else describe(found.refusal)
    return Fits(queue, asked, found.members, dict(sorted(nodes.items())), text)


def _request(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        resource, equals, said = (piece.strip() for piece in part.partition("="))
        if not (resource and equals and said):
            raise BadRequest(f"request: {part}: {_WRITE}")
        try:
            if amount(resource, said) <= 0:
                raise BadRequest(f"request: {part}: {_WRITE}")
        except QuantityError as error:
            raise BadRequest(f"request: {part}: {error}; {_WRITE}") from None
        if resource in found:
            raise BadRequest(f"request: {resource} is there twice; {_WRITE}")
        found[resource] = said
    return found


def _at_most(services: ExtenderServices, asked: Mapping[str, str]) -> int:
    """As many as all nodes together have room for."""
    usage = services.cache.node_usage
    free: Counter[str] = Counter()
    for name in usage.nodes:
        free.update({key: max(value, 0) for key, value in usage.axis.amounts(usage.idle(name))})
    return min([free[name] // amount(name, said) for name, said in asked.items()] + [MOST]) + 1


def _job(asked: Mapping[str, str], *, queue: str, size: int) -> Object:
    limits = {name: said for name, said in asked.items() if "/" in name}  # these need both
    resources = {"requests": asked, "limits": limits}
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": resources}
    pod = {"containers": [container], "restartPolicy": "Never"}
    task = {"name": "member", "replicas": size, "template": {"spec": pod}}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": "fits"},
        "spec": {"minAvailable": size, "queue": queue, "tasks": [task]},
    }
