"""Owners of pods, as far as they say how many of their pods belong together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from app.model.integers import int32
from app.wire.errors import Bytes, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"


class _OwnerJson(Struct, gc=False):
    metadata: MetaJson


@dataclass(frozen=True, slots=True)
class Gathering:
    """How many pods the object of that UID wants together."""

    uid: str
    least: int


_read: Reader[_OwnerJson] = Reader(_OwnerJson)


def decode_owner(text: Bytes) -> Gathering:
    """A ReplicaSet, or another owner of pods; raises `DecodeError`."""
    head = _read(text).metadata
    return Gathering(meta.identified(head), least_members(meta.annotations(head.annotations)))


def least_members(annotations: Mapping[str, str]) -> int:
    """What an owner's annotation says (volcano.md §5.3); 1 where it says nothing usable."""
    return max(int32(annotations.get(MIN_MEMBER, "")) or 1, 1)
