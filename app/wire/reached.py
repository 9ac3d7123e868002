"""The annotation of a PodGroup that keeps what its gang has reached (:mod:`app.model.reached`).

It names the UID of its PodGroup: a copy of it on another one says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.model.reached import REACHED

_UID: Final = "uid"
_read = msgspec.json.Decoder(dict[str, int | str])


def annotation(numbers: Mapping[str, int], *, uid: str) -> dict[str, Any]:
    """Merge patch of the PodGroup of that UID; without numbers the annotation goes."""
    text = msgspec.json.encode({_UID: uid, **numbers}, order="sorted").decode()
    return {"metadata": {"annotations": {REACHED: text if numbers else None}}}


def read(annotations: Mapping[str, str], *, uid: str) -> Mapping[str, int]:
    """What the annotation says; nothing if it cannot be read, or is of another PodGroup."""
    text = annotations.get(REACHED)
    if text is None:
        return {}
    try:
        said = _read.decode(text)
    except msgspec.MsgspecError:
        return {}
    if said.pop(_UID, None) != uid:
        return {}
    return {name: n for name, n in said.items() if isinstance(n, int) and n > 0}
