"""Filter calls whose nodes come as names: the pod that is asked about, and the answer.

They are apart from :mod:`app.wire.extender`, which a process that answers nothing else does not
need.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from app.model.ids import NodeName, PodUid


class _Meta(Struct, gc=False):
    uid: PodUid


class _Pod(Struct, gc=False):
    metadata: _Meta
    spec: msgspec.Raw


class _Asked(Struct, rename="pascal", gc=False):
    pod: _Pod
    node_names: list[NodeName] | None = None


SAMPLE_FLOOR: Final = 100
"""kube-scheduler offers every feasible node unless it found at least this many."""

_decode: Final = msgspec.json.Decoder(_Asked).decode
_encode: Final = msgspec.json.Encoder().encode


def asked(body: bytes) -> tuple[PodUid, list[NodeName]] | None:
    """The pod of a Filter call, and the nodes that are offered by name.

    None for every other body, the malformed included: the extender knows what to say to those.
    """
    try:
        call = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if call.node_names is None else (call.pod.metadata.uid, call.node_names)


def answer(passed: Sequence[NodeName], reasons: bytes = b"{}") -> bytes:
    """The answer to a Filter call with names: those that passed, and why others did not."""
    return (
        b'{"NodeNames":%b,"Nodes":null,"FailedNodes":{},"FailedAndUnresolvableNodes":%b,"Error":""}'
    ) % (_encode(passed), reasons)
