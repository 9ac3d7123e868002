"""Liveness, readiness and metrics: the same pages on every process.

``/livez`` says that the process serves; ``/readyz`` that it can work, else it names what it waits
for. ``/healthz`` is one of the two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from app.api.body import refusals
from app.kit.shared import Shared

Unready = Callable[[], Sequence[str]]
"""What the process waits for before it can work; empty: it is ready."""
Notices = Callable[[], Sequence[str]]
"""What an administrator should know though it works."""


@dataclass(frozen=True, slots=True)
class MetricsWithNames:
    """Metrics that name what not every reader may know; ``may_read`` judges a reader."""

    registry: CollectorRegistry
    may_read: Callable[[Request], Awaitable[bool]]


def health_router(
    unready: Unready,
    registry: CollectorRegistry,
    *,
    notices: Notices = tuple,
    with_names: MetricsWithNames | None = None,
    healthz_waits: bool = True,
) -> APIRouter:
    """Routes for probes and scrapers; ``healthz_waits``: ``/healthz`` is ``/readyz``."""
    router = APIRouter(tags=["health"])
    page = _page(registry)
    page_with_names = None if with_names is None else _page(with_names.registry)

    async def livez() -> PlainTextResponse:
        """200 while the event loop turns."""
        return PlainTextResponse("ok\n")

    async def readyz() -> PlainTextResponse:
        """200 when it can work, else 503 and what is missing, a line each."""
        missing = [f"waiting for {what}" for what in unready()]
        notes = [f"note: {notice}" for notice in notices()]
        lines = [*(missing or ["ok"]), *notes]
        return PlainTextResponse("\n".join(lines) + "\n", status_code=503 if missing else 200)

    async def metrics(request: Request) -> Response:
        """Prometheus text format. Metrics with names of pods are for operators."""
        text = await page.get()
        if with_names and page_with_names and await with_names.may_read(request):
            text += await page_with_names.get()
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    router.add_api_route("/livez", livez, response_class=PlainTextResponse)
    waiting = refusals({503: "what it waits for, a line each"})
    for path, waits in (("/readyz", True), ("/healthz", healthz_waits)):
        router.add_api_route(
            path,
            readyz if waits else livez,
            response_class=PlainTextResponse,
            responses=waiting if waits else None,
        )
    router.add_api_route("/metrics", metrics, response_class=PlainTextResponse)
    return router


def _page(registry: CollectorRegistry) -> Shared[bytes]:
    async def written() -> bytes:
        await asyncio.sleep(0)  # others that ask now have the same page
        return generate_latest(registry)

    return Shared(written)


def create_probes(title: str, unready: Unready, registry: CollectorRegistry) -> FastAPI:
    """The pages of health and metrics, for a process that serves nothing else.

    ``/healthz`` is ``/livez``.
    """
    app = FastAPI(title=title)
    app.include_router(health_router(unready, registry, healthz_waits=False))
    return app
