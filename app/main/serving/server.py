"""uvicorn inside our own event loop, on a socket that is open before anything else starts.

Every port has its limits: of connections (:mod:`app.main.serving.accepting`) and of what one of
them may take (:mod:`app.main.serving.bounded`).
"""

import socket
import ssl
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp

from app.kit.holdings import Holdings
from app.main.serving import descriptors
from app.main.serving.accepting import Acceptor, Connections
from app.main.serving.bounded import BODIES, Bounded
from app.main.start_error import StartError

KEEP_ALIVE_S = 120
"""Longer than kube-scheduler keeps an idle connection (90 s), so it never meets a closed one."""

DRAIN_S = 5

CONNECTIONS: Final = 512
"""Of a port that answers small questions: probes, metrics, where a pod's place is."""

CALL_CONNECTIONS: Final = 10_000
"""Of a port where calls are held: each member of a gang holds one until the last has come."""

REVIEW_CONNECTIONS: Final = 2_048
"""Of the webhooks: each of several API servers has hundreds of requests under way."""

_TICKS: Final = 50
"""Of a tenth of a second, from one look for connections that are overdue to the next."""

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: those that Go offers too, without CBC. TLS 1.3 has ciphers of its own."""

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """Where to listen; with a certificate over TLS, with a client CA over mutual TLS."""

    host: str
    port: int
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None


class _Begun(Bounded):
    """A connection that has begun elsewhere."""

    def __init__(self, begun: bytes, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._begun = begun

    def connection_made(self, transport: Any) -> None:
        """Go on with what there is already."""
        super().connection_made(transport)
        self.data_received(self._begun)


class Server(uvicorn.Server):
    """Accepts by itself; signals are the composition root's business, not the server's."""

    def __init__(self, config: uvicorn.Config, *, most: int) -> None:
        super().__init__(config)
        established = cast("Collection[Bounded]", self.server_state.connections)
        self._connections = Connections(established, most=descriptors.connections(most))
        self._acceptors: list[Acceptor] = []
        self._bodies: Holdings[Bounded] = Holdings(most=BODIES)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup(sockets=[])
        self._acceptors = [Acceptor(each, self._accepted) for each in sockets or ()]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and answer what has come."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._connections.end_arriving()
        await super().shutdown(sockets=sockets)

    async def on_tick(self, counter: int) -> bool:
        """What is done again and again; whether the server is to end."""
        if counter % _TICKS == 0:
            self._connections.end_overdue()
        return await super().on_tick(counter)

    def adopt(self, connection: socket.socket, begun: bytes) -> None:
        """Serve a connection that another process accepted, as one of this server's own.

        ``begun`` is what has come of it.
        """
        self._serve_one(connection, partial(_Begun, begun), None)

    def _accepted(self, connection: socket.socket) -> None:
        self._serve_one(connection, Bounded, self.config.ssl)

    def _serve_one(
        self,
        connection: socket.socket,
        protocol: Callable[..., Bounded],
        context: ssl.SSLContext | None,
    ) -> None:
        if not self._connections.make_room():
            connection.close()
            return
        made = protocol(self.config, self.server_state, app_state={}, bodies=self._bodies)
        self._connections.arrive(connection, made, context)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the handlers alone."""
        yield


def listen(bind: Bind) -> socket.socket:
    """A listening socket; OSError when the address is taken.

    An address that means every one means those of IPv6 too where there are any, as in Go: the
    kubelet and Services know a pod by the first of its addresses.
    """
    descriptors.use_all()
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
    """A socket at ``bind``; StartError says where there is none, and what is in the way."""
    try:
        return listen(bind)
    except OSError as error:
        raise StartError(f"cannot listen on {bind.host}:{bind.port}: {error.strerror}") from error


def server(app: ASGIApp, bind: Bind, *, most: int = CONNECTIONS) -> Server:
    """A server for ``app``; run it with ``serve(sockets=[opened(bind)])``.

    ``most`` is how many connections it has at once.

    OSError when the certificates of ``bind`` cannot be used.
    """
    config = uvicorn.Config(
        app,
        http=Bounded,
        ws="none",
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
        ssl_ciphers=_CIPHERS,
    )
    config.load()
    return Server(config, most=most)
