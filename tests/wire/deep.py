"""JSON data nested deeper than what calls itself gets."""

from typing import Any


def nested(levels: int) -> Any:
    """Objects in lists in objects …"""
    made: Any = "end"
    for level in range(levels):
        made = {"in": made} if level % 2 else [made]
    return made


def depth(value: Any) -> int:
    """How many there are."""
    levels = 0
    while isinstance(value, dict | list):
        value = value["in"] if isinstance(value, dict) else value[0]
        levels += 1
    return levels
