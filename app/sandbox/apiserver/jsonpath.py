"""The part of JSONPath that printer columns use: fields, indexes, ``[*]``, equality filters."""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>(?:[\w/-]|\\\.)+)
      | \[(?P<index>-?\d+|\*)\]
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[\?\(@\.(?P<key>[\w.]+)\s*==?\s*['"](?P<value>[^'"]*)['"]\)\]""",
    re.VERBOSE,
)


def lookup(document: Any, path: str) -> list[Any]:
    """All values under ``path``; empty where a step leads nowhere."""
    found = [document]
    for step in _STEP.finditer(path):
        found = [value for here in found for value in _follow(here, step)]
    return found


def _follow(here: Any, step: re.Match[str]) -> list[Any]:
    name = step["field"] or step["quoted"]
    if name is not None:
        name = name.replace("\\.", ".")
        return [here[name]] if isinstance(here, dict) and name in here else []
    if not isinstance(here, list):
        return []
    if step["key"] is not None:
        return [one for one in here if str(_inner(one, step["key"])) == step["value"]]
    if step["index"] == "*":
        return here
    index = int(step["index"])
    return [here[index]] if -len(here) <= index < len(here) else []


def _inner(here: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        here = here.get(name) if isinstance(here, dict) else None
    return here
