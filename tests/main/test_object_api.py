"""The controllers' port over the API server's client: what is no object is told as a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.controllers.ports import ApiError, Failure
from app.kube.client import ApiClient
from app.kube.config import load
from app.main.object_api import ObjectApi
from app.wire.kinds import QUEUES
from app.wire.unstructured import Key
from tests.kube.server import LOGIN_PAGE, ScriptedServer, answer
from tests.webhooks.objects import queue

KEY = Key("", "q")
CALLS: dict[str, Callable[[ObjectApi], Awaitable[object]]] = {
    "GET": lambda api: api.get(QUEUES, KEY),
    "POST": lambda api: api.create(QUEUES, queue("q")),
    "PUT": lambda api: api.update(QUEUES, queue("q")),
    "PATCH": lambda api: api.patch(QUEUES, KEY, {"spec": {"weight": 2}}),
}


@pytest.mark.parametrize("method", CALLS)
def test_an_answer_from_somebody_else_is_a_failure_that_passes(method: str, tmp_path: Path) -> None:
    async def call(server: ScriptedServer) -> None:
        async with ApiClient(load(server.kubeconfig(tmp_path))) as client:
            await CALLS[method](ObjectApi(client))

    with ScriptedServer() as server:
        path = QUEUES.path() if method == "POST" else QUEUES.path(KEY)
        server.on(method, path, answer(LOGIN_PAGE))
        with pytest.raises(ApiError) as caught:
            asyncio.run(call(server))
    assert caught.value.failure is Failure.PASSING
