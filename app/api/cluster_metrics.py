"""How much of the cluster is in use, borrowed, collected, and idle while gangs wait.

Worked out when a scrape asks, from what is true then. The share that is idle while gangs wait is
the one to raise an alarm for; its label names the cause that keeps most gangs waiting.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from app.api.leader_metrics import LeaderMetrics
from app.model.amounts import PODS
from app.model.reason import Refusal
from app.model.resources import Vector

_PREFIX = "pumice_cluster_"


class ClusterMetrics(LeaderMetrics):
    """Reads the cache and the planner."""

    def _families(self) -> Iterator[Metric]:
        total = self._cache.node_usage.total()
        used, _ = self._cache.node_usage.sorted_used()
        in_use: Vector = used.sum(axis=0)
        collected = sum(
            (amount for each in self._cache.collected for _, amount in each.nodes),
            np.zeros_like(total),
        )
        figures = self._planning.queries.queue_figures().values()
        borrowed = sum(
            (each.borrowed for each in figures if each.borrowed is not None), np.zeros_like(total)
        )
        idle: Vector = np.maximum(total - in_use - collected, 0)
        yield self._family("in_use", "Share of the cluster that is in use.", in_use, total)
        yield self._family(
            "borrowed", "Share that queues hold beyond what they deserve.", borrowed, total
        )
        yield self._family(
            "collected", "Share that is kept for gangs which wait for more.", collected, total
        )
        yield self._idle(idle, total, _main_cause(self._planning.last_plan.refusals.values()))

    def _family(self, name: str, text: str, amount: Vector, total: Vector) -> Metric:
        family = GaugeMetricFamily(_PREFIX + name, text, labels=("resource",))
        for resource, share in self._shares(amount, total):
            family.add_metric((resource,), share)
        return family

    def _idle(self, idle: Vector, total: Vector, cause: str) -> Metric:
        family = GaugeMetricFamily(
            _PREFIX + "idle_while_waiting",
            "Share that is idle while gangs wait, by the cause that keeps most of them waiting.",
            labels=("resource", "cause"),
        )
        for resource, share in self._shares(idle, total):
            family.add_metric((resource, cause), share if cause else 0.0)
        return family

    def _shares(self, amount: Vector, total: Vector) -> Iterator[tuple[str, float]]:
        names = self._cache.node_usage.axis.names
        for name, part, whole in zip(names, amount.tolist(), total.tolist(), strict=False):
            if whole and name != PODS:
                yield name, part / whole


def _main_cause(refusals: Iterable[Refusal]) -> str:
    """The cause that keeps most gangs waiting; empty when none waits."""
    counts = Counter(refusal.cause.value for refusal in refusals)
    return min(counts, key=lambda cause: (-counts[cause], cause), default="")
