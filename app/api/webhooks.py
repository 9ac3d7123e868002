"""The application of the webhook process: one route per webhook, and those for probes.

An AdmissionReview in, one out. What is no AdmissionReview, or is about another kind than the
path's, is refused with a 4xx and one line: the API server then does what the failure policy says.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect

from app.api.application import application
from app.api.body import BadRequest, json_bytes, refusals
from app.api.health import health_router
from app.kit.shortening import shortened
from app.telemetry.metrics import REGISTRY
from app.webhooks import world
from app.webhooks.admission import Verdict, Webhook
from app.webhooks.judging import Judge
from app.wire import admission
from app.wire.admission import Review
from app.wire.errors import DecodeError
from app.wire.unstructured import Key

MAX_REVIEW: Final = 3 * 1024 * 1024
"""Bytes; twice what an object may have."""

READY_S: Final = 5.0
"""How long a request waits for the caches; below the webhooks' timeout."""

JSON_TYPE: Final = "application/json"

ADMISSION_SECONDS: Final = Histogram(
    "pumice_admission_seconds",
    "Time from an AdmissionReview's arrival to its answer, by webhook.",
    ("path",),
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
    registry=REGISTRY,
)
ADMISSION_ANSWERS: Final = Counter(
    "pumice_admission_answers",
    "Answers to AdmissionReviews by webhook and outcome.",
    ("path", "outcome"),
    registry=REGISTRY,
)

MOST_LOGGED: Final = 500
"""Characters; an object can be wrong in many ways."""

REVIEW: Final = {
    JSON_TYPE: {
        "schema": {
            "type": "object",
            "title": "AdmissionReview",
            "description": "k8s.io/api admission/v1 AdmissionReview",
            "required": ["apiVersion", "kind"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "request": {"type": "object", "required": ["uid", "operation", "resource"]},
                "response": {"type": "object", "required": ["uid", "allowed"]},
            },
        }
    }
}
REFUSALS: Final = refusals(
    {
        400: "no AdmissionReview, or one of another kind; says why",
        413: f"the review has more than {MAX_REVIEW} bytes",
        415: f"the body is not {JSON_TYPE}",
        503: "not ready yet",
    }
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServices:
    """What the application needs; ``unready`` lists what readiness waits for."""

    webhooks: Sequence[Webhook]
    judge: Judge
    synced: asyncio.Event
    unready: Callable[[], Sequence[str]]
    notices: Callable[[], Sequence[str]]
    metrics: CollectorRegistry


def create_webhooks_app(services: WebhookServices) -> FastAPI:
    """Every route of one webhook process."""
    app = application(
        "Pumice webhooks",
        summary="Admission: defaults and rules for jobs, queues, groups and pods.",
    )
    app.add_exception_handler(ClientDisconnect, _gone)
    for webhook in services.webhooks:
        app.add_api_route(
            webhook.path,
            _handler(webhook, services),
            methods=["POST"],
            summary=f"{webhook.resource} {', '.join(webhook.operations)}",
            response_class=Response,
            tags=["admission"],
            responses=REFUSALS | {200: {"description": "reviewed", "content": REVIEW}},
            openapi_extra={"requestBody": {"required": True, "content": REVIEW}},
        )
    app.include_router(health_router(services.unready, services.metrics, notices=services.notices))
    return app


def _handler(
    webhook: Webhook, services: WebhookServices
) -> Callable[[Request], Awaitable[Response]]:
    seconds = ADMISSION_SECONDS.labels(webhook.path)
    outcomes = {
        allowed: ADMISSION_ANSWERS.labels(webhook.path, "allowed" if allowed else "refused")
        for allowed in (True, False)
    }

    async def handle(request: Request) -> Response:
        began = time.perf_counter()
        review = _question(webhook, await _body(request))
        await _wait_synced(services.synced)
        verdict = await services.judge.verdict(webhook, _request(review))
        outcomes[verdict.allowed].inc()
        if not verdict.allowed:
            _log_refusal(webhook, review, verdict)
        seconds.observe(time.perf_counter() - began)
        return json_bytes(_answer(review, verdict))

    return handle


def _log_refusal(webhook: Webhook, review: Review, verdict: Verdict) -> None:
    log.info(
        "object refused",
        extra={
            "webhook": webhook.path,
            "operation": review.operation,
            "object": str(Key(review.namespace, review.name)),
            "why": shortened(verdict.message, MOST_LOGGED),
        },
    )


def _question(webhook: Webhook, body: bytes) -> Review:
    try:
        review = admission.decode_review(body)
    except DecodeError as error:
        raise BadRequest(f"AdmissionReview: {error}") from error
    resource = webhook.resource
    group, _, version = resource.api_version.rpartition("/")
    expected = f"{resource.plural}.{group}/{version}"
    if review.resource != expected:
        raise BadRequest(f"expect resource to be {expected}, got {review.resource}")
    return review


def _request(review: Review) -> world.Request:
    return world.Request(
        operation=cast(world.Operation, review.operation),
        item=review.item,
        old=review.old,
        namespace=review.namespace,
        name=review.name,
    )


def _answer(review: Review, verdict: Verdict) -> bytes:
    return admission.answer(
        review.uid,
        allowed=verdict.allowed,
        message=verdict.message,
        warnings=verdict.warnings,
        patch=verdict.patch,
    )


async def _body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON_TYPE:
        raise BadRequest(f"contentType={kind}, expect {JSON_TYPE}", status=415)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_REVIEW:
            raise BadRequest("request body too large", status=413)
        parts.append(part)
    return b"".join(parts)


async def _wait_synced(synced: asyncio.Event) -> None:
    """Nothing is judged before the cluster is known: everything would seem to be missing."""
    if synced.is_set():
        return
    try:
        async with asyncio.timeout(READY_S):
            await synced.wait()
    except TimeoutError as error:
        raise BadRequest("not ready, see /readyz", status=503) from error


async def _gone(_request: Request, _error: Exception) -> Response:
    """An answer to a request whose sender has gone."""
    return Response(status_code=400)
