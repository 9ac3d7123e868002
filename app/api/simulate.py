"""What if: a question about a cluster that is not, answered by the planner; nothing is written."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import MAX_QUESTION, BadRequest, json_for, read_body, refusals
from app.api.imagined import Imagining, imagined
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.cache.cluster import ClusterCache
from app.core.conf_error import ConfError
from app.core.simulation import Fate, Outcome, Simulated
from app.core.texts import describe
from app.kit.turns import Turns
from app.model.eviction import VictimPod
from app.model.ids import GroupKey, NodeName
from app.model.reason import Refusal
from app.model.viewer import Viewer
from app.service.configuration import policies_of
from app.service.cycle.simulations import MOST_WAITING, Answer, Question
from app.service.telling.etas import EtaTeller, GroupEta
from app.wire.errors import DecodeError
from app.wire.go_yaml import MOST_VALUES
from app.wire.kubernetes_yaml import NotObjects, documents
from app.wire.queue_changes import UnknownQueue, changed_queues

_REFUSALS = refusals(
    {
        400: "the question cannot be read, or admission would refuse an object; says which",
        404: "a queue, a node or a namespace is not known",
        409: "what is asked about is there already",
        429: "too many questions wait",
        503: "another replica leads; says which",
        "default": "refused; says why",
    }
)
MOST_YAML: Final = 64_000
"""Characters; a client reads a larger text and sends ``manifests``.

