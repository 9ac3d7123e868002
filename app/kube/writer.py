"""Every write to the cluster, by the names that the services' ports use.

The ports are met by structure; nothing is imported from them. All methods raise `KubeError` and
retry nothing.

Arguments are plain values, because a port cannot name a type of this package.
"""

from collections.abc import Mapping, Sequence

from app.kube import bodies, paths
from app.kube.bodies import EventFact, EventType, ObjectRef
from app.kube.client import ApiClient, ContentType
from app.kube.events import EventRecorder
from app.kube.status import StatusPatcher

Merge = Mapping[str, object]

BIND_DEADLINE_S = 3.0
"""Of one Binding: the hold before it, and trying again, must end within the scheduler's timeout."""

EVICT_DEADLINE_S = 20.0
"""Of one eviction: the API server tries for ten seconds while others write to the pod."""


class ClusterWriter:
    """Writes of the scheduler and the controllers."""

    def __init__(self, client: ApiClient, *, events: EventRecorder) -> None:
        self._client = client
        self._events = events
        self._pod_groups = StatusPatcher(client, home=paths.SCHEDULING, plural="podgroups")
        self._queues = StatusPatcher(client, home=paths.SCHEDULING, plural="queues")

    async def bind(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        node: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Bind the pod with that UID; Conflict when it is another one, or bound already."""
        body = bodies.binding(
            name, namespace=namespace, uid=uid, node=node, annotations=annotations
        )
        path = f"{paths.pod(namespace, name)}/binding"
        await self._client.create(path, body, deadline_s=BIND_DEADLINE_S, urgent=True)

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        """Evict the pod with that UID; Conflict when it is another one."""
        path = f"{paths.pod(namespace, name)}/eviction"
        body = bodies.eviction(name, namespace=namespace, uid=uid)
        await self._client.create(path, body, deadline_s=EVICT_DEADLINE_S)

    async def annotate_node(
        self, node: str, annotations: Mapping[str, str | None], *, version: str
    ) -> None:
        """Merge annotations of the node; Conflict when it is not of that version any more."""
        await self._client.patch(
            paths.node(node),
            {"metadata": {"resourceVersion": version, "annotations": annotations}},
            content_type=ContentType.MERGE,
        )

    async def patch_pod(
        self, namespace: str, name: str, json_patch: Sequence[Mapping[str, object]]
    ) -> None:
        """Apply a JSON patch to the pod: gates, affinity, annotations."""
        await self._client.patch(
            paths.pod(namespace, name), json_patch, content_type=ContentType.JSON_PATCH
        )

    async def patch_pod_status(self, namespace: str, name: str, merge: Merge, *, uid: str) -> None:
        """Merge into the status of the pod with that UID; Replaced when it is another one.

        Lists keyed by a field (conditions) merge by that key.
        """
        await self._client.patch(
            f"{paths.pod(namespace, name)}/status",
            {**merge, "metadata": {"uid": uid}},
            content_type=ContentType.STRATEGIC,
        )

    async def patch_pod_group(self, namespace: str, name: str, merge: Merge) -> None:
        """Merge into the PodGroup, its status included."""
        await self._pod_groups.patch(paths.pod_group(namespace, name), merge)

    async def create_queue(self, body: Merge) -> None:
        """Create a Queue; AlreadyExists when another writer was faster."""
        await self._client.create(paths.QUEUES, body)

    async def patch_queue_status(self, name: str, merge: Merge) -> None:
        """Merge into the Queue's status (``{"status": {…}}``)."""
        await self._queues.patch(paths.queue(name), merge)

    async def record_event(
        self,
        *,
        kind: str,
        api_version: str,
        namespace: str,
        name: str,
        uid: str,
        event_type: EventType,
        reason: str,
        message: str,
    ) -> None:
        """Tell the user what happened to the object that ``kind`` … ``uid`` name."""
        about = ObjectRef(
            kind=kind, api_version=api_version, namespace=namespace, name=name, uid=uid
        )
        await self._events.record(
            EventFact(about=about, kind=event_type, reason=reason, message=message)
        )
