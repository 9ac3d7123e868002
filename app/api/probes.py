"""Health checks and metrics of the processes that have no other HTTP edge."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Unready = Callable[[], Sequence[str]]
"""What the process waits for before it can work; empty: it is ready."""


def create_probes(title: str, unready: Unready, registry: CollectorRegistry) -> FastAPI:
    """``/livez``, ``/healthz``, ``/readyz`` and ``/metrics``."""
    app = FastAPI(title=title)

    async def livez() -> PlainTextResponse:
        """200 while the event loop turns."""
        return PlainTextResponse("ok\n")

    async def readyz() -> PlainTextResponse:
        """200 when it can work, else 503 and what is missing, a line each."""
        missing = unready()
        if missing:
            lines = [f"waiting for {what}\n" for what in missing]
            return PlainTextResponse("".join(lines), status_code=503)
        return PlainTextResponse("ok\n")

    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    for path in ("/livez", "/healthz"):
        app.add_api_route(path, livez, response_class=PlainTextResponse)
    app.add_api_route("/readyz", readyz, response_class=PlainTextResponse)
    app.add_api_route("/metrics", metrics, response_class=PlainTextResponse)
    return app
