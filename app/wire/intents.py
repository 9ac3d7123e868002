"""The intents of evictions as the text that is stored (:class:`~app.model.eviction.Intent`).

Each is a ConfigMap of the installation's namespace, with a label that names the scheduler, written
once and never changed. The API server takes no ConfigMap of more than a mebibyte, so a certificate
that is too long is left out: nothing goes by it. An intent that is too long even so goes on in
ConfigMaps of its own, its parts. They are stored before it, and it begins with their names, one a
line: an intent that is there is there whole. Parts have names of their own for each text, so a part
that an earlier process left is never taken for another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from app.model.eviction import Intent
from app.wire.errors import Bytes, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

INTENT_OF: Final = "pumice.sh/intent-of"
"""The label; its value is the name of the scheduler."""

LONGEST: Final = 700_000
"""Bytes of an intent with its certificate, and of a part; JSON inside of JSON takes some more."""

_DIGITS: Final = 16
_TEXT: Final = "intent"
"""Where a ConfigMap has the text."""


class _ConfigMapJson(Struct, gc=False):
    metadata: MetaJson
    data: dict[str, str] | None = None


_read: Reader[_ConfigMapJson] = Reader(_ConfigMapJson)
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Intent).decode


@dataclass(frozen=True, slots=True)
class StoredIntent:
    """An intent that was read, and ``names``: what it is stored as, its own name the last."""

    intent: Intent
    names: tuple[str, ...]


def texts_of(name: str, intent: Intent) -> dict[str, str]:
    """What is stored of ``intent``, by name, in the order in which it is to be stored."""
    text = _encode(intent)
    if len(text) > LONGEST:
        text = _encode(replace(intent, certificate={}))
    first, *others = _pieces(text)
    if not others:
        return {name: first}
    digest = sha256(text).hexdigest()[:_DIGITS]
    parts = {f"{name}.{digest}.{at}": piece for at, piece in enumerate(others, start=1)}
    return {**parts, name: "\n".join((*parts, first))}


def read_intents(stored: Mapping[str, str]) -> dict[str, StoredIntent]:
    """The intents that are there whole, by name; ``stored`` are all texts by name."""
    found = {}
    for name, text in stored.items():
        *parts, first = text.split("\n")
        if not stored.keys() >= set(parts):
            continue
        try:
            intent = _decode("".join((first, *(stored[part] for part in parts))))
        except (msgspec.MsgspecError, RecursionError):
            continue  # a part
        found[name] = StoredIntent(intent, (*parts, name))
    return found


def _pieces(text: bytes) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + LONGEST
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1  # no character is cut in two
        yield text[start:end].decode()
        start = end


def config_map(name: str, *, namespace: str, scheduler: str, text: str) -> dict[str, Any]:
    """The ConfigMap that holds the text of an intent."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {INTENT_OF: scheduler}},
        "immutable": True,
        "data": {_TEXT: text},
    }


def decode_config_map(text: Bytes) -> tuple[str, str]:
    """The name, and the text that the ConfigMap holds, which is empty where there is none.

    Raises `DecodeError`.
    """
    json = _read(text)
    return meta.named(json.metadata), (json.data or {}).get(_TEXT, "")
