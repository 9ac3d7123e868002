"""The annotation of a pod that Pumice is about to evict: by which action, and for which group.

It names the UID of its pod: a copy of it on another one, or one that a pod is created with, says
nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

EVICTED: Final = "pumice.sh/evicted"


def annotation(text: str, *, uid: str) -> dict[str, Any]:
    """Merge patch of the pod of that UID."""
    return {"metadata": {"uid": uid, "annotations": {EVICTED: f"{text} [{uid}]"}}}


def read(annotations: Mapping[str, str], *, uid: str) -> str:
    """The text in the annotation of the pod of that UID; empty if Pumice does not evict the pod."""
    said = annotations.get(EVICTED, "")
    mark = f" [{uid}]"
    return said.removesuffix(mark) if said.endswith(mark) else ""
