"""Asking servers over TLS, on real sockets."""

import asyncio
import gzip
from pathlib import Path

import pytest
from aiohttp import web

from app.controllers.ports import WebError, WebRequest
from app.main.adapters.web_client import WebClient
from tests.kube.server import Handler, ScriptedServer
from tests.kube.tls import self_signed

MOST = 1000


def answering(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers=headers)

    return answer


async def dripping(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
    """A body that never ends, in small pieces."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    while not server.closing.is_set():
        await answer.write(b"x" * 100)
        await asyncio.sleep(0)
    return answer


async def silent(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
    await server.closing.wait()
    return web.Response()


def ask(
    server: ScriptedServer, *, path: str = "/x", timeout_s: float = 20.0, **more: object
) -> bytes:
    request = WebRequest(url=server.base + path, most_bytes=MOST, **more)  # type: ignore[arg-type]
    return asyncio.run(WebClient(timeout_s=timeout_s).get(request, bytes))


def test_an_answer_is_read_over_tls_with_an_authority_of_its_own(tmp_path: Path) -> None:
    tls, authority = self_signed(tmp_path)
    with ScriptedServer(tls) as server:
        server.on("GET", "/x", answering(b"y" * MOST))
        sent = {"authorization": "Basic dTpw", "accept": "application/json"}
        assert ask(server, authority=authority.decode(), headers=sent) == b"y" * MOST
        (seen,) = server.seen
        assert {key.lower(): value for key, value in seen.headers.items()}.items() >= {
            ("authorization", "Basic dTpw"),
            ("accept", "application/json"),
        }


def test_a_certificate_that_no_authority_signed_is_not_trusted(tmp_path: Path) -> None:
    tls, _ = self_signed(tmp_path)
    with ScriptedServer(tls) as server:
        server.on("GET", "/x", answering(b"y"))
        with pytest.raises(WebError, match=r"certificate is not trusted: .*self-signed"):
            ask(server)
        assert server.seen == []
        assert ask(server, insecure=True) == b"y"


def test_an_authority_that_is_none_is_told(tmp_path: Path) -> None:
    tls, _ = self_signed(tmp_path)
    with (
        ScriptedServer(tls) as server,
        pytest.raises(WebError, match="the authority is no certificate in PEM"),
    ):
        ask(server, authority="PEM")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering(b"", status=503), "HTTP 503"),
        (answering(b"", status=401), "HTTP 401"),
        (answering(b"", status=302, headers={"location": "/other"}), "HTTP 302"),
        (answering(b"y" * (MOST + 1)), "longer than 1000 bytes"),
        (dripping, "longer than 1000 bytes"),
    ],
)
def test_an_answer_that_is_none_is_told(answer: Handler, said: str) -> None:
    with ScriptedServer() as server:
        server.on("GET", "/x", answer)
        server.on("GET", "/other", answering(b"y"))
        with pytest.raises(WebError, match=said):
            ask(server)
        assert [seen.path for seen in server.seen] == ["/x"]


def test_a_compressed_answer_stays_as_long_as_it_is() -> None:
    bomb = gzip.compress(bytes(900_000))
    assert len(bomb) < MOST
    with ScriptedServer() as server:
        server.on("GET", "/x", answering(bomb, headers={"content-encoding": "gzip"}))
        assert ask(server) == bomb


def test_a_server_that_is_silent_is_given_up() -> None:
    with ScriptedServer() as server:
        server.on("GET", "/x", silent)
        with pytest.raises(WebError, match=r"no answer within 0\.2 s"):
            ask(server, timeout_s=0.2)


def test_a_server_that_is_not_there_is_told() -> None:
    with ScriptedServer() as server:
        pass
    with pytest.raises(WebError, match="Connect call failed"):
        ask(server)


def test_what_the_reader_raises_is_raised() -> None:
    def read(body: bytes) -> None:
        raise LookupError(body.decode())

    async def whole(base: str) -> None:
        await WebClient().get(WebRequest(url=f"{base}/x", most_bytes=MOST), read)

    with ScriptedServer() as server:
        server.on("GET", "/x", answering(b"why"))
        with pytest.raises(LookupError, match="why"):
            asyncio.run(whole(server.base))