A text of brackets and signs takes seconds to read: that is done beside the event loop.
"""
_WORST: Final = (Outcome.RUNS, Outcome.EVICTS, Outcome.WAITS, Outcome.NEVER)


class SimulationQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """``manifests``, and those of the text ``yaml``, come now; in ``namespace`` if they name none.

    ``set`` changes queues: ``queue/a.capability.cpu`` -> ``8``. ``drain`` names nodes that are
    gone, ``conf`` is the text of another configuration of the scheduler.
    """

    manifests: list[Any] = []
    yaml: str = ""
    namespace: str = "default"
    set: dict[str, str] = {}
    drain: list[str] = []
    conf: str = ""


@dataclass(frozen=True, slots=True)
class PlaceToBe:
    """Where a pod would run; ``pod`` of a member that does not exist yet names its role only."""

    pod: str
    role: str
    node: str


@dataclass(frozen=True, slots=True)
class VictimToBe:
    """A pod that would be evicted, by the rule of a plugin."""

    pod: str
    node: str
    group: str
    queue: str
    rule: str


@dataclass(frozen=True, slots=True)
class GroupFate:
    """What would become of a group; ``before``: what becomes of it without the change, or empty.

    ``text`` is the ``reason`` in a sentence; of a group that runs it is about the members beyond
    its minimum. ``action`` is the one that would evict the ``victims``. ``eta`` tells of a group
    that is asked about, or loses pods, and would wait, when it would start.
    """

    group: str
    queue: str
    outcome: Outcome
    before: str
    minimum: int
    places: tuple[PlaceToBe, ...]
    reason: Refusal | None
    text: str
    action: str
    victims: tuple[VictimToBe, ...]
    eta: GroupEta | None = None


@dataclass(frozen=True, slots=True)
class Simulation:
    """``outcome`` is the worst of ``asked`` and ``displaced``; ``others`` fare otherwise than now.

    ``displaced`` are groups that lose pods with the nodes that are gone. ``given_up`` are pods that
    would be evicted for no group. ``warnings`` are those of admission.
    """

    outcome: Outcome
    asked: tuple[GroupFate, ...]
    displaced: tuple[GroupFate, ...]
    others: tuple[GroupFate, ...]
    given_up: tuple[VictimToBe, ...]
    warnings: tuple[str, ...]


_read = msgspec.json.Decoder(SimulationQuestion).decode


def simulate_router(services: ExtenderServices) -> APIRouter:
    """``/simulate``."""
    router = Router()
    turns = Turns("questions", most=MOST_WAITING)

    @router.post("/simulate", tags=["ask"], responses=_REFUSALS | {200: {"model": Simulation}})
    async def simulate(request: Request) -> Response:
        """What would happen if these objects came, queues were otherwise, or nodes were gone.

        A tenant tries out objects of its namespace only. 503 where another replica decides.
        """
        await services.access.identified(request)
        services.require_lead()
        body = await read_body(request, most=MAX_QUESTION)
        try:
            said = _read(body)
        except RecursionError:
            raise BadRequest("the question cannot be read: nested too deeply") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(f"the question cannot be read: {error}") from None
        viewer = await services.access.tenant(request, said.namespace)
        with refusing(), services.questions.of(viewer):
            async with turns.turn():
                told = await _answered(services, said, viewer)
        return json_for(viewer, told, namespaces=services.cache.namespaces_heard_of)

    return router


async def _answered(
    services: ExtenderServices, said: SimulationQuestion, viewer: Viewer
) -> Simulation:
    """The answer; what is imagined takes room: that of one question is made at a time."""
    cache, simulations = services.cache, services.planning.simulations
    if said.yaml:
        said.manifests += await asyncio.to_thread(_objects_of, said.yaml)
    if viewer.namespace is not None:
        _require_own(said, viewer.namespace)
    steps = imagined(said.manifests, cache, namespace=said.namespace, now=simulations.clock())
    try:
        found = await simulations.drive(steps)
    except DecodeError as error:
        raise BadRequest(f"a manifest cannot be read: {error}") from None
    except RecursionError:
        raise BadRequest("a manifest is nested too deeply") from None
    etas = services.planning.etas
    answer, starts = await etas.simulate(_question(said, found, cache))
    teller = EtaTeller(cache, etas, services.reasons)

    def eta(fate: Fate) -> GroupEta | None:
        if fate.outcome is not Outcome.WAITS:
            return None
        group, known = answer.groups[fate.gang.key], starts.get(fate.gang.key)
        return teller.foretell(group, known, fate.refusal, own=viewer.namespace)

    told = _told(answer, found.warnings, eta)
    return told if viewer.namespace is None else _of_tenant(told, viewer.namespace)


def _objects_of(text: str) -> list[Any]:
    if len(text) > MOST_YAML:
        raise BadRequest(f"yaml: a text of more than {MOST_YAML} characters", status=413)
    try:
        return [found for _, found in documents(text, most=MOST_VALUES)]
    except NotObjects as error:
        raise BadRequest(f"yaml: {error}") from None


def _require_own(said: SimulationQuestion, namespace: str) -> None:
    """A tenant asks about its own objects, in the cluster as it is."""
    if said.set or said.drain or said.conf:
        raise BadRequest("set, drain and conf are for operators (get debug.pumice.sh)", status=403)
    for each in said.manifests:
        metadata = each.get("metadata") if isinstance(each, Mapping) else None
        named = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        if named not in (None, "", namespace):
            why = f"a manifest is of namespace {named}, and you asked as of {namespace}"
            raise BadRequest(why, status=403)


def _of_tenant(told: Simulation, namespace: str) -> Simulation:
    """Without what becomes of groups of other namespaces."""
    mine = tuple(each for each in told.others if each.group.startswith(f"{namespace}/"))
    return replace(told, others=mine)


def _question(said: SimulationQuestion, found: Imagining, cache: ClusterCache) -> Question:
    try:
        queues = changed_queues(said.set, cache.queues.get)
    except UnknownQueue as error:
        raise BadRequest(str(error), status=404) from None
    except ValueError as error:
        raise BadRequest(str(error)) from None
    unknown = [name for name in said.drain if name not in cache.node_usage.nodes]
    if unknown:
        raise BadRequest(f"drain: no node {unknown[0]} is known", status=404)
    try:
        policies = policies_of(said.conf) if said.conf else None
    except ConfError as error:
        raise BadRequest(f"conf: {error}") from None
    gone = frozenset(map(NodeName, said.drain))
    return Question(found.groups, queues, gone, policies)


def _told(
    answer: Answer, warnings: Iterable[str], eta: Callable[[Fate], GroupEta | None]
) -> Simulation:
    before, after = answer.before.fates, answer.after

    def fates(keys: Iterable[GroupKey]) -> tuple[GroupFate, ...]:
        found = (after.fates[key] for key in keys if key in after.fates)
        return tuple(_fate(fate, before, eta=eta(fate)) for fate in found)

    asked, displaced = fates(answer.asked), fates(answer.displaced)
    told = {*answer.asked, *answer.displaced}
    others = tuple(
        _fate(fate, before)
        for key, fate in after.fates.items()
        if key not in told and (key not in before or before[key].outcome is not fate.outcome)
    )
    outcomes = [each.outcome for each in (*asked, *displaced)]
    return Simulation(
        outcome=max(outcomes, key=_WORST.index, default=Outcome.RUNS),
        asked=asked,
        displaced=displaced,
        others=others,
        given_up=_given_up(after),
        warnings=tuple(warnings),
    )


def _given_up(after: Simulated) -> tuple[VictimToBe, ...]:
    return tuple(_victim(pod) for plan in after.evictions for pod in plan.victims)


def _fate(fate: Fate, before: Mapping[GroupKey, Fate], *, eta: GroupEta | None = None) -> GroupFate:
    gang, eviction = fate.gang, fate.eviction
    known = before.get(gang.key)
    return GroupFate(
        group=gang.called,
        queue=gang.queue,
        outcome=fate.outcome,
        before=known.outcome.value if known is not None else "",
        minimum=gang.min_member,
        places=tuple(
            PlaceToBe(
                f"{gang.namespace}/{place.task.name}" if place.task.uid else "",
                place.task.role,
                place.node,
            )
            for place in fate.places
        ),
        reason=fate.refusal,
        text=describe(fate.refusal) if fate.refusal is not None else "",
        action=eviction.action.value if eviction is not None else "",
        victims=tuple(map(_victim, eviction.victims)) if eviction is not None else (),
        eta=eta,
    )


def _victim(pod: VictimPod) -> VictimToBe:
    return VictimToBe(f"{pod.namespace}/{pod.name}", pod.node, pod.gang, pod.queue, pod.rule)
