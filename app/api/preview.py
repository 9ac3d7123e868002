"""What a decision would come to that is not made: for people, before they ask for it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Depends, Response

from app.api.application import Router
from app.api.body import BadRequest, json_value, refusals
from app.api.services import ExtenderServices
from app.core.preview import CapabilityPreview
from app.core.victims.units import is_single
from app.model.amounts import Amounts, amounts
from app.model.ids import QueueName
from app.model.resources import Vector
from app.wire.quantity import QuantityError, amount

_REFUSALS = refusals(
    {
        400: "the capability cannot be read; says what to write",
        404: "no queue of that name is known",
        503: "another replica leads; says which",
        "default": "refused; says why",
    }
)
_UNHEEDED = "no plugin of the configuration heeds the capability of queues"


@dataclass(frozen=True, slots=True)
class PodToGo:
    """A pod that would be evicted; ``request`` in base units.

    ``kind``: ``surplus`` is a pod beyond the minimum of its group, ``single`` is of use by itself,
    and a ``gang`` goes whole.
    """

    pod: str
    node: str
    group: str
    queue: str
    kind: str
    priority: int
    request: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """What a queue would give up; amounts by resource in base units.

    ``over`` is what it ``holds`` beyond the ``capability``, ``kept`` what of that stays, as pods
    may not go: ``spared`` counts these by reason, of the ``candidates`` that were looked at.
    ``evicts``: the queue's annotation asks for these evictions. ``problem``: why none would follow.
    """

    queue: str
    evicts: bool
    capability: Mapping[str, int]
    holds: Mapping[str, int]
    over: Mapping[str, int]
    kept: Mapping[str, int]
    pods: tuple[PodToGo, ...]
    candidates: int
    spared: Mapping[str, int]
    problem: str


def preview_router(services: ExtenderServices) -> APIRouter:
    """``/preview/*``."""
    router = Router(dependencies=[Depends(services.access.operator)])
    planning = services.planning

    @router.get(
        "/preview/queue/{name}",
        tags=["preview"],
        responses=_REFUSALS | {200: {"model": QueuePreview}},
    )
    async def queue(name: str, capability: str = "") -> Response:
        """Which pods a queue would give up that holds more than its capability.

        Another ``capability`` may be asked about, as ``cpu=8,memory=32Gi``. 503 where another
        replica decides.
        """
        services.require_lead()
        asked = _capability(capability) if capability else None
        try:
            found = planning.queries.preview_capability(QueueName(name), asked)
        except KeyError:
            raise BadRequest(f"no queue {name} is known", status=404) from None
        return json_value(_told(QueueName(name), found))

    return router


def _capability(text: str) -> Amounts:
    found: dict[str, int] = {}
    for part in text.split(","):
        resource, _, said = (piece.strip() for piece in part.partition("="))
        if resource in found:
            raise BadRequest(f"capability: {resource} is there twice; write cpu=8,memory=32Gi")
        try:
            found[resource] = amount(resource, said)
        except QuantityError as error:
            raise BadRequest(f"capability: {part}: {error}; write cpu=8,memory=32Gi") from None
        if not resource or found[resource] < 0:
            raise BadRequest(f"capability: {part}: write cpu=8,memory=32Gi")
    return amounts(found)


def _told(name: QueueName, preview: CapabilityPreview) -> QueuePreview:
    about, excess, found = preview.snapshot.queues[name], preview.excess, preview.given_up

    def listed(vector: Vector) -> dict[str, int]:
        return dict(preview.snapshot.axis.amounts(vector))

    spared: Counter[str] = Counter()
    for each in found.spared if found is not None else ():
        spared[each.reason] += each.pods
    return QueuePreview(
        queue=name,
        evicts=about.evicts_over_capability,
        capability=dict(about.capability),
        holds={} if excess is None else listed(excess.held),
        over={} if excess is None else listed(excess.over),
        kept={} if found is None else listed(found.kept),
        pods=_pods_to_go(preview),
        candidates=0 if found is None else found.candidates,
        spared=spared,
        problem=_UNHEEDED if excess is None else "",
    )


def _pods_to_go(preview: CapabilityPreview) -> tuple[PodToGo, ...]:
    if preview.given_up is None:
        return ()
    snapshot = preview.snapshot
    running = snapshot.running
    sizes = Counter(running.gangs)
    found: list[PodToGo] = []
    for unit in preview.given_up.units:
        gang = snapshot.gangs[unit.gang]
        single = is_single(gang, size=sizes[unit.gang])
        kind = unit.kind(single=single)
        for at in unit.pods:
            pod, request = running.pods[at], dict(snapshot.axis.amounts(running.requests[at]))
            priority = int(running.priorities[at])
            names = (pod.key, pod.node, gang.key, gang.queue)
            found.append(PodToGo(*names, kind, priority, request))
    return tuple(found)
