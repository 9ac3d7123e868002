"""Copies of JSON data."""

from typing import Any


def copied(value: Any) -> Any:
    """A deep copy of objects, lists and plain values, however deep they are.

    `copy.deepcopy` ends at some 500 levels, and what we decode and pass on may have more: unknown
    fields are the API server's to refuse or to drop.
    """
    top = [value]
    todo: list[Any] = [top]
    while todo:
        holder = todo.pop()
        places = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place, item in places:
            if isinstance(item, dict | list):
                holder[place] = fresh = item.copy()
                todo.append(fresh)
    return top[0]
