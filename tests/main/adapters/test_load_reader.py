"""Asking Prometheus and the metrics API, on real sockets."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app.kube import config
from app.kube.client import ApiClient
from app.main.adapters.load_reader import (
    CPU_SHARE,
    MEMORY_SHARE,
    METRICS,
    LoadReaders,
    queries,
)
from app.model.ids import NodeName
from app.model.load import ADDRESSED, Index, MetricsConf, MetricsType, NodeLoad
from app.service.ports import LoadError
from tests.builders import GIB, make_node
from tests.kube.server import Handler, ScriptedServer

SUCCESS = b'{"status": "success", "data": {"resultType": "%s", "result": [%s]}}'
AT = 1_700_000_000.5
NODES = {NodeName(name): make_node(name, cpu=4000, memory=8 * GIB) for name in ("a", "b")}


def read(
    server: ScriptedServer, folder: Path, kind: MetricsType, **fields: Any
) -> dict[NodeName, NodeLoad]:
    conf = MetricsConf(kind, address=server.base if kind in ADDRESSED else "", **fields)

    async def whole() -> dict[NodeName, NodeLoad]:
        async with ApiClient(config.load(server.kubeconfig(folder))) as client:
            reader = LoadReaders(client, lambda: NODES)
            return dict(await reader.read_loads(conf))

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
        bodies = dict(zip(queries(600.0), (cpu, memory), strict=True))
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
    with ScriptedServer() as server, pytest.raises(LoadError, match=r"metrics-server: .*404"):
        read(server, tmp_path, MetricsType.METRICS_SERVER)


def hosts(*buckets: tuple[str, float | None, float | None], others: int = 0) -> dict[str, Any]:
    """An answer of Elasticsearch: hosts with shares of cpu and memory."""
    listed = [
        {
            "key": name,
            "doc_count": 40,
            "cpu": {"value": cpu},
            "mem": {"value": memory},
            "at": {"value": AT * 1000, "value_as_string": "2023"},
        }
        for name, cpu, memory in buckets
    ]
    return {
        "took": 3,
        "aggregations": {"hosts": {"sum_other_doc_count": others, "buckets": listed}},
    }


def test_elasticsearch_is_asked_once_for_all_nodes(tmp_path: Path) -> None:
    asked: list[web.BaseRequest] = []

    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request)
        return web.json_response(hosts(("a", 0.355, 0.6), ("b", 0.5, None), ("c", 0.1, 0.1)))

    index = Index("beats-*", "agent.name", "reader", "secret")
    with ScriptedServer() as server:
        server.on("GET", "/beats-*/_search", answer)
        found = read(server, tmp_path, MetricsType.ELASTICSEARCH, index=index, window_s=300.0)
    assert found == {NodeName("a"): NodeLoad(35.5, 60.0, at=AT, window_s=300.0)}
    [request] = asked
    assert request.headers["authorization"] == "Basic cmVhZGVyOnNlY3JldA=="
    assert request.query["source_content_type"] == "application/json"
    said = json.loads(request.query["source"])
    [within] = said["query"]["bool"]["filter"]
    assert within == {"range": {"@timestamp": {"gte": "now-300s", "lt": "now"}}}
    by_host = said["aggs"]["hosts"]
    assert by_host["terms"]["field"] == "agent.name"
    assert [each["field"] for each in by_host["aggs"]["cpu"].values()] == ["host.cpu.usage"]
    assert [each["field"] for each in by_host["aggs"]["mem"].values()] == [
        "system.memory.actual.used.pct"
    ]


def test_elasticsearch_gets_no_credentials_where_none_are_given(tmp_path: Path) -> None:
    asked: list[web.BaseRequest] = []

    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request)
        return web.json_response(hosts())

    with ScriptedServer() as server:
        server.on("GET", "/metricbeat-*/_search", answer)
        assert read(server, tmp_path, MetricsType.ELASTICSEARCH) == {}
    assert "authorization" not in asked[0].headers


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"error": "no such index"}, 404, "HTTP 404"),
        ({"took": 3}, 200, "missing required field `aggregations`"),
        (hosts(("a", 0.1, 0.1), others=7), 200, "more than 10000 hosts"),
    ],
)
def test_what_elasticsearch_must_not_say_is_told(
    body: dict[str, Any], status: int, said: str, tmp_path: Path
) -> None:
    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(body, status=status)

    with ScriptedServer() as server:
        server.on("GET", "/metricbeat-*/_search", answer)
        index = Index(username="reader", password="secret")
        with pytest.raises(LoadError, match=said) as failed:
            read(server, tmp_path, MetricsType.ELASTICSEARCH, index=index)
    assert "secret" not in str(failed.value)


def shares(**values: str) -> Handler:
    """An answer of the adapter of Prometheus: shares of one, by node."""
    items = [
        {
            "describedObject": {"kind": "Node", "name": name, "apiVersion": "/v1"},
            "metricName": "some",
            "timestamp": "2023-11-14T22:13:20Z",
            "value": value,
            "selector": None,
        }
        for name, value in values.items()
    ]

    async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "MetricValueList", "metadata": {}, "items": items})

    return answer


def test_the_adapter_of_prometheus_tells_shares_of_all_nodes(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.on("GET", CPU_SHARE, shares(a="355m", b="1", gone="1"))
        server.on("GET", MEMORY_SHARE, shares(a="0.6"))
        found = read(server, tmp_path, MetricsType.PROMETHEUS_ADAPTOR)
    assert found == {NodeName("a"): NodeLoad(35.5, 60.0, at=1_700_000_000.0, window_s=600.0)}


@pytest.mark.parametrize(("value", "said"), [("much", "is not a quantity"), (None, "404")])
def test_what_the_adapter_must_not_say_is_told(
    value: str | None, said: str, tmp_path: Path
) -> None:
    with ScriptedServer() as server:
        if value is not None:
            server.on("GET", CPU_SHARE, shares(a=value))
            server.on("GET", MEMORY_SHARE, shares(a=value))
        with pytest.raises(LoadError, match=f"prometheus_adaptor: .*{said}"):
            read(server, tmp_path, MetricsType.PROMETHEUS_ADAPTOR)
