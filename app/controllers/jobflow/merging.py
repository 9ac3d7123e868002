"""Patches of job specs, laid over those of templates.

As in a merge patch a value replaces another and null takes it away; but lists whose elements have
names (tasks, containers, variables) are merged by name, so that one task can be changed without
repeating the others.
"""

from collections.abc import Mapping
from typing import Any

from app.wire.copying import copied
from app.wire.unstructured import Object


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """``base`` with ``patch``; neither is changed."""
    made: Object = copied(dict(base))
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _over(made.get(key), value)
    return made


def _over(old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        return merged(old if isinstance(old, Mapping) else {}, new)
    if isinstance(new, list) and _are_named(new) and isinstance(old, list) and _are_named(old):
        by_name = {each["name"]: each for each in old}
        for each in new:
            by_name[each["name"]] = merged(by_name.get(each["name"], {}), each)
        return list(by_name.values())
    return copied(new)


def _are_named(items: list[Any]) -> bool:
    return bool(items) and all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in items
    )
