"""``-o``: how objects are shown.

``table`` and ``wide`` are for people, ``json`` and ``yaml`` whole objects (several as a ``List``,
as kubectl does it), ``name`` what kubectl takes as an argument.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec
import typer
import yaml

from app.wire.kinds import Resource
from app.wire.unstructured import Object, name

Form = Literal["table", "wide", "json", "yaml", "name"]
Output = Annotated[Form, typer.Option("--output", "-o", help="The form of the output.")]

EMPTY = "No resources found\n"

Table = Callable[[Sequence[Object], bool], str]
"""Objects, and whether there may be more columns, to text."""


def listed(items: Sequence[Object], *, form: Form, resource: Resource, table: Table) -> str:
    """Objects of which there may be any number."""
    if form in {"json", "yaml"}:
        return document({"apiVersion": "v1", "kind": "List", "items": list(items)}, form)
    if form == "name":
        return _names(items, resource)
    return table(items, form == "wide") if items else EMPTY


def first(items: Sequence[Object], *, form: Form, resource: Resource, table: Table) -> str:
    """The only object."""
    if form in {"json", "yaml"}:
        return document(items[0], form)
    return listed(items, form=form, resource=resource, table=table)


def one(item: Object, *, form: Form, resource: Resource) -> str:
    """One of the objects that come one after the other; not for tables."""
    return _names([item], resource) if form == "name" else document(item, form)


def document(value: Any, form: str) -> str:
    """JSON or YAML text."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=10**6)


def _names(items: Sequence[Object], resource: Resource) -> str:
    group = resource.api_version.rpartition("/")[0]
    kind = resource.kind.lower() + (f".{group}" if group else "")
    return "".join(f"{kind}/{name(item)}\n" for item in items)
