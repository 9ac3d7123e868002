"""The services' ports, met by the API-server adapter: errors are translated here."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.kube import errors, paths
from app.kube.answers import decoded
from app.kube.client import ApiClient, ContentType
from app.kube.decode import decoder
from app.kube.writer import ClusterWriter
from app.model.pod import Owner, Pod
from app.service.ports import EventType, Reaction, WriteError
from app.wire import evicted, intents, patches
from app.wire.kinds import GATHERING
from app.wire.objects.nodes import decode_annotations
from app.wire.objects.owners import decode_owner
from app.wire.objects.pods import decode_pod
from app.wire.unstructured import Key

T = TypeVar("T")

_REACTIONS: tuple[tuple[type[errors.KubeError], Reaction], ...] = (
    (errors.NotFound, Reaction.GONE),
    (errors.Gone, Reaction.GONE),
    (errors.Replaced, Reaction.GONE),
    (errors.Outdated, Reaction.CONFLICT),
    (errors.Protected, Reaction.BUDGET),
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


@dataclass(frozen=True, slots=True)
class Home:
    """Where the installation is: its namespace, and the name of its scheduler."""

    namespace: str
    scheduler: str


class ClusterPorts:
    """Every port of the services over one client."""

    def __init__(self, client: ApiClient, writer: ClusterWriter, *, home: Home) -> None:
        self._client = client
        self._writer = writer
        self._home = home

    async def bind(
        self, namespace: str, name: str, *, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None:
        """Bind the pod with that UID."""
        bound = self._writer.bind(namespace, name, uid=uid, node=node, annotations=annotations)
        await _guarded(bound)

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod as stored now."""
        try:
            return decoded(await self._client.get(paths.pod(namespace, name)), decode_pod)
        except errors.NotFound:
            return None
        except errors.KubeError as error:
            raise translated(error) from error

    async def read_node_annotation(self, node: str, key: str) -> tuple[str, str | None]:
        """The version of the node, and the annotation if it has it."""
        found = await _guarded(self._client.get(paths.node(node)))
        version, annotations = decoded(found, decode_annotations)
        return version, annotations.get(key)

    async def annotate_node(
        self, node: str, annotations: Mapping[str, str | None], *, version: str
    ) -> None:
        """Set annotations, or remove those that are None, on the node of that version."""
        await _guarded(self._writer.annotate_node(node, annotations, version=version))

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        """Evict the pod with that UID, or find that it is going anyhow."""
        try:
            await self._writer.evict(namespace, name, uid=uid)
        except errors.Terminating:
            return  # all pods of its namespace are being deleted
        except errors.Conflict as error:
            found = await self.read_pod(namespace, name)
            is_there = found is not None and found.uid == uid
            reaction = Reaction.RETRY if is_there else Reaction.GONE  # while others write to it
            raise WriteError(reaction, str(error)) from error
        except errors.KubeError as error:
            raise translated(error) from error

    async def create_intent(self, name: str, text: str) -> None:
        """Write the ConfigMap of that name; CONFLICT when there is one."""
        body = intents.config_map(
            name, namespace=self._home.namespace, scheduler=self._home.scheduler, text=text
        )
        await _guarded(self._client.create(paths.config_maps(self._home.namespace), body))

    async def delete_intent(self, name: str) -> None:
        """Delete the ConfigMap of that name."""
        await _guarded(self._client.delete(paths.config_map(self._home.namespace, name)))

    async def list_intents(self) -> Mapping[str, str]:
        """The text of each by name; ConfigMaps that cannot be decoded are left out."""
        decode = decoder(intents.decode_config_map).page
        ours = {"labelSelector": f"{intents.INTENT_OF}={self._home.scheduler}"}
        found: dict[str, str] = {}
        try:
            async for page in self._client.list(paths.config_maps(self._home.namespace), ours):
                found.update(decode(page).objects)
        except errors.KubeError as error:
            raise translated(error) from error
        return found

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

    async def mark_evicted(self, namespace: str, name: str, *, uid: str, text: str) -> None:
        """Set our annotation on the pod with that UID."""
        body = evicted.annotation(text, uid=uid)
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
