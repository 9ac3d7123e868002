"""``KubeletApi`` over the embedded API server, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping

from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import JSON_PATCH, STRATEGIC_PATCH
from app.sandbox.apiserver.registry import storage_key
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.ports import PodMissing, Watched, WatchEvent, WatchExpired
from app.wire.documents import Document, ObjectName, name_of
from app.wire.kinds import NUMA_TOPOLOGIES

_PODS = "/pods"
_NODES = "/nodes"
_TOPOLOGIES = storage_key(NUMA_TOPOLOGIES.api_version.partition("/")[0], NUMA_TOPOLOGIES.plural)


class StoreKubeletApi:
    """The kubelet's view of an ``ApiServer``."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def list_all(self, what: Watched) -> tuple[list[Document], str]:
        """The stored documents themselves, not to be changed, and the store's revision."""
        store = self._server.store
        return store.ordered(f"/{what.value}"), str(store.revision)

    async def watch(self, what: Watched, revision: str) -> AsyncIterator[WatchEvent]:
        """Changes after ``revision`` until the store closes; WatchExpired where it is too old."""
        storage = f"/{what.value}"
        try:
            subscription = self._server.store.subscribe(storage, since=int(revision))
        except ApiError as error:
            raise WatchExpired from error
        try:
            while not subscription.closed:
                await subscription.wait()
                for change in subscription.take():
                    yield WatchEvent(change.kind.value, change.document)
        finally:
            subscription.close()

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        """Patch the status and collect garbage; PodMissing where the patch is refused."""
        target = self._server.target(_PODS, name, subresource="status")
        patch = {"metadata": {"uid": uid}, "status": status}
        try:
            self._server.operations.patch(target, patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            raise PodMissing(str(error)) from error
        self._server.deletion.collect()

    async def delete_pod(self, name: ObjectName, *, uid: str) -> None:
        """Delete without grace; PodMissing where the deletion is refused."""
        try:
            self._server.delete(_PODS, name, DeleteOptions(grace_seconds=0, uid=uid))
        except ApiError as error:
            raise PodMissing(str(error)) from error

    async def create_event(self, event: Document) -> None:
        """Write an event; a refusal is not raised."""
        # It is there already, or its namespace is going.
        with contextlib.suppress(ApiError):
            self._server.create(event)

    async def annotate_node(self, name: str, annotations: Mapping[str, str]) -> None:
        """Patch a node's annotations; a refusal is not raised."""
        target = self._server.target(_NODES, ObjectName("", name))
        patch = {"metadata": {"annotations": dict(annotations)}}
        # It has gone.
        with contextlib.suppress(ApiError):
            self._server.operations.patch(target, patch, content_type=STRATEGIC_PATCH)

    async def put_topology(self, topology: Document) -> None:
        """Create a Numatopology, or replace its ``spec``; raises ApiError."""
        name = name_of(topology)
        if self._server.store.get(_TOPOLOGIES, name) is None:
            self._server.create(topology)
            return
        patch = [{"op": "replace", "path": "/spec", "value": topology["spec"]}]
        target = self._server.target(_TOPOLOGIES, name)
        self._server.operations.patch(target, patch, content_type=JSON_PATCH)
