"""What the controllers need of the world."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, TypeVar

from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object

Clock = Callable[[], float]
"""Seconds since the epoch."""

T = TypeVar("T")

EventType = Literal["Normal", "Warning"]


class Failure(Enum):
    """Why a request was not done, by what to do about it."""

    NOT_FOUND = "not found"
    EXISTS = "already exists"
    CONFLICT = "conflict"
    """Another version or UID; read again and decide anew."""
    REFUSED = "refused"
    """A repeated request will be refused again: invalid, forbidden."""
    PASSING = "passing"
    """A repeated request may succeed later; the first may even have been done."""


class ApiError(Exception):
    """A request that failed; the text is the API server's."""

    def __init__(
        self, failure: Failure, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.retry_after_s = retry_after_s


class Patch(Enum):
    """How the body of a patch is read."""

    MERGE = "merge"
    JSON = "json"
    APPLY = "apply"
    """Server-side apply, by force, in our name."""


class Api(Protocol):
    """Requests to the API server. All raise :class:`ApiError`; nothing is retried."""

    async def create(self, resource: Resource, item: Object) -> Object:
        """Create ``item`` (in the namespace its metadata says); returns it as stored."""

    async def get(self, resource: Resource, key: Key) -> Object:
        """The object as stored now."""

    async def patch(
        self,
        resource: Resource,
        key: Key,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        how: Patch = Patch.MERGE,
        subresource: str = "",
    ) -> Object:
        """Change the object; a ``metadata.resourceVersion`` or ``uid`` in the body must match."""

    async def update(self, resource: Resource, item: Object, *, subresource: str = "") -> Object:
        """Replace the object; CONFLICT when its resourceVersion is not the stored one."""

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        grace_s: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete the object, only if it has that ``uid``."""

    async def evict(self, key: Key, *, uid: str) -> None:
        """Evict the pod with that ``uid``; PASSING while a PodDisruptionBudget forbids it."""


class Events(Protocol):
    """Events that users see."""

    async def record(self, about: Object, event_type: EventType, reason: str, message: str) -> None:
        """Tell what happened to ``about``; equal ones are counted. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """A GET. ``authority``: PEM that certificates are checked by; empty: the system's."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    authority: str = ""
    insecure: bool = False
    """The certificate is not checked."""
    most_bytes: int


class WebError(Exception):
    """There is no answer that can be read; the text says why, and tells no credentials."""


class Web(Protocol):
    """Servers that are not the API server."""

    async def get(self, request: WebRequest, read: Callable[[bytes], T]) -> T:
        """What ``read`` makes of the answer; it runs in another thread, and what it raises is.

        Raises `WebError` without an answer in time, of status 200 and no more than ``most_bytes``.
        Redirects are not followed: credentials are for one server.
        """
