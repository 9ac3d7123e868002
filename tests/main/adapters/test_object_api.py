"""The controllers' port over the API server's client: what is no object is told as a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.controllers.ports import ApiError, Failure
from app.kube.client import ApiClient
from app.kube.config import load
from app.main.adapters.object_api import ObjectApi
from app.wire.kinds import QUEUES
from app.wire.unstructured import Key
from tests.kube.server import LOGIN_PAGE, Handler, ScriptedServer, answer
from tests.webhooks.objects import queue

KEY = Key("", "q")
CALLS: dict[str, Callable[[ObjectApi], Awaitable[object]]] = {
    "GET": lambda api: api.get(QUEUES, KEY),
    "POST": lambda api: api.create(QUEUES, queue("q")),
    "PUT": lambda api: api.update(QUEUES, queue("q")),
    "PATCH": lambda api: api.patch(QUEUES, KEY, {"spec": {"weight": 2}}),
}


def outcome(method: str, folder: Path, handler: Handler) -> Failure:
    """How the call of that method fails."""

    async def call(server: ScriptedServer) -> None:
        async with ApiClient(load(server.kubeconfig(folder))) as client:
            await CALLS[method](ObjectApi(client))

    with ScriptedServer() as server:
        server.on(method, QUEUES.path() if method == "POST" else QUEUES.path(KEY), handler)
        with pytest.raises(ApiError) as caught:
            asyncio.run(call(server))
    return caught.value.failure


@pytest.mark.parametrize("method", CALLS)
def test_an_answer_from_somebody_else_is_a_failure_that_passes(method: str, tmp_path: Path) -> None:
    assert outcome(method, tmp_path, answer(LOGIN_PAGE)) is Failure.PASSING


def test_a_patch_for_an_object_that_was_made_anew_is_a_conflict(tmp_path: Path) -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "why", "field": "metadata.uid"}]
    refusal = answer({"reason": "Invalid", "details": {"causes": causes}}, status=422)
    assert outcome("PATCH", tmp_path, refusal) is Failure.CONFLICT
