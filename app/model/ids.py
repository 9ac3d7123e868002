"""Names of things, as types of their own so that they cannot be swapped."""

from typing import Final, NewType

from app.model.names import plain

PodUid = NewType("PodUid", str)
NodeName = NewType("NodeName", str)
QueueName = NewType("QueueName", str)

GroupKey = NewType("GroupKey", str)
"""``namespace/name`` of a PodGroup, or ``namespace/pod:uid`` of a pod that stands alone."""

NO_NODE = NodeName("")
NO_POD = PodUid("")
"""No node: not pinned, not bound, not nominated."""

NO_QUEUE = QueueName("")
ROOT_QUEUE = QueueName("root")
DEFAULT_QUEUE = QueueName("default")

CLUSTER: Final = "<cluster-top-hypernode>"
"""The name of the whole cluster among the domains of the network, as in Volcano."""

FILLED_IN = "pumice.sh/filled-in"
"""The annotation of a job in which admission notes the minima that it has filled in."""


def group_key(namespace: str, name: str) -> GroupKey:
    """Key of the PodGroup ``name`` in ``namespace``.

    Pods may name a group by any text. One that no PodGroup can have as its name is escaped.
    """
    return GroupKey(f"{namespace}/{plain(name)}")


def solo_key(namespace: str, uid: PodUid) -> GroupKey:
    """Key of the group of one that a pod without a PodGroup forms."""
    return GroupKey(f"{namespace}/pod:{uid}")


def namespace_of(key: GroupKey) -> str:
    """The namespace of the group and its pods."""
    return key.partition("/")[0]
