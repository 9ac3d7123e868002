"""What a cycle went by, and whether that still holds when its plan is published.

Room on the nodes is counted again for every gang in any case. What queues and namespaces may hold
is not, as that costs a look at all queues: only when something is less than the cycle thought.
PriorityClasses and a queue's priority say which gang goes first, not how much there is: what
changes of these counts from the next cycle on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.core.policy import Policies
from app.model.ids import QueueName
from app.model.resources import Vector
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import Queue


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotToken:
    """The cluster and the configuration as they were when a cycle began."""

    snapshot: Snapshot
    policies: Policies

    def is_overtaken(self, cache: ClusterCache, policies: Policies, *, admits: bool) -> bool:
        """Whether there may be less for any group by now than this says.

        Quotas, which change with every pod, matter only to a cycle that ``admits`` groups.
        """
        before = self.snapshot
        return (
            policies is not self.policies
            or differ(before.queues, cache.queues)
            or (admits and before.quotas != tuple(cache.quotas.values()))
            or has_more(cache.total(), before.total)
            or _have_grown(before.usage, cache.registry.usage())
        )


def differ(before: Mapping[QueueName, Queue], now: Mapping[QueueName, Queue]) -> bool:
    """Whether other queues, or other limits of them, count than before."""
    if before.keys() != now.keys():
        return True
    return any(
        queue is not before[name] and queue.limits != before[name].limits
        for name, queue in now.items()
    )


def _have_grown(
    before: Mapping[QueueName, QueueUsage], now: Mapping[QueueName, QueueUsage]
) -> bool:
    """Whether a queue's groups hold or claim more: those placed on demand, bound by others."""
    return any(
        usage is not before.get(name) and _has_grown(before.get(name), usage)
        for name, usage in now.items()
    )


def _has_grown(before: QueueUsage | None, now: QueueUsage) -> bool:
    if before is None:
        return bool(taken(now).any() or now.inqueue.any())
    return (
        has_more(before.allocated, now.allocated)
        or has_more(taken(before), taken(now))
        or has_more(claimed(before), claimed(now))
    )


def taken(usage: QueueUsage) -> Vector:
    """What the queue's groups hold, and what their terminating members have."""
    return usage.allocated if usage.releasing is None else usage.allocated + usage.releasing


def claimed(usage: QueueUsage) -> Vector:
    """What the queue's groups hold and may still claim."""
    return usage.allocated + usage.inqueue - usage.elastic


def has_more(less: Vector, more: Vector) -> bool:
    """Whether ``more`` has more of anything; what is new on the axis no group was given."""
    width = min(len(less), len(more))
    return bool((more[:width] > less[:width]).any())
