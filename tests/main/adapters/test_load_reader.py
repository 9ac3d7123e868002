"""Asking Prometheus and the metrics API, on real sockets."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from app.kube import config
from app.kube.client import ApiClient
from app.main.adapters.load_reader import CPU_QUERY, MEMORY_QUERY, METRICS, LoadReaders
from app.model.ids import NodeName
from app.model.load import MetricsConf, MetricsType, NodeLoad
from app.service.ports import LoadError
from tests.builders import GIB, make_node
from tests.kube.server import Handler, ScriptedServer

SUCCESS = b'{"status": "success", "data": {"resultType": "%s", "result": [%s]}}'
AT = 1_700_000_000.5
NODES = {NodeName(name): make_node(name, cpu=4000, memory=8 * GIB) for name in ("a", "b")}


def read(server: ScriptedServer, folder: Path, kind: MetricsType) -> dict[NodeName, NodeLoad]:
    async def whole() -> dict[NodeName, NodeLoad]:
        async with ApiClient(config.load(server.kubeconfig(folder))) as client:
            reader = LoadReaders(client, lambda: NODES)
            return dict(await reader.read_loads(MetricsConf(kind, address=server.base)))

    return asyncio.run(whole())


def vector(**values: str) -> bytes:
    """An answer; a name is an instance, ``node_a`` one with the label ``node``."""
    result = []
    for name, value in values.items():
        label, _, short = name.rpartition("_")
        instance = {"instance": "10.0.0.1:9100", "node": short} if label else {"instance": short}
        result.append({"metric": instance, "value": [AT, value]})
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": result}}
    ).encode()


def answering(cpu: bytes, memory: bytes, status: int = 200) -> Handler:
    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        bodies = {CPU_QUERY: cpu, MEMORY_QUERY: memory}
        return web.Response(body=bodies[request.query["query"]], status=status)

    return answer


def test_prometheus_is_asked_for_all_nodes_in_two_queries(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.on(
            "GET",
            "/api/v1/query",
            answering(vector(a="35.5", node_b="90", c="1"), vector(a="60", node_b="NaN", c="2")),
        )
        found = read(server, tmp_path, MetricsType.PROMETHEUS)
        assert found == {NodeName("a"): NodeLoad(35.5, 60.0, at=AT, window_s=600.0)}
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"<html>", 200, "not JSON"),
        (b'{"status": "error", "error": "too many"}', 200, "the query failed: too many"),
        (b'{"status": "success", "data": {"resultType": "scalar", "result": []}}', 200, "a scalar"),
        (
            b'{"status": "success", "data": {"resultType": "vector", "result": [7]}}',
            200,
            "Expected",
        ),
        (vector(a="much"), 200, "'much' is no number"),
        (b"", 503, "HTTP 503"),
    ],
)
def test_what_prometheus_must_not_say_is_told(
    body: bytes, status: int, said: str, tmp_path: Path
) -> None:
    with ScriptedServer() as server:
        server.on("GET", "/api/v1/query", answering(body, body, status))
        with pytest.raises(LoadError, match=said):
            read(server, tmp_path, MetricsType.PROMETHEUS)


def test_the_metrics_api_tells_what_is_used_of_what_nodes_offer(tmp_path: Path) -> None:
    items = [
        {
            "metadata": {"name": name},
            "timestamp": "2023-11-14T22:13:20Z",
            "window": "10.062s",
            "usage": {"cpu": "1000m", "memory": "2Gi"},
        }
        for name in ("a", "gone")
    ]

    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "NodeMetricsList", "items": items})

    with ScriptedServer() as server:
        server.on("GET", METRICS, answer)
        found = read(server, tmp_path, MetricsType.METRICS_SERVER)
        assert found == {NodeName("a"): NodeLoad(25.0, 25.0, at=1_700_000_000.0, window_s=10.062)}


def test_a_cluster_without_the_metrics_api_is_told(tmp_path: Path) -> None:
    with ScriptedServer() as server, pytest.raises(LoadError, match=METRICS):
        read(server, tmp_path, MetricsType.METRICS_SERVER)
