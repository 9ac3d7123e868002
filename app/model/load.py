"""How busy nodes are, as something that measures them says (volcano.md §3.6, ``usage``)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NODE_LOAD: Final = "pumice.sh/node-load"
"""Annotation of a node: its load, as JSON."""

FRESH_S: Final = 300.0
"""What was measured longer ago tells nothing, as in Volcano."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """What pods request that came too late to be measured: millicores and bytes.

    ``no_cpu`` and ``no_memory`` count pods that request none.
    """

    cpu: int = 0
    memory: int = 0
    no_cpu: int = 0
    no_memory: int = 0


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
    METRICS_SERVER = "metrics-server"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True)
class MetricsConf:
    """``metrics`` of the configuration; ``address`` is that of Prometheus, without a slash."""

    type: MetricsType
    address: str = ""
    interval_s: float = 30.0
    insecure: bool = False
