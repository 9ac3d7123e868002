"""Rules about one victim, whatever else is evicted with it."""

from collections.abc import Mapping

from app.core.protection.victim import Victim
from app.model.ids import QueueName
from app.model.pod import Pod
from app.model.workload import Queue

SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


def is_of_the_system(victim: Victim | Pod) -> bool:
    """Whether the cluster itself depends on the pod (volcano.md §3.6, conformance)."""
    return victim.namespace == SYSTEM_NAMESPACE or victim.priority_class in SYSTEM_CLASSES


def refuses_preemption(victim: Victim) -> bool:
    """Whether the pod says that no other pod may take its place (volcano.md §3.1, preemptable)."""
    return not victim.preemptable


def is_kept_by_queue(
    victim: Victim, *, preemptor_queue: QueueName, queues: Mapping[QueueName, Queue]
) -> bool:
    """Whether the victim's queue gives nothing to other queues (``reclaimable: false``).

    A preemptor of the same queue may have the place. A queue that is not known keeps nothing.
    """
    owner = queues.get(victim.queue)
    return owner is not None and not owner.reclaimable and victim.queue != preemptor_queue
