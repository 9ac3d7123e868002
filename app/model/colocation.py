"""Online and offline pods that share nodes (volcano.md §2.9): the names that Volcano gave them.

An agent on each node, which is not a part of Pumice, reports what online pods leave unused as
resources of their own; offline pods ask for these instead of cpu and memory.
"""

from collections.abc import Mapping
from typing import Final

from app.model.amounts import CPU, MEMORY
from app.model.booleans import boolean

BATCH_CPU: Final = "kubernetes.io/batch-cpu"
"""Resource of nodes: millicores that offline pods may use."""
BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
"""Resource of nodes: bytes that offline pods may use."""
USED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    CPU: (CPU, BATCH_CPU),
    MEMORY: (MEMORY, BATCH_MEMORY),
}
"""The resources by which pods ask for what a node measures as cpu, and as memory."""

QOS_LEVEL: Final = "volcano.sh/qos-level"
"""Annotation of pods: one of :data:`ONLINE` or :data:`OFFLINE`."""
OFFLINE: Final = "BE"
ONLINE: Final = ("LC", "HLS", "LS")
WITHOUT_BATCH: Final = frozenset({"LC", "HLS"})
"""Levels whose pods are not to use what others leave unused."""
COLOCATED: Final = "volcano.sh/oversubscription"
"""Label of nodes: the agent reports resources for offline pods there."""
EVICTING: Final = "volcano.sh/offline-job-evicting"
"""Taint of nodes, and annotation in older releases: the agent evicts offline pods there."""

CONFIG: Final = "volcano.sh/colocation-config"
"""Annotation of pods: what the agent is to do, as JSON; :data:`RESET`: nothing any more."""
CONFIG_NAME: Final = "volcano.sh/colocation-config-name"
"""Annotation of pods: the ColocationConfiguration that says so."""
RESET: Final = "{}"


def is_offline(annotations: Mapping[str, str]) -> bool:
    """Whether a pod says that it is offline work."""
    return annotations.get(QOS_LEVEL) == OFFLINE


def evicts_offline(annotations: Mapping[str, str]) -> bool:
    """Whether a node says that offline pods are evicted there."""
    return boolean(annotations.get(EVICTING, "")) is True
