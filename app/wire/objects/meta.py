"""What all objects have: names, times, labels, annotations and an owner.

Labels and annotations are interned by their text: the pods of a job share one mapping, which is
never changed. Of the annotations only those that Pumice reads are kept; a manifest applied by
``kubectl`` carries itself as an annotation, which would triple every pod.
"""

from collections.abc import Mapping
from sys import intern
from typing import Annotated

from msgspec import Meta, Raw, Struct

from app.model.device_families import CHOOSING, HAMI_CORE_NODE
from app.model.npu_cores import CHIPS, CORES, REAL, SERVED_FROM
from app.model.pod import MIRROR, Owner
from app.model.topology import PREFERRED, REQUIRED
from app.wire.errors import DecodeError, Reader
from app.wire.interning import Interned
from app.wire.times import Moment

ABSENT = Raw()
"""A part that the object does not have."""

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""The API's integers; larger ones would overflow in sums."""

KEPT_PREFIXES = (
    "volcano.sh/",
    "scheduling.volcano.sh/",
    "scheduling.k8s.io/",
    "pumice.sh/",
    "hccl/",
    "hami.io/",
)
KEPT_KEYS = CHOOSING | {
    *("sla-waiting-time", MIRROR, REQUIRED, PREFERRED, HAMI_CORE_NODE),
    *(CHIPS, CORES, REAL, SERVED_FROM),
}

_INTERNED_LENGTH = 2048
"""Bytes of JSON; longer labels and annotations are nearly always an object's own."""


class OwnerJson(Struct, rename="camel", gc=False):
    """An entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class MetaJson(Struct, rename="camel", gc=False):
    """``metadata``."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    labels: Raw = ABSENT
    annotations: Raw = ABSENT
    owner_references: Raw = ABSENT


_read_texts: Reader[dict[str, str] | None] = Reader(dict[str, str] | None)
_read_owners: Reader[list[OwnerJson] | None] = Reader(list[OwnerJson] | None)

_labels: Interned[bytes, dict[str, str]] = Interned(limit=32_768)
_annotations: Interned[bytes, dict[str, str]] = Interned(limit=32_768)
_owners: Interned[bytes, Owner | None] = Interned(limit=8_192)

_NOTHING: dict[str, str] = {}


def named(meta: MetaJson) -> str:
    """The object's name; an object without one is none."""
    if not meta.name:
        raise DecodeError("metadata.name", "is missing")
    return meta.name


def identified(meta: MetaJson) -> str:
    """The object's UID; an object that the API server has stored has one."""
    if not meta.uid:
        raise DecodeError("metadata.uid", "is missing")
    return meta.uid


def labels(raw: Raw, at: str = "metadata.labels") -> Mapping[str, str]:
    """All labels."""
    text = bytes(raw)
    if not text:
        return _NOTHING
    known = _labels.get(text)
    if known is not None:
        return known
    read = {key: intern(value) for key, value in (_read_texts(text, at) or _NOTHING).items()}
    return _labels.keep(text, read) if len(text) <= _INTERNED_LENGTH else read


def annotations(raw: Raw) -> Mapping[str, str]:
    """The annotations that Pumice reads."""
    text = bytes(raw)
    if not text:
        return _NOTHING
    known = _annotations.get(text)
    if known is not None:
        return known
    read = {
        key: intern(value)
        for key, value in (_read_texts(text, "metadata.annotations") or _NOTHING).items()
        if key.startswith(KEPT_PREFIXES) or key in KEPT_KEYS
    }
    return _annotations.keep(text, read) if len(text) <= _INTERNED_LENGTH else read


def all_annotations(raw: Raw) -> Mapping[str, str]:
    """Every annotation, also those that Pumice does not read otherwise."""
    text = bytes(raw)
    return (_read_texts(text, "metadata.annotations") if text else None) or _NOTHING


def owner(raw: Raw) -> Owner | None:
    """The controlling owner."""
    text = bytes(raw)
    if not text:
        return None
    if text in _owners:
        return _owners[text]
    return _owners.keep(text, _controller(text))


def _controller(text: bytes) -> Owner | None:
    for entry in _read_owners(text, "metadata.ownerReferences") or ():
        if entry.controller:
            return Owner(entry.api_version, entry.kind, entry.name, entry.uid)
    return None
