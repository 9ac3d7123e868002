"""Our table of pod fields against the types of Kubernetes, from which the sandbox reads them."""

from __future__ import annotations

from collections.abc import Iterator

from app.main.adapters.stock_types import stock_type
from app.sandbox.apiserver.stock_fields import FieldType, Many, ObjectType, Shape
from app.wire.pod_types import SHAPES

_WORDS = {
    Shape.TEXT: "text",
    Shape.TIME: "text",
    Shape.TRUTH: "flag",
    Shape.WHOLE: "small",
    Shape.LONG: "number",
    Shape.QUANTITY: "quantity",
    Shape.WHOLE_OR_TEXT: "int-or-string",
}


def word(field: FieldType) -> str:
    """How our table writes the type of a field."""
    if field.object is not None:
        name = plain(field.object)
        inside = name if name in SHAPES else "Open"
    else:
        inside = _WORDS.get(field.shape, "Open")
    if field.shape is Shape.QUANTITY and field.many is Many.MAP:
        return "{quantity}"
    return {Many.ONE: inside, Many.LIST: f"[{inside}]", Many.MAP: f"{{{inside}}}"}[field.many]


def reached(root: ObjectType) -> Iterator[ObjectType]:
    """The type, and all those of the fields in it that our table has."""
    seen, waiting = set[str](), [root]
    while waiting:
        kind = waiting.pop()
        if (name := plain(kind)) in SHAPES and name not in seen:
            seen.add(name)
            yield kind
            waiting += [each.object for each in kind.fields().values() if each.object is not None]


def plain(kind: ObjectType) -> str:
    """The name without its version."""
    return kind.name.rpartition(".")[2]


def root() -> ObjectType:
    found = stock_type("v1", "PodTemplateSpec")
    assert found is not None
    return found


def test_each_kind_has_the_fields_that_kubernetes_gives_it() -> None:
    stock = {
        plain(kind): {name: word(each) for name, each in kind.fields().items()}
        for kind in reached(root())
    }
    assert {kind: dict(fields) for kind, fields in SHAPES.items() if kind in stock} == stock


def test_no_kind_of_the_table_is_out_of_reach() -> None:
    assert {plain(kind) for kind in reached(root())} == set(SHAPES)
