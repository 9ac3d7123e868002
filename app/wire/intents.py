"""The intents of evictions as the text that is stored (:class:`~app.model.eviction.Intent`).

Each is a ConfigMap of the installation's namespace, with a label that names the scheduler, written
once and never changed. The API server takes no object of more than a mebibyte, so a certificate
that is too long is left out: nothing goes by it.
"""

from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import Struct

from app.model.eviction import Intent
from app.wire.errors import Bytes, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

INTENT_OF: Final = "pumice.sh/intent-of"
"""The label; its value is the name of the scheduler."""

LONGEST: Final = 900_000
"""Bytes of an intent with its certificate."""

_TEXT: Final = "intent"
"""Where a ConfigMap has the text."""


class _ConfigMapJson(Struct, gc=False):
    metadata: MetaJson
    data: dict[str, str] | None = None


_read: Reader[_ConfigMapJson] = Reader(_ConfigMapJson)
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Intent).decode


def intent_text(intent: Intent) -> str:
    """What is stored of ``intent``."""
    text = _encode(intent)
    if len(text) > LONGEST:
        text = _encode(replace(intent, certificate={}))
    return text.decode()


def read_intent(text: str) -> Intent | None:
    """The intent that a text tells of; None when it cannot be read."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


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
