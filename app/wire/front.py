"""What the extender and its front tell each other: frames, both ways over one socket.

A frame is a head and what follows it. Calls that are handed on and their answers have their bodies
as they are; all else is JSON.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from app.model.ids import NodeName, PodUid

NOBODY: Final = PodUid("")

_HEAD: Final = struct.Struct("!IBQH")


class MessageType(IntEnum):
    """What a frame says."""

    CHANGE = 1
    TOLD = 2
    CALL = 3
    """To the extender: one of kube-scheduler's calls; ``detail`` is its place in ``VERBS``."""
    ANSWER = 4
    """To the front: the answer to the call of that number; ``detail`` is its HTTP status."""
    GONE = 5
    """To the extender: the caller does not wait for the answer to that call any more."""


class Frame(NamedTuple):
    """One frame: ``number`` is of the call, if it is about one, and chosen by the front."""

    kind: int
    body: bytes = b""
    number: int = 0
    detail: int = 0

    def encode(self) -> bytes:
        """The frame as it is sent."""
        return _HEAD.pack(len(self.body), self.kind, self.number, self.detail) + self.body


class Frames:
    """Whole frames of what comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that ``data`` completes."""
        if self._rest:
            data = self._rest + data
        frames, start = [], 0
        while (body := start + _HEAD.size) <= len(data):
            size, kind, number, detail = _HEAD.unpack_from(data, start)
            if body + size > len(data):
                break
            start = body + size
            frames.append(Frame(kind, data[body:start], number, detail))
        self._rest = data[start:]
        return frames


class PodPlace(Struct, array_like=True, frozen=True, gc=False):
    """The node of a pod. Pods of one ``kind`` may exchange places; pods of kind 0 may not."""

    node: NodeName
    kind: int = 0


class PlaceChanges(Struct):
    """To the front: pods that have a place now, or another one, and pods that have none.

    ``number`` grows from one to the next.
    """

    given: dict[PodUid, PodPlace] = field(default_factory=dict)
    lost: list[PodUid] = field(default_factory=list)
    number: int = 0


class Told(Struct, array_like=True, gc=False):
    """From the front: kube-scheduler is told the place of a pod; that took so many seconds.

    ``by`` is the number of the last change that the front had seen. When the place was that of an
    ``other`` pod, this one has the pod's from now on.
    """

    uid: PodUid
    node: NodeName
    seconds: float
    by: int = 0
    other: PodUid = NOBODY


decode_change: Final = msgspec.json.Decoder(PlaceChanges).decode
decode_told: Final = msgspec.json.Decoder(Told).decode

_encode: Final = msgspec.json.Encoder().encode


def change_frame(change: PlaceChanges) -> bytes:
    """``change`` as it is sent."""
    return Frame(MessageType.CHANGE, _encode(change)).encode()


def told_frame(told: Told) -> bytes:
    """``told`` as it is sent."""
    return Frame(MessageType.TOLD, _encode(told)).encode()
