"""Liveness, readiness and metrics.

``/livez`` says the process serves; ``/readyz`` that it may decide: every cache is synced, the
ledger is rebuilt and the first cycle has run, else it names what it waits for.
"""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.api.services import ExtenderServices


def health_router(services: ExtenderServices) -> APIRouter:
    """Routes for probes and scrapers."""
    router = APIRouter(tags=["health"])

    @router.get("/livez", response_class=PlainTextResponse)
    async def livez() -> str:
        """200 while the event loop turns."""
        return "ok\n"

    async def readyz(_request: Request) -> Response:
        """200 when decisions can be made, else 503 and what is missing, a line each."""
        missing = services.unready()
        notes = [f"note: {notice}" for notice in services.notices()]
        if missing:
            lines = [f"waiting for {what}" for what in missing]
            return PlainTextResponse("\n".join([*lines, *notes]) + "\n", status_code=503)
        return PlainTextResponse("\n".join(["ok", *notes]) + "\n")

    router.add_api_route("/readyz", readyz, response_class=PlainTextResponse)
    router.add_api_route("/healthz", readyz, response_class=PlainTextResponse)

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(services.metrics), media_type=CONTENT_TYPE_LATEST)

    return router
