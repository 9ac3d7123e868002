"""What a client may take of a port: heads, headers, connections, time; which TLS it may speak."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from app.main.serving import accepting, bounded, server
from app.main.serving.bounded import HEAD, HEADERS
from app.sandbox.controlplane.certificates import Authority
from tests.main.serving.test_server import LOCAL, exchange, served

Where = tuple[str, int]

GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
END = b"\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"


def connect(where: Where) -> socket.socket:
    return socket.create_connection(where, timeout=20)


def is_alive(where: Where) -> bool:
    return exchange(where, GET + END).startswith(b"HTTP/1.1 200 ")


def send_until_refused(link: socket.socket, piece: bytes, *, most: int) -> bytes:
    """What is answered to ``piece`` again and again; the server may close in the middle of it."""
    link.settimeout(0.01)
    for _ in range(most):
        try:
            link.sendall(piece)
            return link.recv(4096)
        except TimeoutError:
            continue
        except ConnectionError:
            return b"closed"
    return b""


@pytest.mark.parametrize("piece", [b"a" * 4096, b"X-Some: " + b"b" * 4000 + b"\r\n"])
def test_a_head_without_end_is_refused(piece: bytes) -> None:
    with served() as where, connect(where) as link:
        link.sendall(GET + b"X-Long: ")
        told = send_until_refused(link, piece, most=4 * HEAD // len(piece))
        assert told == b"closed" or told.startswith(TOO_LARGE)
        assert is_alive(where)


def test_a_head_of_very_many_headers_is_refused() -> None:
    with served() as where:
        allowed = b"".join(b"X-%d: a\r\n" % number for number in range(HEADERS - 1))
        assert exchange(where, GET + allowed + END).startswith(b"HTTP/1.1 200 ")
        assert exchange(where, GET + allowed + b"X: a\r\n" + END).startswith(TOO_LARGE)


@pytest.mark.parametrize("piece", [b"X-Some: " + b"b" * 4000 + b"\r\n", b"b" * 4096])
def test_a_body_without_end_of_its_trailers_is_refused(piece: bytes) -> None:
    head = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served() as where, connect(where) as link:
        link.sendall(head + b"2\r\n{}\r\n0\r\nX-Trailer: ")
        told = send_until_refused(link, piece, most=4 * HEAD // len(piece))
        assert told == b"closed" or told.startswith(TOO_LARGE)
        assert is_alive(where)


def test_a_large_body_is_no_large_head() -> None:
    async def counting(_scope: Scope, receive: Receive, send: Send) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message.get("more_body", False)
        text = str(size).encode()
        headers = [(b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    size = 64 * HEAD
    with served(app=counting) as where:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
        assert exchange(where, head + bytes(size)).endswith(str(size).encode())


@pytest.mark.parametrize("version", [b"2.0", b"0.9"])
def test_another_version_of_http_is_refused(version: bytes) -> None:
    with served() as where:
        told = exchange(where, GET.replace(b"1.1", version) + END)
        assert told.startswith(b"HTTP/1.1 505 ")


@pytest.mark.parametrize("kind", [b"websocket", b"h2c"])
def test_an_upgrade_is_not_offered_and_the_request_is_answered(kind: bytes) -> None:
    asked = (
        b"Connection: Upgrade\r\nUpgrade: %b\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" % kind
    )
    with served() as where:
        told = exchange(where, GET + asked + END)
        assert told.startswith(b"HTTP/1.1 200 ")
        assert b"websocket" not in told.lower()


@contextmanager
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times that a test can wait for."""
    monkeypatch.setattr(server, "_TICKS", 1)
    monkeypatch.setattr(bounded, "REQUEST_S", 0.1)
    monkeypatch.setattr(bounded, "IDLE_S", 0.1)
    yield


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        GET,
        GET + END + b"GET /li",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "part of a head", "part of a second head", "part of a body"],
)
def test_a_client_that_does_not_finish_its_request_is_ended(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with short(monkeypatch), served() as where, connect(where) as link:
        link.sendall(begun)
        assert is_over(link)


def is_over(link: socket.socket) -> bool:
    """Whether the server ends the connection, whatever it answers before."""
    try:
        while link.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


def test_a_connection_that_has_asked_something_is_not_ended_so_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with short(monkeypatch), served() as where, connect(where) as link:
        for _ in range(2):
            link.sendall(GET + END)
            assert link.recv(4096).startswith(b"HTTP/1.1 200 ")
            with connect(where) as other:
                assert is_over(other), "the times are over"


def fill(stack: ExitStack, where: Where, count: int, begun: bytes) -> list[socket.socket]:
    """Connections on which that much was sent, each answered before the next where it is whole."""
    links = []
    for _ in range(count):
        link = stack.enter_context(connect(where))
        link.sendall(begun)
        if begun == PARTS["what was answered"]:
            assert link.recv(4096).startswith(b"HTTP/1.1 200 ")
        links.append(link)
    return links


PARTS: dict[str, bytes] = {
    "nothing": b"",
    "part of a head": GET,
    "part of a body": b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    "what was answered": GET + END,
}


@pytest.mark.parametrize("begun", PARTS.values(), ids=PARTS)
def test_a_port_that_is_full_of_idle_connections_answers_probes(
    begun: bytes,
) -> None:
    with served(most=8) as where, ExitStack() as stack:
        links = fill(stack, where, 20, begun)
        assert [is_alive(where) for _ in range(20)] == [True] * 20
        assert is_over(links[0])


def test_who_has_asked_something_stays_before_who_has_not() -> None:
    with served(most=8) as where, ExitStack() as stack:
        scheduler = stack.enter_context(connect(where))
        for _ in range(3):
            scheduler.sendall(GET + END)
            assert scheduler.recv(4096).startswith(b"HTTP/1.1 200 ")
            fill(stack, where, 20, GET)


class Holding:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.held = threading.Semaphore(0)
        self.let = threading.Event()

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/bind":
            self.held.release()
            await asyncio.to_thread(self.let.wait, 20)
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})


