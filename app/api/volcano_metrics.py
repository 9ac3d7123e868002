"""Volcano's metrics of queues and PodGroups, for the dashboards and alerts that read them.

Names, labels and units are volcano.md §8.1's: milli-CPU, bytes, and other resources in thousandths.
The values are worked out at each scrape, from what is true then, so planning does not pay for them
and a queue that is gone leaves nothing behind. A replica that does not lead has none.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

from app.api.leader_metrics import LeaderMetrics
from app.core.figures import QueueFigures
from app.model.amounts import CPU, MEMORY, PODS, Amounts
from app.model.ids import QueueName
from app.model.resources import Vector
from app.model.workload import GroupPhase
from app.telemetry.metrics import CYCLE_SECONDS

_PREFIX = "volcano_"
_SUMS: dict[str, Callable[[QueueFigures], Vector | None]] = {
    "allocated": lambda figures: figures.allocated,
    "request": lambda figures: figures.request,
    "inqueue": lambda figures: figures.inqueue,
    "deserved": lambda figures: figures.deserved,
    "real_capacity": lambda figures: figures.real_capability,
}
_NOTHING: Amounts = ((CPU, 0), (MEMORY, 0))
_PHASES = (
    GroupPhase.PENDING,
    GroupPhase.INQUEUE,
    GroupPhase.RUNNING,
    GroupPhase.UNKNOWN,
    GroupPhase.COMPLETED,
)


class VolcanoMetrics(LeaderMetrics):
    """Reads the cache and the planner."""

    def _families(self) -> Iterator[Metric]:
        yield from self._queues(self._planning.queries.queue_figures())
        yield from self._pod_groups()
        yield _sessions()

    def _queues(self, figures: dict[QueueName, QueueFigures]) -> Iterator[Metric]:
        axis, queues = self._cache.node_usage.axis, self._cache.queues
        for what, vector_of in _SUMS.items():
            vectors = {name: vector_of(each) for name, each in figures.items()}
            known = {n: axis.amounts(vector) for n, vector in vectors.items() if vector is not None}
            yield from _resources(what, {n: _NOTHING + each for n, each in known.items()})
        # A limit that there is not has no series: 0 would be one that is used up.
        limited = {n: queues[n].capability for n in figures if queues[n].capability}
        yield from _resources("capacity", limited)
        yield _gauge(
            "queue_share",
            "What the queue holds of what it deserves.",
            {name: each.share for name, each in figures.items() if each.share is not None},
        )
        yield _gauge(
            "queue_weight",
            "The queue's weight.",
            {name: float(queues[name].weight) for name in figures},
        )
        yield _gauge(
            "queue_overused",
            "1 when the queue holds all it deserves.",
            {name: float(each.overused) for name, each in figures.items()},
        )

    def _pod_groups(self) -> Iterator[Metric]:
        stored = [g.pod_group for g in self._cache.groups.values() if g.pod_group is not None]
        counts = Counter((group.queue, group.phase or GroupPhase.PENDING) for group in stored)
        for phase in _PHASES:
            yield _gauge(
                f"queue_pod_group_{phase.value.lower()}_count",
                f"PodGroups of the queue in phase {phase.value}.",
                {name: float(counts[name, phase]) for name in sorted(self._cache.queues)},
            )
        yield GaugeMetricFamily(
            f"{_PREFIX}unschedule_job_count",
            "Groups that did not get all their places.",
            value=len(self._planning.last_plan.refusals),
        )


def _resources(what: str, amounts: dict[QueueName, Amounts]) -> Iterator[Metric]:
    """Three families: CPU, memory and other resources, each of the queues that have some of it."""
    by_name = {name: dict(each) for name, each in amounts.items()}
    title = what.replace("_", " ").capitalize()
    for resource, unit in ((CPU, "milli_cpu"), (MEMORY, "memory_bytes")):
        yield _gauge(
            f"queue_{what}_{unit}",
            f"{title} {resource} of the queue.",
            {name: float(each[resource]) for name, each in by_name.items() if resource in each},
        )
    scalars = GaugeMetricFamily(
        f"{_PREFIX}queue_{what}_scalar_resources",
        f"{title} resources of the queue besides CPU and memory, in thousandths.",
        labels=("queue_name", "resource"),
    )
    for name, each in by_name.items():
        for resource, amount in each.items():
            if resource not in (CPU, MEMORY, PODS):
                scalars.add_metric((name, resource), 1000.0 * amount)
    yield scalars


def _gauge(name: str, text: str, values: dict[QueueName, float]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, text, labels=("queue_name",))
    for queue, value in values.items():
        family.add_metric((queue,), value)
    return family


def _sessions() -> Metric:
    """The time of planning cycles, in milliseconds."""
    (seconds,) = CYCLE_SECONDS.collect()
    buckets = [
        (_bound_ms(each.labels["le"]), each.value)
        for each in seconds.samples
        if each.name.endswith("_bucket")
    ]
    total = next(each.value for each in seconds.samples if each.name.endswith("_sum"))
    return HistogramMetricFamily(
        f"{_PREFIX}e2e_scheduling_latency_milliseconds",
        "Time of a planning cycle, turns given to the event loop included.",
        buckets=buckets,
        sum_value=1000.0 * total,
    )


def _bound_ms(seconds: str) -> str:
    return seconds if seconds == "+Inf" else f"{1000.0 * float(seconds):g}"
