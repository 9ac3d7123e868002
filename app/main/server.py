"""uvicorn inside our own event loop, on a socket that is open before anything else starts."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from app.main.one_write import OneWrite
from app.main.start_error import StartError

KEEP_ALIVE_S = 120
"""Longer than kube-scheduler keeps an idle connection (90 s), so it never meets a closed one."""

DRAIN_S = 5

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """Where to listen; with a certificate over TLS, with a client CA over mutual TLS."""

    host: str
    port: int
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None


class _Begun(OneWrite):
    """A connection that has begun elsewhere."""

    def __init__(self, begun: bytes, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._begun = begun

    def connection_made(self, transport: Any) -> None:
        """Go on with what there is already."""
        super().connection_made(transport)
        self.data_received(self._begun)


class Server(uvicorn.Server):
    """Signals are the composition root's business, not the server's."""

    async def adopt(self, connection: socket.socket, begun: bytes) -> None:
        """Serve a connection that another process accepted, as one of this server's own.

        ``begun`` is what has come of it.
        """

        def protocol() -> asyncio.Protocol:
            return _Begun(begun, self.config, self.server_state, app_state={})

        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(protocol, connection)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the handlers alone."""
        yield


def listen(bind: Bind) -> socket.socket:
    """A listening socket; OSError when the address is taken.

    An address that means every one means those of IPv6 too where there are any, as in Go: the
    kubelet and Services know a pod by the first of its addresses.
    """
    everywhere = bind.host in _EVERY_ADDRESS and socket.has_dualstack_ipv6()
    host = "::" if everywhere else bind.host
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if everywhere:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        sock.bind((host, bind.port))
    except OSError:
        sock.close()
        raise
    sock.listen(2048)
    sock.setblocking(False)
    return sock


def opened(bind: Bind) -> socket.socket:
    """The same for who cannot do without: StartError says where, and what is in the way."""
    try:
        return listen(bind)
    except OSError as error:
        raise StartError(f"cannot listen on {bind.host}:{bind.port}: {error.strerror}") from error


def server(app: ASGIApp, bind: Bind) -> Server:
    """A server for ``app``; run it with ``serve(sockets=[opened(bind)])``.

    OSError when the certificates of ``bind`` cannot be used.
    """
    config = uvicorn.Config(
        app,
        http=OneWrite,
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        ssl_certfile=bind.cert_file,
        ssl_keyfile=None if bind.key_file is None else str(bind.key_file),
        ssl_ca_certs=None if bind.client_ca_file is None else str(bind.client_ca_file),
        ssl_cert_reqs=2 if bind.client_ca_file else 0,
    )
    config.load()
    return Server(config)
