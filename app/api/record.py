"""What the planner was asked last, as a file for ``pumice replay``."""

import asyncio
from importlib.metadata import version

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import BadRequest, refusals
from app.api.services import ExtenderServices
from app.model.recorded import Recording
from app.wire.stored import packed

_REFUSALS = refusals({429: "another such file is being made", "default": "refused"})
_FILE = {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}


def record_router(services: ExtenderServices) -> APIRouter:
    """``/record``."""
    router = Router()
    ring = services.planning.cycle.input.ring
    turn = asyncio.Lock()

    @router.get(
        "/record",
        tags=["ask"],
        response_class=Response,
        responses=_REFUSALS | {200: _FILE},
    )
    async def record(request: Request) -> Response:
        """The latest questions to the planner with its answers, for ``pumice replay``.

        Snapshots of the cluster, the configuration and the readings of the clock, as much as there
        is room for. Of metrics no addresses and credentials are in it; the URL of the plugin
        extender is, as the rest of the configuration. It is for operators.
        """
        await services.access.operator(request)
        if turn.locked():
            raise BadRequest("another such file is being made; ask again later", status=429)
        async with turn:
            entries = ring.entries()
            recording = Recording(version("pumice"), entries, ring.forgotten)
            content = await asyncio.to_thread(packed, recording) if entries else packed(recording)
        return Response(content, media_type="application/octet-stream")

    return router
