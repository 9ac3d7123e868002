"""Asks what measures nodes how busy they are: for all of them at once.

Prometheus is asked for the metrics of node_exporter that Volcano asks for, Elasticsearch for those
of Metricbeat; the adapter of Prometheus and the metrics-server answer through the API server.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from app.controllers.ports import WebError, WebRequest
from app.kit.durations import parse_duration
from app.kube.client import ApiClient
from app.kube.errors import KubeError
from app.main.adapters.web_client import WebClient
from app.model.amounts import CPU, MEMORY
from app.model.ids import NodeName
from app.model.load import MetricsConf, MetricsType, NodeLoad
from app.model.node import Node
from app.service.ports import LoadError
from app.wire.errors import DecodeError
from app.wire.loads import (
    read_hosts,
    read_measured,
    read_shares,
    read_vector,
    search_for,
)

METRICS: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"
CPU_SHARE: Final = f"{CUSTOM}node_cpu_usage_avg"
MEMORY_SHARE: Final = f"{CUSTOM}node_memory_usage_avg"
_MOST_BYTES: Final = 64 * 1024 * 1024
_TIMEOUT_S: Final = 10.0
_UNKNOWN: Final = (0.0, math.nan)

_Values = Mapping[str, tuple[float, float]]
"""Moment and value by the name of a node."""


def queries(window_s: float) -> tuple[str, str]:
    """What Prometheus is asked: the load of cpus, and of memory, in per cent."""
    over = f"[{window_s:.0f}s:30s]"
    idle = 'avg by (instance, node) (rate(node_cpu_seconds_total{mode="idle"}[5m]))'
    free = "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"
    return (
        f"avg_over_time((100 - ({idle} * 100)){over})",
        f"100 * avg_over_time((1 - {free}){over})",
    )


class LoadReaders:
    """Implements :class:`app.service.ports.LoadReader`; ``nodes`` are those that are known."""

    def __init__(self, client: ApiClient, nodes: Callable[[], Mapping[NodeName, Node]]) -> None:
        self._client = client
        self._nodes = nodes
        self._web = WebClient(timeout_s=_TIMEOUT_S)

    async def read_loads(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        """The loads of nodes; raises LoadError."""
        try:
            match conf.type:
                case MetricsType.PROMETHEUS:
                    return await self._from_prometheus(conf)
                case MetricsType.ELASTICSEARCH:
                    return await self._from_elasticsearch(conf)
                case MetricsType.PROMETHEUS_ADAPTOR:
                    shares = [await self._client.get(path) for path in (CPU_SHARE, MEMORY_SHARE)]
                    cpu, memory = map(read_shares, shares)
                    return self._joined(conf, cpu, memory)
            return self._measured(await self._client.get(METRICS))
        except WebError as error:
            raise LoadError(f"{conf.address}: {error}") from error
        except (KubeError, DecodeError, ValueError) as error:
            raise LoadError(f"{conf.address or conf.type}: {error}") from error

    async def _from_prometheus(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        cpu, memory = [await self._query(conf, text) for text in queries(conf.window_s)]
        return self._joined(conf, cpu, memory)

    def _joined(
        self, conf: MetricsConf, cpu: _Values, memory: _Values
    ) -> Mapping[NodeName, NodeLoad]:
        """The loads of nodes of which both are known; each value comes with its moment."""
        found: dict[NodeName, NodeLoad] = {}
        for name in self._nodes():
            at, busy = cpu.get(name, _UNKNOWN)
            _, used = memory.get(name, _UNKNOWN)
            if math.isfinite(busy) and math.isfinite(used):
                found[name] = NodeLoad(busy, used, at=at, window_s=conf.window_s)
        return found

    async def _query(self, conf: MetricsConf, text: str) -> _Values:
        url = f"{conf.address}/api/v1/query?query={quote(text, safe='')}"
        request = WebRequest(url=url, insecure=conf.insecure, most_bytes=_MOST_BYTES)
        return await self._web.get(request, read_vector)

    async def _from_elasticsearch(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        index = conf.index
        query = quote(search_for(conf.window_s, index.host_field), safe="")
        url = (
            f"{conf.address}/{quote(index.pattern, safe='*,')}/_search"
            f"?source_content_type=application%2Fjson&source={query}"
        )
        headers: dict[str, str] = {}
        if index.username:
            said = f"{index.username}:{index.password}".encode()
            headers["authorization"] = f"Basic {b64encode(said).decode()}"
        request = WebRequest(
            url=url, headers=headers, insecure=conf.insecure, most_bytes=_MOST_BYTES
        )
        hosts = await self._web.get(request, read_hosts)
        return {
            name: NodeLoad(cpu, memory, at=at, window_s=conf.window_s)
            for name in self._nodes()
            if (found := hosts.get(name)) is not None
            for cpu, memory, at in [found]
        }

    def _measured(self, body: bytes) -> Mapping[NodeName, NodeLoad]:
        found: dict[NodeName, NodeLoad] = {}
        for name, used, at, window in read_measured(body):
            node = self._nodes().get(NodeName(name))
            if node is None:
                continue
            sizes = dict(node.allocatable)
            if not (sizes.get(CPU) and sizes.get(MEMORY)):
                continue
            cpu, memory = (100.0 * used.get(each, 0) / sizes[each] for each in (CPU, MEMORY))
            found[node.name] = NodeLoad(cpu, memory, at=at, window_s=parse_duration(window))
        return found
