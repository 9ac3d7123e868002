"""Which members of a gang have to wait until others of it have come to Bind.

They must be near these, and before that kube-scheduler would refuse them without asking us. How it
is decided is in :mod:`app.core.placement.affinity_followers`.
"""

from collections.abc import Iterator

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import ARRIVED, Member
from app.cache.neighbours.pods_with_rules import keys_of
from app.core.placement.affinity_followers import Companion, followers
from app.core.placement.placed_pods import Identity, identity_of
from app.model.ids import NodeName
from app.model.shape import PodShape


def follows(member: Member) -> bool:
    """Whether the member may have to wait for others."""
    return bool(member.pod.shape.pod_affinity)


def must_follow(cache: ClusterCache, group: Group) -> frozenset[str]:
    """UIDs of members, and holders of slots, whose turn comes when others have arrived at Bind."""

    def label(node: NodeName, key: str) -> str | None:
        known = cache.node_usage.nodes.get(node)
        return known.labels.get(key) if known else None

    asked = _keys_of_affinity(group)
    if not asked:
        return frozenset()
    companions = _companions(group, asked)
    return followers(companions, label=label, namespaces=cache.namespaces)


def _keys_of_affinity(group: Group) -> frozenset[str]:
    """The label keys that members and slots look at in those that they must be near."""
    shapes = [member.pod.shape for member in group.members.values()]
    shapes += [slot.shape for slot in group.slots.values()]
    different = {id(shape): shape for shape in shapes if shape.pod_affinity}.values()
    return keys_of(term.selector for shape in different for term in shape.pod_affinity)


def _companions(group: Group, asked: frozenset[str]) -> Iterator[Companion]:
    for uid, member in group.members.items():
        node, pod = member.charged_node, member.pod
        if node:
            labels = tuple(sorted((key, pod.labels[key]) for key in asked & pod.labels.keys()))
            arrived = bool(pod.node) or member.stage in ARRIVED
            identity = Identity(pod.namespace, labels)
            yield Companion(uid, node, identity, pod.shape.pod_affinity, arrived)
    for holder, slot in group.slots.items():
        identity = _of_slot(slot.shape, group.namespace, asked)
        yield Companion(holder, slot.node, identity, slot.shape.pod_affinity)


def _of_slot(shape: PodShape, namespace: str, asked: frozenset[str]) -> Identity:
    known = identity_of(shape, namespace=namespace)
    seen = tuple(pair for pair in known.labels if pair[0] in asked)
    return Identity(known.namespace, seen)
