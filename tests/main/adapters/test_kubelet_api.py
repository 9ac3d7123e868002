"""The simulated kubelet's connections to an API server of its own right."""

import asyncio
import gc
import threading
import warnings
from pathlib import Path

from aiohttp import web

from app.kube.client import ApiClient
from app.kube.config import Connection, load
from app.main.adapters.kubelet_api import HttpKubeletApi, watching
from app.sandbox.ports import Watched
from tests.kube.server import PATIENCE_S, ScriptedServer, item, line
from tests.kube.tls import self_signed


async def give_up(connection: Connection) -> None:
    """End in the middle of a watch, as a kubelet does."""
    heard = asyncio.Event()

    async def follow(api: HttpKubeletApi) -> None:
        async for _ in api.watch(Watched.PODS, "1"):
            heard.set()

    async with ApiClient(connection) as client, watching() as session:
        api = HttpKubeletApi(client, connection=connection, session=session)
        following = asyncio.create_task(follow(api))
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def test_a_watch_that_is_given_up_is_closed_with_its_session(tmp_path: Path) -> None:
    free = threading.Event()

    async def deaf(_server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        """Does not hear that its peer says good-bye."""
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line("ADDED", item("a", 2)))
        free.wait(PATIENCE_S)
        return response

    context, _ = self_signed(tmp_path)
    with ScriptedServer(context) as server:
        server.on("GET", "/api/v1/pods", deaf)
        kubeconfig = server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})
        asyncio.run(give_up(load(kubeconfig)))
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always", ResourceWarning)
            gc.collect()
        free.set()
    assert [str(warning.message) for warning in unclosed] == []
