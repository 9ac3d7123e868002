"""Stock kinds held to their types, as the API server does it by decoding them.

A field that a kind does not have is left out and told; a value of another type than its field's is
a ``Misfit``, in the words of Go's decoder. A null counts as absent. What fits can be read without
looking twice: a list is a list, and of objects where it should be.

Which fields there are is told from outside, as nothing here knows the types of Kubernetes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

from app.sandbox.quantities import NO_QUANTITY, parse_milli
from app.wire.documents import Document

_INDEX: Final = re.compile(r"\[\d+\]")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


class Misfit(Exception):
    """A value that its field cannot hold."""


class Shape(Enum):
    """What a value is; the word is Go's for its type."""

    ANYTHING = "any"
    TEXT = "string"
    TRUTH = "bool"
    WHOLE = "int32"
    LONG = "int64"
    NUMBER = "float64"
    BYTES = "[]uint8"
    TIME = "2006-01-02T15:04:05Z07:00"
    MICRO_TIME = "2006-01-02T15:04:05.000000Z07:00"
    QUANTITY = "v1.ResourceList"
    WHOLE_OR_TEXT = "intstr.IntOrString"


class Many(Enum):
    """How many values a field holds, and how."""

    ONE = ""
    LIST = "[]"
    MAP = "map[string]"


class ObjectType(Protocol):
    """A type of objects."""

    @property
    def name(self) -> str:
        """The type's name with its version: ``v1.PodSpec``."""

    def fields(self) -> Mapping[str, FieldType]:
        """The type's fields by their names in a document."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field: of objects of a type, or of plain values of a shape."""

    shape: Shape = Shape.ANYTHING
    many: Many = Many.ONE
    object: ObjectType | None = None

    @property
    def word(self) -> str:
        """Go's word for the type of the whole field."""
        if self.shape is Shape.QUANTITY:
            return str(self.shape.value)
        return f"{self.many.value}{self.object.name if self.object else self.shape.value}"


TypeOf: TypeAlias = Callable[[str, str], ObjectType | None]
"""The type of a kind by its ``apiVersion`` and ``kind``; None: nothing is known of it."""


def nothing_known(_version: str, _kind: str) -> None:
    """No kind has a type."""


def conform(document: Any, of: ObjectType) -> list[str]:
    """Hold ``document`` to its type, in place; returns the paths of unknown fields."""
    if not isinstance(document, dict):
        word = json_word(document)
        raise Misfit(f"json: cannot unmarshal {word} into Go value of type {of.name}")
    reading = _Reading()
    reading.object(document, of, at="")
    return reading.unknown


