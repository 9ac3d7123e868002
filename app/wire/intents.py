"""The intents of evictions as the text that is stored (:class:`~app.model.eviction.Intent`).

The API server takes no object of more than a mebibyte, so a certificate that is too long is left
out: nothing goes by it.
"""

from dataclasses import replace
from typing import Final

import msgspec

from app.model.eviction import Intent

LONGEST: Final = 900_000
"""Bytes of an intent with its certificate."""

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
