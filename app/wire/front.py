"""What the extender and its front tell each other: JSON, a document a line, over one socket.

Connections are handed over on a second socket, one at a time, as file descriptors.
"""

from typing import Final

import msgspec
from msgspec import Struct, field

from app.model.ids import NodeName, PodUid

FILTER_PATHS: Final = frozenset({b"/filter", b"/v1/filter"})


class Change(Struct):
    """To the front: pods that have a place now, or another one, and pods that have none."""

    given: dict[PodUid, NodeName] = field(default_factory=dict)
    lost: list[PodUid] = field(default_factory=list)


class Told(Struct, array_like=True, gc=False):
    """From the front: kube-scheduler is told the place of a pod; that took so many seconds."""

    uid: PodUid
    node: NodeName
    seconds: float


decode_change: Final = msgspec.json.Decoder(Change).decode
decode_told: Final = msgspec.json.Decoder(Told).decode

_encode: Final = msgspec.json.Encoder().encode


def line_of(document: Change | Told) -> bytes:
    """``document`` and the end of its line."""
    return _encode(document) + b"\n"


class Lines:
    """Whole lines of what comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, without their ends."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


class _Meta(Struct, gc=False):
    uid: PodUid


class _Pod(Struct, gc=False):
    metadata: _Meta
    spec: msgspec.Raw


class _Asked(Struct, rename="pascal", gc=False):
    pod: _Pod
    node_names: list[NodeName] | None = None


_decode_asked: Final = msgspec.json.Decoder(_Asked).decode


def asked_with_names(body: bytes) -> tuple[PodUid, list[NodeName]] | None:
    """Who is asked about in a Filter call, and the nodes that are offered by name.

    None for every other body, the malformed included: the extender knows what to say to those.
    """
    try:
        asked = _decode_asked(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if asked.node_names is None else (asked.pod.metadata.uid, asked.node_names)


def the_one(node: NodeName) -> bytes:
    """The answer to a call with names: that node and no other."""
    return (
        b'{"NodeNames":[%b],"Nodes":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},'
        b'"Error":""}'
    ) % _encode(node)
