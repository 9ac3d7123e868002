"""What the sandbox needs from outside, said here and supplied by the composition root.

* ``KubeletApi``: the API server as a kubelet sees it; in memory for the sandbox, an HTTP client for
  a real control plane.
* ``ExtenderClient``: how the scheduling loop reaches the extender; HTTP, as the stock one does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from app.wire.documents import Document, ObjectName


class WatchExpired(Exception):
    """The revision is too old: list again."""


class PodMissing(Exception):
    """The pod is gone, or another one has its name."""


class ExtenderUnreachable(Exception):
    """No answer: connection refused or cut. The text says which."""


class Watched(Enum):
    """What a kubelet looks at, by the name of its resource."""

    NODES = "nodes"
    PODS = "pods"


class WatchEvent(NamedTuple):
    """One event of a watch: ``ADDED``, ``MODIFIED`` or ``DELETED``."""

    kind: str
    document: Document


class KubeletApi(Protocol):
    """Nodes and pods, as far as a kubelet needs them; OSError where no API server is reached."""

    async def list_all(self, what: Watched) -> tuple[list[Document], str]:
        """The objects of that kind, and the revision to watch from."""
        ...

    def watch(self, what: Watched, revision: str) -> AsyncIterator[WatchEvent]:
        """Events after ``revision``; ends when the connection does, or raises WatchExpired."""
        ...

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        """A strategic merge patch of ``status``; raises PodMissing."""
        ...

    async def delete_pod(self, name: ObjectName, *, uid: str) -> None:
        """Remove the pod at once (grace 0); raises PodMissing."""
        ...

    async def create_event(self, event: Document) -> None:
        """Write an event, if that is possible at once."""
        ...

    async def annotate_node(self, name: str, annotations: Mapping[str, str]) -> None:
        """Write annotations of a node, if it is there."""
        ...

    async def put_topology(self, topology: Document) -> None:
        """Create a Numatopology, or replace what it says."""
        ...


class ExtenderClient(Protocol):
    """POST to one verb of the extender at ``url``. Time limits are the caller's."""

    @property
    def url(self) -> str:
        """The address below which the verbs are."""

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; raises ExtenderUnreachable."""
        ...
