"""Lists and watches of one kind, read with a decoder of its single objects.

Only the envelope is decoded at once; each object stays raw and goes through the given function by
itself, so one object that it refuses, whatever it raises, costs that object and nothing else.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from app.kube.envelopes import read_identity, read_line, read_page
from app.kube.errors import read_status
from app.kube.stream import Decoder, Line, LineType, Malformed, Page

T = TypeVar("T")


def decoder(decode_object: Callable[[msgspec.Raw], T]) -> Decoder[T]:
    """Page and line decoders for the kind whose objects ``decode_object`` reads."""

    def page(raw: bytes) -> Page[T]:
        listed = read_page(raw)
        objects: list[T] = []
        malformed: list[Malformed] = []
        for item in listed.items or ():
            try:
                objects.append(decode_object(item))
            except Exception as error:  # any refusal concerns this object only
                malformed.append(_malformed(item, error))
        return Page(objects, malformed, listed.metadata.version, listed.metadata.token)

    def line(raw: bytes) -> Line[T]:
        said = read_line(raw)
        if said.type is LineType.ERROR:
            return Line(said.type, "", status=read_status(bytes(said.object)))
        version = read_identity(said.object).version
        if said.type is LineType.BOOKMARK:
            return Line(said.type, version)
        try:
            return Line(said.type, version, decode_object(said.object))
        except Exception as error:  # likewise
            deleted = said.type is LineType.DELETED
            return Line(said.type, version, _malformed(said.object, error, deleted=deleted))

    return Decoder(page, line)


def _malformed(raw: msgspec.Raw, error: Exception, *, deleted: bool = False) -> Malformed:
    meta = read_identity(raw)
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    message = str(error) or type(error).__name__
    return Malformed(key=key, message=message, uid=meta.uid, deleted=deleted)
