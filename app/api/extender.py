"""kube-scheduler's four calls: decode, call the use case, encode.

Filter and Bind are the hot path, so bodies are decoded by msgspec and answered as bytes. FastAPI
describes these routes; :mod:`app.api.direct` serves them, and :mod:`app.api.framed` those that a
front hands on. They are the same under ``/v1``.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import MAX_BODY, BadRequest, json_bytes, read_body, refusals
from app.api.scheduler_types import BODIES, request_body
from app.api.services import ExtenderServices
from app.model.ids import NodeName
from app.service.calls.binding import BindCall, Gone
from app.service.calls.filtering import (
    Answer,
    Behind,
    Chosen,
    Everything,
    Protect,
    Question,
    Some,
    Wait,
)
from app.service.calls.preemption import Candidate
from app.telemetry import metrics
from app.wire import extender as wire
from app.wire.errors import DecodeError

Call = Callable[[bytes, Gone], Awaitable[bytes]]
"""Answers a body with JSON; raises `BadRequest`.

`Gone` returns when the caller has stopped waiting for the answer.
"""

Handler = Callable[[Request], Awaitable[Response]]
"""A `Call` as a handler of HTTP."""

READY_S = 20.0
"""Below kube-scheduler's ``httpTimeout``."""

_UNDECIDED = "not ready: see /readyz, and whether the kube-scheduler beside holds the Lease"
_REFUSALS = refusals(
    {
        400: "the body cannot be read; says where and why",
        404: "none of the nodes is known",
        413: f"the body has more than {MAX_BODY} bytes",
        503: "not ready yet, or another replica leads",
    }
)
_ABOUT = {
    "filter": "Which of the offered nodes the pod may go to.",
    "prioritize": "Scores 0-10 of nodes the pod may go to.",
    "bind": "Bind the pod, once enough members of its gang can be.",
    "preempt": "Which nodes the pod may preempt on.",
}


def extender_calls(services: ExtenderServices) -> dict[str, Call]:
    """The calls by verb: filter, prioritize, bind and preempt."""
    calls = {
        "filter": _filter(services),
        "prioritize": _prioritize(services),
        "bind": _bind(services),
        "preempt": _preempt(services),
    }
    leadership = services.planning.leadership
    return {
        verb: timed(verb, once(leadership.deciding, call, follow_lead=leadership.follow))
        for verb, call in calls.items()
    }


def over_http(call: Call) -> Handler:
    """``call``, with its body read from the request."""

    async def handle(request: Request) -> Response:
        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        return json_bytes(await call(await read_body(request), gone))

    return handle


def extender_router(handlers: Mapping[str, Handler], *, prefix: str, described: bool) -> APIRouter:
    """``POST {prefix}/{verb}`` for each of the ``handlers``; in ``/docs`` if ``described``."""
    router = Router(prefix=prefix, tags=["extender"], include_in_schema=described)
    for verb, handler in handlers.items():
        router.add_api_route(
            f"/{verb}",
            handler,
            methods=["POST"],
            summary=_ABOUT[verb],
            response_class=Response,
            name=verb,
            responses=_REFUSALS | {200: {"model": BODIES[verb].answered}},
            openapi_extra={"requestBody": request_body(verb)},
        )
    return router


def timed(verb: str, call: Call) -> Call:
    """``call`` with its time measured; what cannot be read is refused."""
    seconds = metrics.CALLS.labels(verb)

    async def answer(body: bytes, gone: Gone) -> bytes:
        started = time.perf_counter()
        try:
            return await call(body, gone)
        except DecodeError as error:
            raise BadRequest(f"{verb}: {error}") from error
        finally:
            seconds.observe(time.perf_counter() - started)

    return answer


