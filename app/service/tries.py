"""Which of many nodes to ask the planner about: each question costs, and the event loop waits.

What a node's victims give back is compared first: when some were not enough, others that give no
more of anything are not either. And at most :data:`TRIES` are asked about. The first of them go in
kube-scheduler's order; but what is short may be the quota of a queue, and those that it prefers
need not be of that queue, so the others are those that give back most to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from app.cache.cluster import ClusterCache
from app.cache.members import PLACED_KINDS
from app.model.ids import NodeName, PodUid, QueueName
from app.model.pod import Pod
from app.model.resources import Amounts

TRIES = 8

Freed = Mapping[tuple[str, str, str], int]
"""What victims give back, by whom it is missed (what it is, its name) and resource."""

_CLUSTER, _QUEUE, _NAMESPACE = "cluster", "queue", "namespace"


def freed_by(cache: ClusterCache, victims: Iterable[PodUid], *, namespace: str) -> Freed:
    """What the cluster, the queues and this namespace would have again."""
    freed: Counter[tuple[str, str, str]] = Counter()
    for pod in filter(None, map(cache.pod, victims)):
        holders = [(_CLUSTER, "")]
        if pod.namespace == namespace:
            holders.append((_NAMESPACE, namespace))
        queue = _queue_of(cache, pod)
        if queue is not None:
            holders += [(_QUEUE, ""), (_QUEUE, queue)]
        for kind, name in holders:
            for resource, amount in pod.shape.requests:
                freed[kind, name, resource] += amount
    return freed


def first_accepted(
    freed: Mapping[NodeName, Freed],
    accepts: Callable[[NodeName], bool],
    *,
    queue: QueueName,
    asked: Amounts,
) -> NodeName | None:
    """The first node that is accepted; ``freed`` is in the order to prefer."""
    refused: list[Freed] = []

    def look(order: Sequence[NodeName], *, limit: int) -> NodeName | None:
        for node in order:
            if any(_no_more(freed[node], than) for than in refused):
                continue
            if len(refused) >= limit:
                return None
            if accepts(node):
                return node
            refused.append(freed[node])
        return None

    def helps(node: NodeName) -> tuple[float, float]:
        """How much of what is asked for its queue has again, and all queues."""
        mine, all_queues = (
            sum(min(freed[node].get((_QUEUE, name, r), 0) / n, 1.0) for r, n in asked if n)
            for name in (queue, "")
        )
        return -mine, -all_queues

    found = look(list(freed), limit=TRIES // 2)
    return found or look(sorted(freed, key=helps), limit=TRIES)


def _queue_of(cache: ClusterCache, pod: Pod) -> QueueName | None:
    """The queue that it counts for."""
    member = cache.members.get(pod.uid)
    counted = member is not None and member.kind in PLACED_KINDS
    return cache.groups[member.group].queue if member and counted else None


def _no_more(freed: Freed, than: Freed) -> bool:
    return all(amount <= than.get(what, 0) for what, amount in freed.items())
