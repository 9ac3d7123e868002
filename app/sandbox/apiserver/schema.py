"""Structural schemas of custom kinds: defaulting, pruning and validation.

A schema is read once into a tree of ``Schema`` nodes and then applied to documents in three passes,
in the API server's order: prune what is not declared, fill in defaults, validate. CEL rules
(``x-kubernetes-validations``) are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.sandbox.apiserver.errors import (
    FieldError,
    invalid_value,
    required,
    unsupported_value,
    wrong_format,
    wrong_type,
)
from app.sandbox.documents import Document, copied

_NO_DEFAULT: Any = object()
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_LIMITS = (
    ("minimum", "maximum", "be"),
    ("minLength", "maxLength", "be"),
    ("minItems", "maxItems", "have"),
    ("minProperties", "maxProperties", "have"),
)
_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


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
    pattern: re.Pattern[str] | None = None
    list_keys: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)


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
        pattern=re.compile(pattern) if pattern else None,
        list_keys=_list_keys(document),
        limits={name: document[name] for pair in _LIMITS for name in pair[:2] if name in document},
    )


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
        if (root or schema.embedded) and name in _TYPE_META:
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


def validate(value: Any, schema: Schema, *, path: str = "") -> Iterator[FieldError]:
    """Every broken rule, in the order of the document."""
    if value is None and (schema.nullable or not schema.type):
        return
    if not _has_type(value, schema):
        text = f"{path} in body must be of type {schema.type}: {_type_name(value)}"
        yield wrong_type(path, _type_word(value), text)
        return
    if schema.enum and value not in schema.enum:
        yield unsupported_value(path, value, schema.enum)
    if schema.format == "int32" and not -(2**31) <= value < 2**31:
        yield wrong_format(path, "integer with format int32")
    yield from _check_limits(value, schema, path=path)
    if isinstance(value, dict):
        yield from _validate_object(value, schema, path=path)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from validate(item, schema.items, path=f"{path}[{index}]")


def _validate_object(value: Document, schema: Schema, *, path: str) -> Iterator[FieldError]:
    for name in schema.required:
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    for name, item in sorted(value.items()):
        if not path and name in _TYPE_META:
            continue
        child = schema.properties.get(name) or schema.values
        if child is not None:
            yield from validate(item, child, path=f"{path}.{name}" if path else name)


def _has_type(value: Any, schema: Schema) -> bool:
    if schema.int_or_string:
        return isinstance(value, int | str) and not isinstance(value, bool)
    if not schema.type:
        return True
    if isinstance(value, bool):
        return schema.type == "boolean"
    if schema.type == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(schema.type, (object,)))


def _type_word(value: Any) -> str:
    if value is None:
        return "null"
    for word in ("boolean", "integer", "number", "string", "array", "object"):
        if isinstance(value, _TYPES[word]):
            return word
    return "unknown"


def _type_name(value: Any) -> str:
    return f'"{_type_word(value)}"'


def _check_limits(value: Any, schema: Schema, *, path: str) -> Iterator[FieldError]:
    if isinstance(value, str) and schema.pattern and not schema.pattern.search(value):
        yield invalid_value(path, value, f"{path} in body should match '{schema.pattern.pattern}'")
    measured = {"minimum": "value", "maximum": "value"}
    for low, high, verb in _LIMITS:
        size = _size(value, low)
        if size is None:
            continue
        noun = "" if low in measured else _unit(low)
        at_least, at_most = schema.limits.get(low), schema.limits.get(high)
        if at_least is not None and size < at_least:
            text = _limit_text(verb, "at least" if noun else "greater than or equal to", at_least)
            yield invalid_value(path, _brief(value), f"{path} in body should {text}{noun}")
        if at_most is not None and size > at_most:
            text = _limit_text(verb, "at most" if noun else "less than or equal to", at_most)
            yield invalid_value(path, _brief(value), f"{path} in body should {text}{noun}")


def _limit_text(verb: str, bound: str, limit: float) -> str:
    shown = int(limit) if float(limit).is_integer() else limit
    return f"{verb} {bound} {shown}"


def _unit(limit: str) -> str:
    return {"minLength": " chars long", "minItems": " items", "minProperties": " properties"}[limit]


def _brief(value: Any) -> Any:
    return len(value) if isinstance(value, list | dict) else value


def _size(value: Any, limit: str) -> float | None:
    """What ``limit`` measures of ``value``; None where it does not apply."""
    match limit:
        case "minimum":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else None
        case "minLength":
            return len(value) if isinstance(value, str) else None
        case "minItems":
            return len(value) if isinstance(value, list) else None
        case _:
            return len(value) if isinstance(value, dict) else None
