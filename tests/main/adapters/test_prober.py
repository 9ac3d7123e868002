"""Asking pods, on real sockets."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable

import pytest

from app.controllers.jobflow.probes import Address, Why
from app.main.adapters.prober import PodProber

Ask = Callable[[PodProber, Address], Awaitable[Why]]

PATIENCE_S = 20.0
SILENCE_S = 0.5


def ask(answer: bytes | None, how: Ask) -> tuple[Why, bytes]:
    """What comes of a question to a server that answers so (None: never), and what it was sent."""
    heard: list[bytes] = []
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                heard.append(connection.recv(4096))
                if answer is None:
                    over.wait()
                else:
                    connection.sendall(answer)

    async def whole(port: int) -> Why:
        timeout_s = SILENCE_S if answer is None else PATIENCE_S
        return await how(PodProber(timeout_s=timeout_s), Address("127.0.0.1", port))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(2)
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        try:
            return asyncio.run(whole(listening.getsockname()[1])), b"".join(heard)
        finally:
            over.set()
            server.join()


def get(prober: PodProber, at: Address) -> Awaitable[Why]:
    return prober.http(at, "/ok?x=1", {"Probe": "yes"})


def reply(status: str, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n{headers}\r\n".encode()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("200 OK"), ""),
        (reply("302 Found", "Location: http://127.0.0.1:1/\r\n"), ""),
        (reply("404 Not Found"), "HTTP 404"),
        (reply("503 Service Unavailable"), "HTTP 503"),
    ],
)
def test_below_400_is_an_answer(answer: bytes, why: str) -> None:
    said, heard = ask(answer, get)

    assert said == why
    assert heard.startswith(b"GET /ok?x=1 HTTP/1.1\r\n")
    assert b"Probe: yes\r\n" in heard


def test_something_else_than_http_is_no_answer() -> None:
    assert ask(b"SSH-2.0\r\n\r\n", get)[0]


def test_silence_is_no_answer() -> None:
    assert ask(None, get)[0] == "no answer within 0.5 s"


def test_a_header_that_would_be_two_is_not_sent() -> None:
    def split(prober: PodProber, at: Address) -> Awaitable[Why]:
        return prober.http(at, "/", {"a": "b\r\nc: d"})

    said, heard = ask(reply("200 OK"), split)

    assert said
    assert heard == b""


def test_a_port_that_takes_connections_answers() -> None:
    assert ask(b"", PodProber.tcp)[0] == ""


def test_a_port_that_is_closed_does_not() -> None:
    async def whole(port: int) -> tuple[Why, Why]:
        at = Address("127.0.0.1", port)
        return await PodProber().tcp(at), await PodProber().http(at, "/", {})

    with socket.socket() as taken:  # by nobody who listens, and by nobody else meanwhile
        taken.bind(("127.0.0.1", 0))
        assert all(asyncio.run(whole(taken.getsockname()[1])))
