"""Structural schemas of custom kinds: defaulting, pruning and validation.

A schema is read once into a tree of ``Schema`` nodes and then applied to documents in three passes,
in the API server's order: prune what is not declared, fill in defaults, validate (which is in
``validation``). CEL rules (``x-kubernetes-validations``) are not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.sandbox.apiserver import patterns
from app.sandbox.apiserver.patterns import Pattern
from app.wire.copying import copied
from app.wire.documents import Document

_NO_DEFAULT: Any = object()
LIMITS = (
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
_EXCLUDING = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One node of a structural schema."""

    type: str = ""
    properties: Mapping[str, Schema] = field(default_factory=dict)
    values: Schema | None = None
    items: Schema | None = None
    required: tuple[str, ...] = ()
    default: Any = _NO_DEFAULT
    nullable: bool = False
    preserve_unknown: bool = False
    embedded: bool = False
    int_or_string: bool = False
    format: str = ""
    enum: tuple[Any, ...] = ()
    pattern: Pattern | None = None
    is_set: bool = False
    list_keys: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    """Limits that a value must not reach either."""
    one_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    all_of: tuple[Schema, ...] = ()
    none_of: Schema | None = None


def parse_schema(document: Document) -> Schema:
    """An ``openAPIV3Schema`` as a tree."""
    values = document.get("additionalProperties")
    pattern = document.get("pattern")
    return Schema(
        type=document.get("type", ""),
        properties={
            name: parse_schema(one) for name, one in (document.get("properties") or {}).items()
        },
        values=parse_schema(values) if isinstance(values, dict) else None,
        items=parse_schema(document["items"]) if document.get("items") else None,
        required=tuple(document.get("required") or ()),
        default=document.get("default", _NO_DEFAULT),
        nullable=bool(document.get("nullable")),
        preserve_unknown=bool(document.get("x-kubernetes-preserve-unknown-fields"))
        or values is True,
        embedded=bool(document.get("x-kubernetes-embedded-resource")),
        int_or_string=bool(document.get("x-kubernetes-int-or-string")),
        format=document.get("format", ""),
        enum=tuple(document.get("enum") or ()),
        pattern=patterns.compiled(pattern) if pattern else None,
        is_set=document.get("x-kubernetes-list-type") == "set",
        list_keys=_list_keys(document),
        limits={name: document[name] for name in LIMITS if document.get(name) is not None},
        excluded=frozenset(name for name, flag in _EXCLUDING.items() if document.get(flag) is True),
        one_of=_alternatives(document, "oneOf"),
        any_of=_alternatives(document, "anyOf"),
        all_of=_alternatives(document, "allOf"),
        none_of=parse_schema(document["not"]) if document.get("not") else None,
    )


def _alternatives(document: Document, name: str) -> tuple[Schema, ...]:
    return tuple(parse_schema(one) for one in document.get(name) or ())


def _list_keys(document: Document) -> tuple[str, ...]:
    if document.get("x-kubernetes-list-type") == "map":
        return tuple(document.get("x-kubernetes-list-map-keys") or ())
    return ()


def prune(value: Any, schema: Schema, *, path: str = "", root: bool = True) -> list[str]:
    """Remove undeclared fields in place; returns their paths."""
    if isinstance(value, list):
        return [
            gone
            for index, item in enumerate(value)
            if schema.items is not None
            for gone in prune(item, schema.items, path=f"{path}[{index}]", root=False)
        ]
    if not isinstance(value, dict):
        return []
    removed: list[str] = []
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        child = schema.properties.get(name) or schema.values
        if (root or schema.embedded) and name in TYPE_META:
            continue
        if child is not None:
            removed += prune(value[name], child, path=inner, root=False)
        elif not schema.preserve_unknown:
            del value[name]
            removed.append(inner)
    return removed


def apply_defaults(value: Any, schema: Schema) -> None:
    """Fill in declared defaults in place; a null that is not allowed counts as absent."""
    if isinstance(value, list) and schema.items is not None:
        for item in value:
            apply_defaults(item, schema.items)
    if not isinstance(value, dict):
        return
    for name, child in schema.properties.items():
        absent = name not in value or (value[name] is None and not child.nullable)
        if absent and child.default is not _NO_DEFAULT:
            value[name] = copied(child.default)
        elif absent:
            value.pop(name, None)
    for name, item in value.items():
        inner = schema.properties.get(name) or schema.values
        if inner is not None:
            apply_defaults(item, inner)
