"""The HTTP server of the embedded API server: uvicorn that can stop while watches are open.

Uvicorn waits for answers in progress before it ends, and a watch is an answer without an end: all
watches are closed first.
"""

from __future__ import annotations

import socket

import uvicorn

from app.sandbox.apiserver.server import ApiServer


class ApiWebServer(uvicorn.Server):
    """Serves one ``ApiServer``; ``await serve(sockets=...)``, ``should_exit`` to stop."""

    def __init__(self, api: ApiServer, *, log_level: str = "warning") -> None:
        super().__init__(
            uvicorn.Config(
                api.app,
                log_level=log_level,
                access_log=False,
                timeout_graceful_shutdown=5,
                timeout_keep_alive=60,
            )
        )
        self._api = api

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._api.close()
        await super().shutdown(sockets)