class _Reading:
    """One walk through a document."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def object(self, document: Document, of: ObjectType, *, at: str) -> None:
        fields = of.fields()
        for name, value in list(document.items()):
            path = f"{at}.{name}" if at else name
            field = fields.get(name)
            if field is None:
                del document[name]
                self.unknown.append(path)
            elif value is not None:
                document[name] = self._field(value, field, _FieldPath(of, path))
            elif field.shape not in _TIMES:
                del document[name]

    def _field(self, value: Any, field: FieldType, place: _FieldPath) -> Any:
        if field.many is Many.ONE:
            return self._one(value, field, place)
        if field.many is Many.LIST:
            _must_be(list, value, field.word, place)
            within = (
                (_FieldPath(place.owner, f"{place.path}[{at}]"), one)
                for at, one in enumerate(value)
            )
            return [self._one(one, field, here) for here, one in within]
        _must_be(dict, value, field.word, place)
        return {key: self._one(one, field, place) for key, one in value.items()}

    def _one(self, value: Any, field: FieldType, place: _FieldPath) -> Any:
        if value is None:
            return {} if field.object is not None else _ABSENT.get(field.shape)
        if field.object is not None:
            _must_be(dict, value, field.object.name, place)
            self.object(value, field.object, at=place.path)
        elif (check := _CHECKS.get(field.shape)) is not None:
            check(value, field.shape, place)
        return value


@dataclass(frozen=True, slots=True)
class _FieldPath:
    """Where a value is: the type that has the field, and the path to it."""

    owner: ObjectType
    path: str

    def wrong(self, value: object, word: str) -> Misfit:
        owner = self.owner.name.rpartition(".")[2]
        path = _INDEX.sub("", self.path)
        literal = f" {value}" if isinstance(value, float) or _is_too_long(value) else ""
        return Misfit(
            f"json: cannot unmarshal {json_word(value)}{literal} into Go struct field"
            f" {owner}.{path} of type {word}"
        )


def _must_be(kind: type, value: object, word: str, place: _FieldPath) -> None:
    if not isinstance(value, kind):
        raise place.wrong(value, word)


def _check_text(value: object, shape: Shape, place: _FieldPath) -> None:
    _must_be(str, value, shape.value, place)


def _check_truth(value: object, shape: Shape, place: _FieldPath) -> None:
    _must_be(bool, value, shape.value, place)


def _check_whole(value: object, shape: Shape, place: _FieldPath) -> None:
    if not _is_whole(value) or (shape is not Shape.LONG and _is_too_long(value)):
        raise place.wrong(value, Shape.WHOLE.value if shape is Shape.WHOLE_OR_TEXT else shape.value)


def _check_number(value: object, shape: Shape, place: _FieldPath) -> None:
    if not (_is_whole(value) or isinstance(value, float)):
        raise place.wrong(value, shape.value)


def _check_whole_or_text(value: object, shape: Shape, place: _FieldPath) -> None:
    if not isinstance(value, str):
        _check_whole(value, shape, place)


def _check_bytes(value: object, shape: Shape, place: _FieldPath) -> None:
    if not isinstance(value, str):
        raise place.wrong(value, shape.value)
    try:
        b64decode(value, validate=True)
    except ValueError:
        found = _BASE64.match(value)
        at = found.end() if found else 0
        raise Misfit(f"illegal base64 data at input byte {at}") from None


def _check_time(value: object, shape: Shape, place: _FieldPath) -> None:
    if not isinstance(value, str):
        raise place.wrong(value, Shape.TEXT.value)
    if value and _TIME.fullmatch(value) is None:
        raise Misfit(f'parsing time "{value}" as "{shape.value}": cannot parse "{value}" as "2006"')


def _check_quantity(value: object, _shape: Shape, _place: _FieldPath) -> None:
    try:
        parse_milli(value)
    except ValueError:
        raise Misfit(NO_QUANTITY) from None


_TIMES: Final = frozenset({Shape.TIME, Shape.MICRO_TIME})
_CHECKS: Final[Mapping[Shape, Callable[[object, Shape, _FieldPath], None]]] = {
    Shape.TEXT: _check_text,
    Shape.TRUTH: _check_truth,
    Shape.WHOLE: _check_whole,
    Shape.LONG: _check_whole,
    Shape.NUMBER: _check_number,
    Shape.WHOLE_OR_TEXT: _check_whole_or_text,
    Shape.BYTES: _check_bytes,
    Shape.TIME: _check_time,
    Shape.MICRO_TIME: _check_time,
    Shape.QUANTITY: _check_quantity,
}
_ABSENT: Final[Mapping[Shape, Any]] = {
    Shape.TEXT: "",
    Shape.BYTES: "",
    Shape.TRUTH: False,
    Shape.WHOLE: 0,
    Shape.LONG: 0,
    Shape.NUMBER: 0,
    Shape.QUANTITY: "0",
}
"""What a null in a list or a map stands for; of objects, an empty one."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_too_long(value: object) -> bool:
    return isinstance(value, int) and not -(2**31) <= value < 2**31


def json_word(value: object) -> str:
    """Go's word for a JSON value."""
    for kind, word in _JSON_WORDS:
        if isinstance(value, kind):
            return word
    return "null"


_JSON_WORDS: Final = (
    (bool, "bool"),
    (str, "string"),
    (int | float, "number"),
    (list, "array"),
    (dict, "object"),
)
