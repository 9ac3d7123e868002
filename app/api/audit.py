"""What was decided, also about objects that are gone; read from files, in a thread."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from app.api.application import Router
from app.api.body import BadRequest, json_value, refusals
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.model.decision import AuditQuestion, Coverage, DecisionKind, KeptDecision
from app.model.viewer import Viewer
from app.service.ports import AuditTrail
from app.service.telling.hiding import hidden_in

_MOST: Final = 1000
_LINES_AT_ONCE: Final = 500
_TOLD_AT_ONCE: Final = 20
"""Decisions that are put in words between two turns of the event loop: about a millisecond."""
NDJSON: Final = "application/x-ndjson"
_REFUSALS = refusals(
    {
        400: "the question cannot be read; says why",
        429: "too many questions wait",
        503: "to read the answer takes too long",
        "default": "refused",
    }
)
_encode = msgspec.json.Encoder(enc_hook=str).encode


@dataclass(frozen=True, slots=True)
class Trail:
    """``decisions`` in the order in which they were made, and what the kept ones are of."""

    decisions: tuple[Mapping[str, Any], ...]
    coverage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WhyEvicted:
    """``decisions`` about the eviction of a pod, the first first, of its latest plan.

    ``certificate`` is the proof that ``pumice check-eviction`` verifies, null: there is none.
    """

    pod: str
    decisions: tuple[Mapping[str, Any], ...]
    certificate: Any
    coverage: Mapping[str, Any]


def audit_router(services: ExtenderServices) -> APIRouter:
    """``/audit`` and ``/audit/evictions/*``."""
    router = Router()
    trail = services.trail

    @router.get("/audit", tags=["ask"], responses=_REFUSALS | {200: {"model": Trail}})
    async def audit(  # noqa: PLR0917 - one parameter per parameter of the query, all given by name
        request: Request,
        job: str = "",
        pod: str = "",
        queue: str = "",
        kind: str = "",
        since: str = "",
        until: str = "",
        before: str = "",
        limit: str = "100",
        form: str = "json",
    ) -> Response:
        """The latest ``limit`` decisions: of a job or a pod (``namespace/name``), a queue, a kind.

        ``since`` and ``until`` are seconds since the epoch; ``before`` is the number of a decision,
        for the page that comes before. ``form=ndjson``: all of them, one a line, the oldest first.
        A tenant asks about a job or a pod of its namespace.
        """
        await services.access.identified(request)
        question = AuditQuestion(
            job=_named("job", job),
            pod=_named("pod", pod),
            queue=queue,
            kind=_kind(kind),
            since=_seconds("since", since),
            until=_seconds("until", until),
            before=_count("before", before) if before else 0,
            most=_count("limit", limit, most=_MOST),
        )
        if form not in ("json", "ndjson"):
            raise BadRequest(f"form: {form} is neither json nor ndjson")
        viewer = await _viewer(services, request, question)
        question = question._replace(namespace=viewer.namespace or "")
        known = services.cache.namespaces_heard_of
        with refusing(), services.questions.of(viewer):
            if form == "ndjson":
                return await _streamed(trail, question, viewer, known)
            found, coverage = await trail.ask(question)
        told = tuple([each async for each in _told(found, viewer, known)])
        return json_value(Trail(told, _told_coverage(coverage, viewer)))

    @router.get(
        "/audit/evictions/{namespace}/{name}",
        tags=["ask"],
        responses=_REFUSALS
        | refusals({404: "no eviction of that pod is kept; says of what the kept decisions are"})
        | {200: {"model": WhyEvicted}},
    )
    async def why_evicted(request: Request, namespace: str, name: str) -> Response:
        """Why a pod was evicted last: for which group, by which rule, with its certificate.

        The certificate names pods of other namespaces: it is for operators.
        """
        viewer = await services.access.tenant(request, namespace)
        known = services.cache.namespaces_heard_of
        with refusing(), services.questions.of(viewer):
            return json_value(await _why_evicted(trail, f"{namespace}/{name}", viewer, known))

    return router


async def _viewer(services: ExtenderServices, request: Request, question: AuditQuestion) -> Viewer:
    """The reader: a tenant asks about a job or a pod of one namespace, or of both of the same."""
    named = {name.partition("/")[0] for name in (question.job, question.pod) if name}
    if len(named) == 1:
        return await services.access.tenant(request, named.pop())
    return await services.access.operator(request)


async def _why_evicted(
    trail: AuditTrail, pod: str, viewer: Viewer, known: Collection[str]
) -> WhyEvicted:
    question = AuditQuestion(pod=pod, kind=DecisionKind.EVICT.value, most=_MOST)
    found, coverage = await trail.ask(question)
    if not found:
        since = covered(coverage) if viewer.is_operator else f"since {coverage.since:.0f}"
        raise BadRequest(f"no eviction of pod {pod} is kept ({since})", status=404)
    plan = found[-1].plan
    of_plan = [each for each in found if each.plan == plan]
    decisions = tuple([each async for each in _told(of_plan, viewer, known)])
    certificate = await trail.certificate(plan) if viewer.is_operator else None
    return WhyEvicted(pod, decisions, certificate, _told_coverage(coverage, viewer))


async def _told(
    found: Sequence[KeptDecision], viewer: Viewer, known: Collection[str]
) -> AsyncIterator[Mapping[str, Any]]:
    """The decisions as JSON objects; for a tenant those of its namespace, without other names.

    Hidden are names in the namespaces that are ``known``, and in those of which the decisions name
    a group: these may be gone by now. The name of a plan has a UID: a tenant is told it of plans
    for its own groups.
    """
    own = viewer.namespace
    groups = (name for each in found for name in (each.group, each.preemptor) if name)
    namespaces = {*known, *(name.partition("/")[0] for name in groups)} if own is not None else ()
    for number, each in enumerate(found, start=1):
        if own is None:
            yield each._asdict()
        elif each.group.startswith(f"{own}/"):
            is_own = each.preemptor.startswith(f"{own}/")
            told = each if is_own else each._replace(plan="")
            yield hidden_in(told._asdict(), own=own, namespaces=namespaces)
        if number % _TOLD_AT_ONCE == 0:
            await asyncio.sleep(0)


def _told_coverage(coverage: Coverage, viewer: Viewer) -> Mapping[str, Any]:
    """What the decisions are of; folders and files of the extender are for operators."""
    told = coverage if viewer.is_operator else coverage._replace(folder="", problems=())
    return told._asdict()


def covered(coverage: Coverage) -> str:
    """What the kept decisions are of, in a few words."""
    where = "decisions are kept in a folder" if coverage.outlives_process else "no folder is set"
    problems = "".join(f"; {each}" for each in coverage.problems)
    return f"{where}, since {coverage.since:.0f}{problems}"


async def _streamed(
    trail: AuditTrail, question: AuditQuestion, viewer: Viewer, known: Collection[str]
) -> Response:
    """All decisions, read page by page; with the first page it is known whether they can be."""
    asked = question._replace(after=0, most=_LINES_AT_ONCE)
    first, _ = await trail.ask(asked)

    async def lines() -> AsyncIterator[bytes]:
        found = first
        while found:
            yield b"".join([_encode(each) + b"\n" async for each in _told(found, viewer, known)])
            if len(found) < _LINES_AT_ONCE:
                return
            found, _ = await trail.ask(asked._replace(after=found[-1].number))

    return StreamingResponse(lines(), media_type=NDJSON)


def _named(what: str, text: str) -> str:
    namespace, slash, name = text.partition("/")
    if text and not (namespace and slash and name):
        raise BadRequest(f"{what}: {text} is not namespace/name")
    return text


def _kind(text: str) -> str:
    kinds = [kind.value for kind in DecisionKind]
    if text and text not in kinds:
        raise BadRequest(f"kind: {text} is none of {', '.join(kinds)}")
    return text


def _seconds(what: str, text: str) -> float:
    try:
        seconds = float(text or 0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e12:
        raise BadRequest(f"{what}: {text} is no time in seconds since the epoch")
    return seconds


def _count(what: str, text: str, *, most: int = 2**53) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 17 and 1 <= int(text) <= most):
        raise BadRequest(f"{what}: {text} is not from 1 to {most}")
    return int(text)
