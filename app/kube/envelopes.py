"""What stands around objects in lists and watches, and the identity of an object.

The objects themselves stay raw. One that is nested deeper than msgspec goes fails the text around
it too, and a name that is no UTF-8 the whole identity; such a text is cut, and its parts are read.
"""

from typing import Final

import msgspec

from app.kube.answers import decoded
from app.kube.cutting import members, parts
from app.kube.stream import LineType


class Identity(msgspec.Struct):
    """The identity of an object; what cannot be read is empty."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = msgspec.field(default="", name="resourceVersion")


class ListMeta(msgspec.Struct):
    """What a page says of the listing."""

    version: str = msgspec.field(default="", name="resourceVersion")
    token: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """A page of a list."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class WatchLine(msgspec.Struct):
    """A line of a watch."""

    type: LineType
    object: msgspec.Raw


class _Head(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _Object(msgspec.Struct):
    metadata: Identity = msgspec.field(default_factory=Identity)


_IDENTITY: Final = (b"name", b"namespace", b"uid", b"resourceVersion")

_page = msgspec.json.Decoder(ListPage).decode
_line = msgspec.json.Decoder(WatchLine).decode
_head = msgspec.json.Decoder(_Head).decode
_meta = msgspec.json.Decoder(ListMeta).decode
_object = msgspec.json.Decoder(_Object).decode
_change = msgspec.json.Decoder(LineType).decode
_text = msgspec.json.Decoder(str).decode


def read_page(raw: bytes) -> ListPage:
    """A page with its objects as they came; Unreadable when it is none."""
    return decoded(raw, _page_or_parts)


def next_token(raw: bytes) -> str:
    """What to send to get the page after this one; empty on the last."""
    return decoded(raw, _head_or_parts).metadata.token


def read_line(raw: bytes) -> WatchLine:
    """A line with its object as it came; ValueError when it is none."""
    try:
        return _line(raw)
    except RecursionError:
        found = members(raw)
        kind, item = found.get(b"type", b""), found.get(b"object", b"")
        return WatchLine(_change(kind), msgspec.Raw(item))


def read_identity(raw: msgspec.Raw) -> Identity:
    """The identity of the object, as far as it can be read."""
    try:
        return _object(raw).metadata
    except (ValueError, RecursionError):
        return _identity_of_parts(bytes(raw))


def _page_or_parts(raw: bytes) -> ListPage:
    try:
        return _page(raw)
    except RecursionError:
        found = members(raw)
        items = [msgspec.Raw(item) for item in parts(found.get(b"items", b"[]"))]
        return ListPage(_meta(found.get(b"metadata", b"")), items)


def _head_or_parts(raw: bytes) -> _Head:
    try:
        return _head(raw)
    except RecursionError:
        return _Head(_meta(members(raw).get(b"metadata", b"{}")))


def _identity_of_parts(raw: bytes) -> Identity:
    try:
        found = members(members(raw).get(b"metadata", b"{}"))
    except ValueError:
        return Identity()
    return Identity(*(_legible(found.get(name, b'""')) for name in _IDENTITY))


def _legible(raw: bytes) -> str:
    try:
        return _text(raw.decode(errors="replace"))
    except ValueError:
        return ""
