"""The services' ports, met by the API-server adapter: errors are translated here."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from app.kube import errors, paths
from app.kube.answers import decoded
from app.kube.client import ApiClient, ContentType
from app.kube.decode import decoder
from app.kube.writer import ClusterWriter
from app.model.pod import Owner, Pod
from app.service.ports import EventType, Reaction, WriteError
from app.wire import patches
from app.wire.kinds import GATHERING
from app.wire.objects.owners import decode_owner
from app.wire.objects.pods import decode_pod
from app.wire.unstructured import Key

T = TypeVar("T")

_REACTIONS: tuple[tuple[type[errors.KubeError], Reaction], ...] = (
    (errors.NotFound, Reaction.GONE),
    (errors.Gone, Reaction.GONE),
    (errors.Replaced, Reaction.GONE),
    (errors.Outdated, Reaction.CONFLICT),
    (errors.Transient, Reaction.RETRY),
    (errors.Refused, Reaction.REFUSED),
)


def translated(error: errors.KubeError) -> WriteError:
    """The failure in the services' words: what to do about it."""
    for kind, reaction in _REACTIONS:
        if isinstance(error, kind):
            return WriteError(reaction, str(error), retry_after_s=error.retry_after_s)
    return WriteError(Reaction.RETRY, str(error), retry_after_s=error.retry_after_s)


async def _guarded(call: Awaitable[T]) -> T:
    try:
        return await call
    except errors.KubeError as error:
        raise translated(error) from error


class ClusterPorts:
    """Binder, OwnerReader, PodWriter, GroupWriter, EventSink and PodLister over one client."""

    def __init__(self, client: ApiClient, writer: ClusterWriter) -> None:
        self._client = client
        self._writer = writer

    async def bind(self, namespace: str, name: str, *, uid: str, node: str) -> None:
        """Bind the pod with that UID."""
        await _guarded(self._writer.bind(namespace, name, uid=uid, node=node))

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod as stored now."""
        try:
            return decoded(await self._client.get(paths.pod(namespace, name)), decode_pod)
        except errors.NotFound:
            return None
        except errors.KubeError as error:
            raise translated(error) from error

    async def read_least_members(self, owner: Owner, *, namespace: str) -> int:
        """How many pods of ``owner`` belong together; 1 for one that is gone."""
        kind = GATHERING[owner.api_version, owner.kind]
        try:
            answer = await self._client.get(kind.path(Key(namespace, owner.name)))
            found = decoded(answer, decode_owner)
        except errors.NotFound:
            return 1
        except errors.KubeError as error:
            raise translated(error) from error
        return found.least if found.uid == owner.uid else 1

    async def list_pods(self) -> Sequence[Pod]:
        """Every pod as stored now; those that cannot be decoded are left out."""
        decode = decoder(decode_pod).page
        pods: list[Pod] = []
        try:
            async for page in self._client.list("/api/v1/pods"):
                pods.extend(decode(page).objects)
        except errors.KubeError as error:
            raise translated(error) from error
        return pods

    async def patch_pod(
        self, namespace: str, name: str, json_patch: Sequence[Mapping[str, object]]
    ) -> None:
        """Apply a JSON patch."""
        await _guarded(self._writer.patch_pod(namespace, name, json_patch))

    async def patch_pod_status(
        self, namespace: str, name: str, merge: Mapping[str, object], *, uid: str
    ) -> None:
        """Merge into the status of the pod with that UID."""
        await _guarded(self._writer.patch_pod_status(namespace, name, merge, uid=uid))

    async def wake_pod(
        self, namespace: str, name: str, *, uid: str, token: str, by_label: bool = False
    ) -> None:
        """Set our annotation, so that kube-scheduler tries the pod again."""
        body = patches.wake(token, uid=uid, by_label=by_label)
        await _guarded(
            self._client.patch(paths.pod(namespace, name), body, content_type=ContentType.MERGE)
        )

    async def patch_pod_group(self, namespace: str, name: str, merge: Mapping[str, object]) -> None:
        """Merge into the PodGroup."""
        await _guarded(self._writer.patch_pod_group(namespace, name, merge))

    async def create_queue(self, body: Mapping[str, object]) -> None:
        """Create a queue."""
        await _guarded(self._writer.create_queue(body))

    async def patch_queue_status(self, name: str, merge: Mapping[str, object]) -> None:
        """Merge into the queue's status."""
        await _guarded(self._writer.patch_queue_status(name, merge))

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
        """Record an event."""
        await _guarded(
            self._writer.record_event(
                kind=kind,
                api_version=api_version,
                namespace=namespace,
                name=name,
                uid=uid,
                event_type=event_type,
                reason=reason,
                message=message,
            )
        )
