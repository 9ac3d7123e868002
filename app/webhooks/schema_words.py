"""What the API server says of values beyond the limits of their schema.

Objects of ours are judged before their schema is, and what is refused then never gets that far.
Clients match the API server's words as well as Volcano's, so a refusal has both.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from app.webhooks.object_types import KINDS
from app.wire import manifests
from app.wire.findings import Finding, at
from app.wire.kinds import Resource
from app.wire.reading import mapping, number_or_none, sequence
from app.wire.unstructured import Object

Schema = Mapping[str, Any]

_JUDGED: Final = "spec"


def beyond_schema(resource: Resource, item: Object) -> Iterator[Finding]:
    """Every value in ``spec`` that its schema will refuse, in the API server's words."""
    schema = _schemas().get(KINDS.get(resource, ""))
    if schema is not None:
        yield from _inside(item.get(_JUDGED), schema, _JUDGED)


@cache
def _schemas() -> Mapping[str, Schema]:
    """The schemas of ``spec`` by kind; read when they are first needed."""
    found: dict[str, Schema] = {}
    for document in manifests.crd_documents():
        whole = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found[document["spec"]["names"]["kind"]] = whole["properties"].get(_JUDGED, {})
    return found


def _inside(value: object, schema: Schema, path: str) -> Iterator[Finding]:
    if value is None:
        return
    for shown, problem in _problems(value, schema, path):
        yield Finding(path, f"{shown}: {problem}")
    for name, below in mapping(schema.get("properties")).items():
        yield from _inside(mapping(value).get(name), below, at(path, name))
    items = mapping(schema.get("items"))
    for index, each in enumerate(sequence(value) if items else ()):
        yield from _inside(each, items, at(path, index))


def _problems(value: object, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with the value itself: how it is shown, and why it is refused."""
    invalid, should = f"Invalid value: {json.dumps(value)}", f"{path} in body should"
    number = number_or_none(value)
    if number is not None and number < schema.get("minimum", number):
        yield invalid, f"{should} be greater than or equal to {schema['minimum']}"
    if number is not None and number > schema.get("maximum", number):
        yield invalid, f"{should} be less than or equal to {schema['maximum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield invalid, f"{should} be at least {schema['minLength']} chars long"
        if not re.search(_python(schema.get("pattern", "")), value):
            yield invalid, f"{should} match '{schema['pattern']}'"
        if value not in schema.get("enum", (value,)):
            supported = ", ".join(map(json.dumps, schema["enum"]))
            yield f"Unsupported value: {json.dumps(value)}", f"supported values: {supported}"
    if isinstance(value, list) and len(value) < schema.get("minItems", 0):
        yield f"Invalid value: {len(value)}", f"{should} have at least {schema['minItems']} items"


def _python(pattern: str) -> str:
    """The pattern as Python means it: its ``$`` is also before a newline at the end."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
