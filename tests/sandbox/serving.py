"""A real HTTP server on a free local port around an API server, always stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.sandbox.apiserver.server import ApiServer
from app.sandbox.web import ApiWebServer


@contextmanager
def serving(server: ApiServer) -> Iterator[str]:
    """The URL at which ``server`` answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    web = ApiWebServer(server, log_level="error")
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        web.should_exit = True
        thread.join(timeout=10)
        listener.close()
        assert not thread.is_alive()
