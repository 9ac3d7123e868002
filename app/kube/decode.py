"""The envelopes of lists and watches around a decoder of single objects.

Only the envelope is decoded here; each object stays raw and goes through the given function by
itself, so one object that it refuses, whatever it raises, costs that object and nothing else.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from app.kube.answers import decoded
from app.kube.errors import read_status
from app.kube.stream import Change, Decoder, Line, Malformed, Page

T = TypeVar("T")


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = msgspec.field(default="", name="resourceVersion")


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _PageMeta(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _PageMeta
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: Change
    object: msgspec.Raw


_page = msgspec.json.Decoder(_Page).decode
_line = msgspec.json.Decoder(_Line).decode
_object = msgspec.json.Decoder(_Object).decode


def decoder(decode_object: Callable[[msgspec.Raw], T]) -> Decoder[T]:
    """Page and line decoders for the kind whose objects ``decode_object`` reads."""

    def page(raw: bytes) -> Page[T]:
        listed = decoded(raw, _page)
        objects: list[T] = []
        malformed: list[Malformed] = []
        for item in listed.items or ():
            try:
                objects.append(decode_object(item))
            except Exception as error:  # any refusal concerns this object only
                malformed.append(_malformed(item, error))
        return Page(objects, malformed, listed.metadata.version, listed.metadata.token)

    def line(raw: bytes) -> Line[T]:
        said = _line(raw)
        if said.type is Change.ERROR:
            return Line(said.type, "", status=read_status(bytes(said.object)))
        version = _identity(said.object).version
        if said.type is Change.BOOKMARK:
            return Line(said.type, version)
        try:
            return Line(said.type, version, decode_object(said.object))
        except Exception as error:  # likewise
            deleted = said.type is Change.DELETED
            return Line(said.type, version, _malformed(said.object, error, deleted=deleted))

    return Decoder(page, line)


def _identity(raw: msgspec.Raw) -> _Meta:
    try:
        return _object(raw).metadata
    except msgspec.DecodeError:
        return _Meta()


def _malformed(raw: msgspec.Raw, error: Exception, *, deleted: bool = False) -> Malformed:
    meta = _identity(raw)
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    message = str(error) or type(error).__name__
    return Malformed(key=key, message=message, uid=meta.uid, deleted=deleted)
