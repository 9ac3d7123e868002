"""A real HTTP server on a free local port around an API server, always stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.sandbox.apiserver.server import ApiServer


class ApiWebServer(uvicorn.Server):
    """Uvicorn waits for answers in progress before it ends, and a watch is one without an end."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(
            uvicorn.Config(
                api.app, log_level="error", access_log=False, timeout_graceful_shutdown=5
            )
        )
        self._api = api

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._api.close()
        await super().shutdown(sockets)


@contextmanager
def serving(server: ApiServer) -> Iterator[str]:
    """The URL at which ``server`` answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    web = ApiWebServer(server)
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        web.should_exit = True
        thread.join(timeout=10)
        listener.close()
        assert not thread.is_alive()
