"""``KubeletApi`` over HTTP: the simulated kubelet on an API server of its own right."""

import logging
from collections.abc import AsyncIterator, Mapping

import aiohttp
import msgspec

from app.kube import errors, paths
from app.kube.client import ApiClient, ContentType
from app.kube.config import Connection
from app.kube.connector import connector
from app.kube.lines import LineSplitter
from app.sandbox.ports import PodMissing, Watched, WatchEvent, WatchExpired
from app.wire.documents import Document, ObjectName
from app.wire.kinds import NODES, NUMA_TOPOLOGIES
from app.wire.unstructured import Key

_GONE = 410

log = logging.getLogger(__name__)


def watching() -> aiohttp.ClientSession:
    """A session for watches."""
    return aiohttp.ClientSession(connector=connector())


class HttpKubeletApi:
    """Lists and writes through the client; watches over connections of ``session``."""

    def __init__(
        self, client: ApiClient, *, connection: Connection, session: aiohttp.ClientSession
    ) -> None:
        self._client = client
        self._connection = connection
        self._session = session

    async def list_all(self, what: Watched) -> tuple[list[Document], str]:
        """One GET of the whole cluster, not paged; ConnectionError where a retry may help."""
        try:
            body = msgspec.json.decode(await self._client.get(_path(what)))
        except errors.KubeError as error:
            raise _translated(error) from error
        return body["items"], body["metadata"]["resourceVersion"]

    async def watch(self, what: Watched, revision: str) -> AsyncIterator[WatchEvent]:
        """Events for at most 300 s; raises WatchExpired, or ConnectionError when cut off."""
        params = {"watch": "true", "resourceVersion": revision, "timeoutSeconds": "300"}
        splitter = LineSplitter()
        try:
            async with self._session.get(
                f"{self._connection.host}{_path(what)}",
                params=params,
                headers=self._connection.headers(),
                ssl=self._connection.tls() or True,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
            ) as answer:
                _check(answer.status)
                async for piece in answer.content.iter_any():
                    for line in splitter.feed(piece):
                        yield _event(line)
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error)) from error

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        """Patch ``status``; PodMissing for another UID, ConnectionError where a retry may help."""
        try:
            await self._client.patch(
                f"{paths.pod(name.namespace, name.name)}/status",
                {"metadata": {"uid": uid}, "status": status},
                content_type=ContentType.STRATEGIC,
            )
        except errors.KubeError as error:
            raise _translated(error) from error

    async def delete_pod(self, name: ObjectName, *, uid: str) -> None:
        """Delete at once; PodMissing for another UID, ConnectionError where a retry may help."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        try:
            await self._client.delete(paths.pod(name.namespace, name.name), options)
        except errors.KubeError as error:
            raise _translated(error) from error

    async def create_event(self, event: Document) -> None:
        """Write an event once; a failure is logged and not raised."""
        namespace = event["metadata"]["namespace"]
        try:
            await self._client.create(paths.events(namespace), event)
        except errors.KubeError as error:
            fields = {"reason": event["reason"], "error": str(error)}
            log.warning("event not written", extra=fields)

    async def annotate_node(self, name: str, annotations: Mapping[str, str]) -> None:
        """Patch a node's annotations; a node that is gone is no error."""
        body = {"metadata": {"annotations": dict(annotations)}}
        try:
            await self._client.patch(
                NODES.path(Key("", name)), body, content_type=ContentType.STRATEGIC
            )
        except errors.NotFound:
            return
        except errors.KubeError as error:
            raise _translated(error) from error

    async def put_topology(self, topology: Document) -> None:
        """Create the Numatopology, or replace the ``spec`` of the one with its name."""
        path = NUMA_TOPOLOGIES.path(Key("", topology["metadata"]["name"]))
        spec = [{"op": "replace", "path": "/spec", "value": topology["spec"]}]
        try:
            try:
                await self._client.create(NUMA_TOPOLOGIES.path(), topology)
            except errors.AlreadyExists:
                await self._client.patch(path, spec, content_type=ContentType.JSON_PATCH)
        except errors.KubeError as error:
            raise _translated(error) from error


def _path(what: Watched) -> str:
    return f"/api/v1/{what.value}"


def _check(status: int) -> None:
    if status == _GONE:
        raise WatchExpired
    if status != 200:
        raise ConnectionError(f"the watch was refused with {status}")


def _event(line: bytes) -> WatchEvent:
    event = msgspec.json.decode(line)
    if event["type"] == "ERROR":
        raise WatchExpired
    return WatchEvent(event["type"], event["object"])


def _translated(error: errors.KubeError) -> Exception:
    """Gone for good, worth another try, or (what is written is wrong) the error itself."""
    if isinstance(error, (errors.NotFound, errors.Outdated)):
        return PodMissing(str(error))
    return error if isinstance(error, errors.Refused) else ConnectionError(str(error))
