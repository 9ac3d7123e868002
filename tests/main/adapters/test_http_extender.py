"""The client of the HTTP extender, against a server that does what a test says."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from aiohttp import web

from app.kube import config
from app.kube.client import ApiClient
from app.main.adapters.http_extender import MOST_BYTES, HttpExtenderClient
from app.service.ports import HttpExtenderError
from tests.kube.server import Handler, ScriptedServer
from tests.main.adapters.test_web_client import answering, silent

T = TypeVar("T")


def run(server: ScriptedServer, ask: Callable[[HttpExtenderClient], Awaitable[T]]) -> T:
    async def whole() -> T:
        with TemporaryDirectory() as folder:
            connection = config.load(server.kubeconfig(Path(folder)))
        async with ApiClient(connection) as api, HttpExtenderClient(api) as client:
            return await ask(client)

    return asyncio.run(whole())


def posted(server: ScriptedServer, body: bytes = b"{}", *, timeout_s: float = 5.0) -> bytes:
    return run(server, lambda c: c.ask(f"{server.base}/judge", body, timeout_s=timeout_s))


@pytest.mark.parametrize("size", [2, 1 << 19])
def test_the_body_is_posted_as_json_and_the_answer_handed_back(size: int) -> None:
    came: list[tuple[str, int, str]] = []

    async def judge(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        came.append((request.headers["content-type"], len(body), request.headers["content-length"]))
        return web.Response(body=b'{"code": 0}')

    with ScriptedServer() as server:
        server.on("POST", "/judge", judge)
        assert posted(server, b"x" * size) == b'{"code": 0}'
    assert came == [("application/json", size, str(size))]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering(b"", status=503), "HTTP 503"),
        (answering(b"", status=404), "HTTP 404"),
        (answering(b"", status=307, headers={"location": "/other"}), "HTTP 307"),
        (answering(b"y" * (MOST_BYTES + 1)), f"longer than {MOST_BYTES} bytes"),
    ],
    ids=["503", "404", "redirect", "long"],
)
def test_an_answer_that_is_none_is_told(answer: Handler, said: str) -> None:
    with ScriptedServer() as server:
        server.on("POST", "/judge", answer)
        with pytest.raises(HttpExtenderError, match=said):
            posted(server)
        assert [seen.path for seen in server.seen] == ["/judge"]


def test_a_server_that_is_silent_is_given_up() -> None:
    with ScriptedServer() as server:
        server.on("POST", "/judge", silent)
        with pytest.raises(HttpExtenderError, match=r"no answer within 0\.2 s"):
            posted(server, timeout_s=0.2)


def test_a_server_that_is_not_there_is_told() -> None:
    with ScriptedServer() as server:
        pass
    with pytest.raises(HttpExtenderError, match="Connect call failed"):
        posted(server)


def test_calls_share_connections() -> None:
    async def thrice(client: HttpExtenderClient) -> None:
        for _ in range(3):
            await client.ask(f"{server.base}/judge", b"{}", timeout_s=5.0)

    ports: set[object] = set()

    async def judge(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        return web.Response(body=b"{}")

    with ScriptedServer() as server:
        server.on("POST", "/judge", judge)
        run(server, thrice)
    assert len(ports) == 1


def test_the_manifest_of_a_pod_is_read_as_it_is_stored() -> None:
    path = "/api/v1/namespaces/default/pods/p"
    with ScriptedServer() as server:
        server.on("GET", path, answering(b'{"metadata": {}}'))
        assert run(server, lambda c: c.read_manifest("default", "p")) == b'{"metadata": {}}'
        server.on("GET", path, answering(b"", status=404))
        assert run(server, lambda c: c.read_manifest("default", "p")) is None
