"""Fields that a stock kind does not have: found, and left out, as the API server does it.

Which fields there are is told from outside, as nothing here knows the types of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias

from app.sandbox.documents import Document


class ObjectType(Protocol):
    """A type of objects."""

    def fields(self) -> Mapping[str, ObjectType | None]:
        """By their names in a document: the type of the object, or objects, in it.

        None: there is no object in it, or one in which anything may stand.
        """


TypeOf: TypeAlias = Callable[[str, str], ObjectType | None]
"""The type of a kind by its ``apiVersion`` and ``kind``; None: nothing is known of it."""


def nothing_known(_version: str, _kind: str) -> None:
    """No kind has a type."""


def prune(document: Document, of: ObjectType, at: str = "") -> Iterator[str]:
    """Take unknown fields out of ``document`` and give the path of each."""
    fields = of.fields()
    for name in list(document):
        path = f"{at}.{name}" if at else name
        if name not in fields:
            del document[name]
            yield path
        elif (inner := fields[name]) is not None:
            for each, where in _objects(document[name], path):
                yield from prune(each, inner, where)


def _objects(value: object, at: str) -> Iterator[tuple[Document, str]]:
    """The object in a field, or those in a list; what is none of them is refused elsewhere."""
    if isinstance(value, dict):
        yield value, at
    elif isinstance(value, list):
        found = ((each, f"{at}[{index}]") for index, each in enumerate(value))
        yield from ((each, path) for each, path in found if isinstance(each, dict))
