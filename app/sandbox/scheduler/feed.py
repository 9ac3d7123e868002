"""Changes of the store -> the loop's view of nodes, pods and namespaces, its queue, nominations.

Also where wake-ups come from: which change of the cluster counts as an event for refused pods. A
heartbeat (only times differ) and a new image list on a node count as nothing.
"""

from __future__ import annotations

from typing import Any

from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.sandbox.device_claims import CLAIMS as DEVICE_CLAIMS
from app.sandbox.scheduler.claims import CLASSES as STORAGE_CLASSES
from app.sandbox.scheduler.claims import STORAGE as CLAIMS
from app.sandbox.scheduler.claims import VOLUMES
from app.sandbox.scheduler.cluster import Cluster
from app.sandbox.scheduler.devices import CLASSES, SLICES
from app.sandbox.scheduler.nominations import Nominations
from app.sandbox.scheduler.queue import PodQueue, Wake
from app.wire.documents import Document, is_terminal, items, name_of, section, uid_of

_PODS = "/pods"
_NODES = "/nodes"
_NAMESPACES = "/namespaces"
_VOLUMES = frozenset({VOLUMES, STORAGE_CLASSES})


class Feed:
    """Keeps one loop informed. A view of its own per loop, as every scheduler has."""

    def __init__(
        self,
        cluster: Cluster,
        queue: PodQueue,
        *,
        nominations: Nominations,
        profiles: frozenset[str],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nominations = nominations
        self._profiles = profiles
        self._assumed: set[str] = set()
        self._listening = False

    def start(self, store: Store) -> None:
        """Take in what is there; from now on, what changes."""
        for namespace in store.ordered(_NAMESPACES):
            self._cluster.set_namespace(namespace)
        for node in store.ordered(_NODES):
            self._cluster.set_node(node)
        for pod in store.ordered(_PODS):
            self._take_pod(pod)
        self._listening = True
        store.on_change(self._changed)

    def stop(self) -> None:
        """Hear no more."""
        self._listening = False

    def assume(self, pod: Document, node: str) -> None:
        """The pod takes its room from now on, whatever the API server says."""
        self._nominations.drop(uid_of(pod))
        self._assumed.add(uid_of(pod))
        self._cluster.assume(pod, node)

    def forget(self, pod: Document) -> None:
        """The binding came to nothing."""
        self._assumed.discard(uid_of(pod))
        self._cluster.remove_pod(uid_of(pod))

    def _changed(self, change: StoreChange) -> None:
        if not self._listening:
            return
        if change.storage == _NODES:
            self._node_changed(change)
        elif change.storage == _NAMESPACES:
            self._namespace_changed(change)
        elif change.storage == CLAIMS and change.kind is not ChangeKind.DELETED:
            self._queue.wake(Wake.CLAIM_CHANGED)
        elif change.storage in _VOLUMES and change.kind is not ChangeKind.DELETED:
            self._queue.wake(Wake.VOLUMES_CHANGED)
        elif change.storage in {DEVICE_CLAIMS, CLASSES}:
            self._queue.wake(Wake.DEVICES_CHANGED)
        elif change.storage == SLICES:
            self._queue.wake(Wake.SLICES_CHANGED)
        elif change.storage == _PODS and change.kind is ChangeKind.DELETED:
            self._pod_gone(change.document)
        elif change.storage == _PODS:
            self._pod_changed(change)

    def _node_changed(self, change: StoreChange) -> None:
        if change.kind is ChangeKind.DELETED:
            self._cluster.remove_node(change.document["metadata"]["name"])
            self._queue.wake(Wake.NODE_DELETED)
            return
        self._cluster.set_node(change.document)
        if change.previous is None or _relevant(change.previous) != _relevant(change.document):
            self._queue.wake(Wake.NODE_CHANGED)

    def _namespace_changed(self, change: StoreChange) -> None:
        """Note the namespace; no pod is woken, as with the stock scheduler."""
        if change.kind is ChangeKind.DELETED:
            self._cluster.remove_namespace(name_of(change.document).name)
        else:
            self._cluster.set_namespace(change.document)

    def _pod_gone(self, pod: Document) -> None:
        uid = uid_of(pod)
        self._assumed.discard(uid)
        self._queue.remove(uid)
        was_placed = self._cluster.remove_pod(uid)
        if self._nominations.drop(uid) or was_placed:
            self._queue.wake(Wake.BOUND_POD_DELETED)

    def _pod_changed(self, change: StoreChange) -> None:
        pod, previous = change.document, change.previous
        if not section(pod, "spec").get("nodeName"):
            self._take_pod(pod)
            return
        was_bound = previous is not None and section(previous, "spec").get("nodeName")
        was_over = previous is not None and is_terminal(previous)
        self._take_pod(pod)
        if is_terminal(pod) and not was_over:
            self._queue.wake(Wake.BOUND_POD_DELETED)
        elif not was_bound:
            self._queue.wake(Wake.BOUND_POD_ADDED)
        else:
            self._queue.wake(Wake.BOUND_POD_CHANGED)

    def _take_pod(self, pod: Document) -> None:
        uid, spec = uid_of(pod), section(pod, "spec")
        if spec.get("nodeName"):
            self._nominations.drop(uid)
            self._assumed.discard(uid)
            self._queue.remove(uid)
            self._cluster.set_pod(pod)
            return
        if spec.get("schedulerName") not in self._profiles or is_terminal(pod):
            return
        if uid in self._assumed:
            return
        if self._nominations.note(pod):
            self._queue.wake(Wake.BOUND_POD_DELETED)  # it frees room, like a deleted pod
        self._queue.set(pod)


def _relevant(node: Document) -> Any:
    """The part of a node whose change may help a pod."""
    metadata = node["metadata"]
    conditions = [
        (one.get("type"), one.get("status")) for one in items(node, "status", "conditions")
    ]
    return (
        metadata.get("labels"),
        metadata.get("annotations"),
        node.get("spec"),
        section(node, "status").get("allocatable"),
        conditions,
    )
