"""The simulated kubelet on a real API server: the same behaviour, and every status is accepted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from httpx2 import AsyncClient

from app.kube.client import ApiClient
from app.kube.config import load
from app.main.adapters.kubelet_api import HttpKubeletApi, watching
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.certificates import KeyPair
from app.sandbox.kubelet import Kubelet
from app.wire.documents import Document
from tests.clusters.client import tls_context
from tests.clusters.controlplane import ControlPlane
from tests.sandbox.documents import node, pod

pytestmark = pytest.mark.real

PODS = "/api/v1/namespaces/default/pods"
LIMIT_S = 20.0


async def start(client: AsyncClient, document: Document) -> str:
    name = document["metadata"]["name"]
    created = await client.post(PODS, json=document)
    assert created.status_code == 201, created.text
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
    assert (await client.post(f"{PODS}/{name}/binding", json=binding)).status_code == 201
    return f"{PODS}/{name}"


async def until(
    client: AsyncClient, path: str, reached: Callable[[int, Document], bool]
) -> Document:
    async with asyncio.timeout(LIMIT_S):
        while True:
            answer = await client.get(path)
            if reached(answer.status_code, answer.json()):
                found: Document = answer.json()
                return found
            await asyncio.sleep(0.05)


def in_phase(phase: str) -> Callable[[int, Document], bool]:
    return lambda code, body: code == 200 and body["status"].get("phase") == phase


def is_gone(code: int, body: Document) -> bool:
    return code == 404


async def lives(client: AsyncClient) -> None:
    assert (await client.post("/api/v1/nodes", json=node("n1"))).status_code == 201
    server = await start(client, pod("server", terminationGracePeriodSeconds=5))
    inits = [{"name": "i", "image": "x", "command": ["sleep", "0.2"]}]
    failing = pod(
        "failing",
        command=["sh", "-c", "sleep 0.2; exit 3"],
        restartPolicy="Never",
        initContainers=inits,
    )
    failed = await until(client, await start(client, failing), in_phase("Failed"))
    ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    slow = await start(client, pod("slow", activeDeadlineSeconds=1))
    stopped = await until(client, slow, in_phase("Failed"))
    assert stopped["status"]["reason"] == "DeadlineExceeded"
    big = await start(client, pod("big", resources={"requests": {"cpu": "9"}}))
    rejected = await until(client, big, in_phase("Failed"))
    assert rejected["status"]["reason"] == "OutOfcpu"
    events = (await client.get("/api/v1/namespaces/default/events")).json()["items"]
    assert {event["reason"] for event in events} >= {"DeadlineExceeded", "OutOfcpu"}
    running = await until(client, server, in_phase("Running"))
    statuses = {one["type"]: one["status"] for one in running["status"]["conditions"]}
    assert statuses["Ready"] == statuses["PodScheduled"] == "True"
    assert running["status"]["podIP"]
    shell = await start(
        client, pod("shell", command=["sh", "-c", "sleep 99"], terminationGracePeriodSeconds=1)
    )
    await until(client, shell, in_phase("Running"))
    for path in (server, shell, slow, big, f"{PODS}/failing"):
        await client.delete(path)
    for path in (server, shell, slow, big, f"{PODS}/failing"):
        await until(client, path, is_gone)


async def scenario(kubeconfig: Path, context: ssl.SSLContext) -> None:
    connection = load(kubeconfig)
    async with (
        AsyncClient(base_url=connection.host, verify=context, timeout=None) as client,
        # The kubelet is ended in the middle of its requests; httpx leaks such connections.
        ApiClient(connection) as writing,
        watching() as session,
    ):
        api = HttpKubeletApi(writing, connection=connection, session=session)
        kubelet = Kubelet(api, clock=WallClock(), start_seconds=0.1)
        serving = asyncio.create_task(kubelet.run())
        try:
            await lives(client)
            assert not serving.done(), serving.exception()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def test_pods_live_and_die_on_the_real_api_server(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    with ControlPlane(folder) as control_plane:
        context = tls_context(
            control_plane.authority.certificate,
            KeyPair(folder / "pki" / "admin.crt", folder / "pki" / "admin.key"),
        )
        asyncio.run(scenario(Path(control_plane.kubeconfig), context))
