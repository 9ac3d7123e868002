"""How busy nodes are, as something that measures them says (volcano.md §3.6, ``usage``)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

NODE_LOAD: Final = "pumice.sh/node-load"
"""Annotation of a node: its load, as JSON."""

FRESH_S: Final = 300.0
"""What was measured longer ago tells nothing, as in Volcano."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """What pods request that came too late to be measured: millicores and bytes.

    ``no_cpu`` and ``no_memory`` count pods that request none. Pods may use ``cpu_burst`` and
    ``memory_burst`` beyond their requests.
    """

    cpu: int = 0
    memory: int = 0
    no_cpu: int = 0
    no_memory: int = 0
    cpu_burst: int = 0
    memory_burst: int = 0


NOTHING: Final = Unseen()


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """``cpu`` and ``memory`` are per cent of what the node has, averaged over ``window_s``.

    ``at``: seconds since the epoch.
    """

    cpu: float
    memory: float
    at: float
    window_s: float
    unseen: Unseen = NOTHING

    def is_fresh(self, now: float) -> bool:
        """Whether the load counts."""
        return abs(now - self.at) <= FRESH_S


class MetricsType(StrEnum):
    """What is asked for the loads."""

    PROMETHEUS = "prometheus"
    PROMETHEUS_ADAPTOR = "prometheus_adaptor"
    ELASTICSEARCH = "elasticsearch"
    METRICS_SERVER = "metrics-server"
    ANNOTATION = "annotation"


ADDRESSED: Final = frozenset({MetricsType.PROMETHEUS, MetricsType.ELASTICSEARCH})
"""Sources that have an address of their own; other sources answer through the API server."""


@dataclass(frozen=True, slots=True)
class Index:
    """Where Elasticsearch keeps what Metricbeat measured, and the credentials for it.

    ``host_field`` is the field that has the names of nodes. Without ``username`` no credentials
    are sent.
    """

    pattern: str = "metricbeat-*"
    host_field: str = "host.hostname"
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class MetricsConf:
    """``metrics`` of the configuration; ``address`` is a URL without a slash at its end.

    ``window_s``: over so many seconds loads are averaged that a query asks for.
    """

    type: MetricsType
    address: str = ""
    interval_s: float = 30.0
    insecure: bool = False
    window_s: float = 600.0
    index: Index = Index()
