"""Which kinds are served: one row per group, version and plural.

Rows of one kind in several versions (or groups, for events) share a ``storage``: they are views of
the same documents. Custom kinds come and go with their CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from app.sandbox.apiserver.schema import Schema
from app.wire.columns import Column
from app.wire.documents import Document

View: TypeAlias = Callable[[Document], Document]
VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


def unchanged(document: Document) -> Document:
    """The view of a kind that is stored as it is served."""
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """Where a kind says how many replicas it wants and has; ``selector`` may be nowhere."""

    wanted: str = ".spec.replicas"
    found: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A served kind. ``to_storage`` and ``from_storage`` translate between views."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths = ScalePaths()
    columns: tuple[Column, ...] = ()
    schema: Schema | None = None
    custom: bool = False
    storage: str = ""
    to_storage: View = field(default=unchanged, compare=False)
    from_storage: View = field(default=unchanged, compare=False)

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """The storage key; rows that view the same documents have the same key."""
        return self.storage or storage_key(self.group, self.plural)

    @property
    def has_status(self) -> bool:
        """Whether ``status`` is a subresource, which writes of the object leave as it is."""
        return "status" in self.subresources


def storage_key(group: str, plural: str) -> str:
    """The address of a kind in the store: ``group/plural``, ``/plural`` in the core group."""
    return f"{group}/{plural}"


class Registry:
    """The rows, in the order in which discovery shows them."""

    def __init__(self, kinds: Iterable[ResourceKind]) -> None:
        self._rows: dict[tuple[str, str, str], ResourceKind] = {}
        self._by_storage: dict[str, ResourceKind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: ResourceKind) -> None:
        """Serve a row; a row of the same group, version and plural is replaced."""
        self._rows[kind.group, kind.version, kind.plural] = kind
        if kind.key == storage_key(kind.group, kind.plural):
            self._by_storage[kind.key] = kind

    def remove(self, *, group: str, plural: str) -> None:
        """Serve the plural in no version any more; an unknown plural is no error."""
        for row in [row for row in self._rows if row[0] == group and row[2] == plural]:
            del self._rows[row]
        self._by_storage.pop(storage_key(group, plural), None)

    def find(self, group: str, version: str, plural: str) -> ResourceKind | None:
        """The row of a group, version and plural; None where the plural is not served."""
        return self._rows.get((group, version, plural))

    def of_storage(self, storage: str) -> ResourceKind:
        """The row whose documents the storage key names; KeyError for an unknown key."""
        return self._by_storage[storage]

    def all(self) -> list[ResourceKind]:
        """Every row, so that a kind in two versions occurs twice."""
        return list(self._rows.values())

    def stored(self) -> list[ResourceKind]:
        """One row per storage."""
        return list(self._by_storage.values())

    def groups(self) -> dict[str, list[str]]:
        """Versions per group, both in order of first appearance; the core group is ``""``."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._rows:
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return found

    def of_group(self, group: str, version: str) -> list[ResourceKind]:
        """The rows of one group version; an empty list where nothing is served."""
        return [
            kind
            for (row_group, row_version, _), kind in self._rows.items()
            if row_group == group and row_version == version
        ]