def once(deciding: asyncio.Event, call: Call, *, follow_lead: Callable[[], None]) -> Call:
    """``call``, kept waiting until ``deciding``; ``follow_lead`` looks whether it still is.

    Until the first planning cycle, of the process or since it leads, any answer could be wrong (a
    newcomer would get the room of a gang that is bound in part), and an error would send the pod up
    kube-scheduler's back-off ladder, which lasts longer than our start.
    """

    async def answer(body: bytes, gone: Gone) -> bytes:
        follow_lead()
        if not deciding.is_set():
            try:
                async with asyncio.timeout(READY_S):
                    await deciding.wait()
            except TimeoutError as error:
                raise BadRequest(_UNDECIDED, status=503) from error
        return await call(body, gone)

    return answer


def _filter(services: ExtenderServices) -> Call:
    filtering = services.filtering
    outcomes = {
        kind: metrics.ANSWERS.labels("filter", kind.__name__.lower())
        for kind in (Chosen, Everything, Some, Wait, Protect, Behind)
    }

    async def call(body: bytes, _gone: Gone) -> bytes:
        asked = wire.decode_filter(body)
        if not asked.names:
            return wire.filter_answer(asked, ())
        question = _question(services, asked.pod, asked.names)
        answer = await filtering.answer_in_time(question)
        outcomes[type(answer)].inc()
        return encode_filter(asked, answer)

    return call


def encode_filter(asked: wire.FilterRequest, answer: Answer) -> bytes:
    """``answer`` in the stock scheduler's words."""
    match answer:
        case Chosen(node):
            return wire.filter_answer(asked, [node])
        case Everything():
            return wire.filter_answer(asked, asked.names)
        case Some(nodes, text):
            return wire.filter_answer(asked, nodes, refused=text)
        case Wait(text):
            return wire.filter_answer(asked, (), refused=text)
        case Protect(text) | Behind(text):
            return wire.filter_error(text)


def _question(
    services: ExtenderServices, pod: wire.AskedPod, names: Sequence[NodeName]
) -> Question:
    """The call as a question; BadRequest when not one of the nodes is known."""
    _require_known(services, names)
    return Question(pod.uid, pod.decode, names)


def _require_known(services: ExtenderServices, names: Sequence[NodeName]) -> None:
    if names and not any(name in services.cache.node_usage.nodes for name in names):
        raise BadRequest(f"none of the {len(names)} nodes is known, e.g. {names[0]}", status=404)


def _prioritize(services: ExtenderServices) -> Call:
    async def call(body: bytes, _gone: Gone) -> bytes:
        asked = wire.decode_prioritize(body)
        scores = services.filtering.scores(_question(services, asked.pod, asked.names))
        return wire.prioritize_answer(scores)

    return call


def _bind(services: ExtenderServices) -> Call:
    binding = services.binding
    bound = metrics.ANSWERS.labels("bind", "bound")
    failed = metrics.ANSWERS.labels("bind", "error")

    async def call(body: bytes, gone: Gone) -> bytes:
        asked = wire.decode_bind(body)
        if asked.node not in services.cache.node_usage.nodes:
            raise BadRequest(f"bind: node {asked.node} is not known", status=404)
        wanted = BindCall(asked.uid, asked.namespace, asked.name, asked.node)
        error = await binding.bind(wanted, gone=gone)
        (failed if error else bound).inc()
        return wire.bind_answer(error)

    return call


def _preempt(services: ExtenderServices) -> Call:
    preemption = services.preemption

    async def call(body: bytes, _gone: Gone) -> bytes:
        asked = wire.decode_preempt(body)
        _require_known(services, list(asked.victims))
        candidates = {
            node: Candidate(victims.uids, victims.budget_violations)
            for node, victims in asked.victims.items()
        }
        verdict = await preemption.guard_in_time(asked.pod.decode(), candidates)
        for strike in verdict.struck.values():
            metrics.ANSWERS.labels("preempt", strike.value).inc()
        return wire.preempt_answer({node: asked.victims[node] for node in verdict.nodes})

    return call
