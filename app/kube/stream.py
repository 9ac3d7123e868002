"""What an informer brings, and what it needs to know of the objects: the words of the stream.

A consumer gets batches of events, in the order of the API server::

    ListStarted  PageListed* Malformed*  ListDone   (Added | Modified | Deleted | Malformed)*  …
    └──────────── a complete listing ────────────┘  └──────────── what changed since ───────┘

A listing comes at the start and whenever the server no longer keeps the changes since (410). A
listing that breaks off is begun again by another `ListStarted`. Objects that were known and were
not named between the last `ListStarted` and `ListDone` vanished unseen; only the consumer can tell.
Pages are not kept for one big replacement, to hold no object twice in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from app.kube.errors import Status

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Added(Generic[T]):
    """The object was created."""

    obj: T


@dataclass(frozen=True, slots=True)
class Modified(Generic[T]):
    """The object was changed."""

    obj: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """The object is gone, or left the selection; its last state."""

    obj: T


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that exists but cannot be decoded."""

    key: str
    """``namespace/name``, or the name alone; empty when not even that can be read."""
    message: str
    uid: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class ListStarted:
    """A complete listing begins."""


@dataclass(frozen=True, slots=True)
class PageListed(Generic[T]):
    """Some more objects of the listing."""

    objects: Sequence[T]


@dataclass(frozen=True, slots=True)
class ListDone:
    """The listing is complete as of that version."""

    version: str


Event = Added[T] | Modified[T] | Deleted[T] | Malformed | ListStarted | PageListed[T] | ListDone
Batch = list[Event[T]]
Sink = Callable[[Batch[T]], None]


class LineType(Enum):
    """The ``type`` of a line of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A decoded page of a list."""

    objects: Sequence[T]
    malformed: Sequence[Malformed]
    version: str
    token: str
    """What to send to get the next page; empty on the last."""


@dataclass(frozen=True, slots=True)
class Line(Generic[T]):
    """A decoded line of a watch."""

    change: LineType
    version: str
    """The version of the object; empty when it cannot be read."""
    item: T | Malformed | None = None
    """None in bookmarks and errors."""
    status: Status | None = None
    """What an error says."""


@dataclass(frozen=True, slots=True)
class Decoder(Generic[T]):
    """Bytes to values for one kind; runs in the informer's thread."""

    page: Callable[[bytes], Page[T]]
    line: Callable[[bytes], Line[T]]