def test_held_calls_stay_and_a_port_that_is_full_of_them_takes_no_more() -> None:
    app = Holding()
    with served(app=app, most=4) as where, ExitStack() as stack:
        calls = fill(
            stack, where, 4, b"POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        )
        for _ in calls:
            assert app.held.acquire(timeout=20)
        assert is_over(stack.enter_context(connect(where)))
        app.let.set()
        for call in calls:
            assert call.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert is_alive_at(where)


def is_alive_at(where: Where) -> bool:
    """The same of an application without probes."""
    return exchange(where, GET + END).endswith(b"done")


def test_a_client_that_takes_no_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def large(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
        left.set()

    left = threading.Event()

    with short(monkeypatch), served(app=large) as where, connect(where) as link:
        link.sendall(GET + END)
        assert left.wait(20)


@pytest.fixture
def secured(tmp_path: Path) -> tuple[server.Bind, ssl.SSLContext]:
    authority = Authority(tmp_path)
    pair = authority.server("server")
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return replace(LOCAL, cert_file=pair.certificate, key_file=pair.key), trusting


def test_connections_without_a_handshake_keep_nobody_out(
    secured: tuple[server.Bind, ssl.SSLContext],
) -> None:
    bind, trusting = secured
    with served(bind, most=8) as where, ExitStack() as stack:
        links = fill(stack, where, 20, b"")
        url = f"https://{where[0]}:{where[1]}/livez"
        assert httpx2.get(url, verify=trusting).status_code == 200
        assert is_over(links[0])


def test_a_handshake_that_takes_too_long_is_ended(
    secured: tuple[server.Bind, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "HANDSHAKE_S", 0.1)
    with served(secured[0]) as where, connect(where) as link:
        assert is_over(link)


@pytest.mark.parametrize(
    "cipher", ["ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA", "AES128-SHA"]
)
def test_cbc_suites_of_tls_1_2_are_not_spoken(
    cipher: str, secured: tuple[server.Bind, ssl.SSLContext]
) -> None:
    bind, trusting = secured
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    with served(bind) as where:
        with (
            connect(where) as link,
            trusting.wrap_socket(link, server_hostname="127.0.0.1") as spoken,
        ):
            assert spoken.cipher() is not None
            assert "GCM" in str(spoken.cipher()) or "CHACHA20" in str(spoken.cipher())
        trusting.set_ciphers(f"{cipher}:@SECLEVEL=0")
        with connect(where) as link, pytest.raises(ssl.SSLError):
            trusting.wrap_socket(link, server_hostname="127.0.0.1")
