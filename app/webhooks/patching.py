"""The JSON patch that turns one object into another.

Rules return the object as it should be; what is sent are only the differences, so that what other
webhooks wrote meanwhile in other fields stays.
"""

from collections.abc import Iterator
from typing import Any

Step = dict[str, Any]


def json_patch(before: Any, after: Any) -> list[Step]:
    """RFC 6902 operations; lists of another length are replaced whole."""
    return list(_steps(before, after, ""))


def _steps(before: Any, after: Any, path: str) -> Iterator[Step]:
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _object_steps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _steps(old, new, f"{path}/{index}")
    else:
        yield {"op": "replace", "path": path, "value": after}


def _object_steps(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Step]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": _inside(path, key)}
    for key, value in after.items():
        if key in before:
            yield from _steps(before[key], value, _inside(path, key))
        else:
            yield {"op": "add", "path": _inside(path, key), "value": value}


def _inside(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
