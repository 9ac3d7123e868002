"""Asks Prometheus, or the metrics API of Kubernetes, how busy nodes are.

Prometheus is asked for all nodes at once: two queries, of the metrics of node_exporter that Volcano
asks for.
"""

import math
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
from app.wire.loads import read_measured, read_vector

WINDOW_S: Final = 600.0
CPU_QUERY: Final = (
    "avg_over_time((100 - (avg by (instance, node) "
    '(rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100))[10m:30s])'
)
MEMORY_QUERY: Final = (
    "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)"
    "[10m:30s])"
)
METRICS: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
_MOST_BYTES: Final = 64 * 1024 * 1024
_TIMEOUT_S: Final = 10.0
_UNKNOWN: Final = (0.0, math.nan)


class LoadReaders:
    """Implements :class:`app.service.ports.LoadReader`; ``nodes`` are those that are known."""

    def __init__(self, client: ApiClient, nodes: Callable[[], Mapping[NodeName, Node]]) -> None:
        self._client = client
        self._nodes = nodes
        self._web = WebClient(timeout_s=_TIMEOUT_S)

    async def read_loads(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        """The loads of nodes; raises LoadError."""
        try:
            if conf.type is MetricsType.PROMETHEUS:
                return await self._from_prometheus(conf)
            return self._measured(await self._client.get(METRICS))
        except WebError as error:
            raise LoadError(f"{conf.address}: {error}") from error
        except (KubeError, DecodeError, ValueError) as error:
            raise LoadError(f"{conf.address or METRICS}: {error}") from error

    async def _from_prometheus(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        cpu, memory = [await self._query(conf, text) for text in (CPU_QUERY, MEMORY_QUERY)]
        found: dict[NodeName, NodeLoad] = {}
        for name in self._nodes():
            at, busy = cpu.get(name, _UNKNOWN)
            _, used = memory.get(name, _UNKNOWN)
            if math.isfinite(busy) and math.isfinite(used):
                found[name] = NodeLoad(busy, used, at=at, window_s=WINDOW_S)
        return found

    async def _query(self, conf: MetricsConf, text: str) -> Mapping[str, tuple[float, float]]:
        url = f"{conf.address}/api/v1/query?query={quote(text, safe='')}"
        request = WebRequest(url=url, insecure=conf.insecure, most_bytes=_MOST_BYTES)
        return await self._web.get(request, read_vector)

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
