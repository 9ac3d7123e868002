"""The last pass over a custom object: every rule of its schema that it breaks.

The words are those of kube-apiserver, which names no field where a value breaks a combination of
schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

from app.sandbox.apiserver.errors import (
    FieldError,
    duplicate,
    invalid_value,
    required,
    too_long,
    too_many,
    unsupported_value,
    wrong_combination,
    wrong_format,
    wrong_type,
)
from app.sandbox.apiserver.schema import TYPE_META, Schema
from app.wire.documents import Document

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_BITS: Final = {"int32": 31, "int64": 63}


def validate(value: Any, schema: Schema, *, path: str = "") -> Iterator[FieldError]:
    """Every broken rule, in the order of the document."""
    if value is None and (schema.nullable or not schema.type):
        return
    if not _has_type(value, schema):
        yield from _type_errors(value, schema, path=path)
        return
    if schema.enum and value not in schema.enum:
        yield unsupported_value(path, value, schema.enum)
    if schema.type == "integer":
        yield from _length_errors(value, schema.format, path=path)
    yield from _limit_errors(value, schema, path=path)
    yield from _combination_errors(value, schema, path=path)
    if isinstance(value, dict):
        yield from _object_errors(value, schema, path=path)
    elif isinstance(value, list):
        yield from _list_errors(value, schema, path=path)


def _object_errors(value: Document, schema: Schema, *, path: str) -> Iterator[FieldError]:
    for name in schema.required:
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    for name, item in sorted(value.items()):
        if not path and name in TYPE_META:
            continue
        child = schema.properties.get(name) or schema.values
        if child is not None:
            yield from validate(item, child, path=f"{path}.{name}" if path else name)


def _list_errors(value: list[Any], schema: Schema, *, path: str) -> Iterator[FieldError]:
    if schema.items is not None:
        for index, item in enumerate(value):
            yield from validate(item, schema.items, path=f"{path}[{index}]")
    if schema.is_set:
        yield from _repeated(value, lambda item: item, path=path)
    elif schema.list_keys:
        keys = sorted(schema.list_keys)
        objects = [item for item in value if isinstance(item, dict)]
        yield from _repeated(
            objects, lambda item: {key: item[key] for key in keys if key in item}, path=path
        )


def _repeated(
    value: list[Any], identity: Callable[[Any], Any], *, path: str
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        found = identity(item)
        text = json.dumps(found, sort_keys=True)
        if text in seen:
            yield duplicate(f"{path}[{index}]", found)
        seen.add(text)


# Types


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


def _type_errors(value: Any, schema: Schema, *, path: str) -> Iterator[FieldError]:
    if isinstance(value, float) and schema.type == "integer":
        yield from _length_errors(value, schema.format, path=path)
        return
    wanted = "integer,string" if schema.int_or_string else schema.type
    word = _type_word(value)
    yield wrong_type(path, word, f'{path} in body must be of type {wanted}: "{word}"')


def _type_word(value: Any) -> str:
    if value is None:
        return "null"
    for word in ("boolean", "integer", "number", "string", "array", "object"):
        if isinstance(value, _TYPES[word]):
            return word
    return "unknown"


def _length_errors(value: float, form: str, *, path: str) -> Iterator[FieldError]:
    """A number that is no whole one, or longer than its format; Go reads the longest as floats."""
    if _is_whole(value, bits=_BITS.get(form, 63)):
        return
    known = form in _BITS
    if not _is_whole(value, bits=63):
        word, wanted = ("float64", form) if known else ("number", "integer")
        yield wrong_type(path, word, f'{path} in body must be of type {wanted}: "{word}"')
    wanted = f"integer with format {form}" if known else "integer (default format)"
    yield wrong_format(path, wanted)


def _is_whole(value: float, *, bits: int) -> bool:
    return value == int(value) and -(2**bits) <= value < 2**bits


# Limits


def _limit_errors(value: Any, schema: Schema, *, path: str) -> Iterator[FieldError]:
    if isinstance(value, str):
        if schema.pattern is not None and not schema.pattern.fits(value):
            text = f"{path} in body should match '{schema.pattern.text}'"
            yield invalid_value(path, value, text)
        yield from _size_errors(value, schema, ("Length", "be", " chars long"), path=path)
    elif isinstance(value, list):
        yield from _size_errors(value, schema, ("Items", "have", " items"), path=path)
    elif isinstance(value, dict):
        yield from _size_errors(value, schema, ("Properties", "have", " properties"), path=path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_errors(value, schema, path=path)


def _size_errors(
    value: Any, schema: Schema, words: tuple[str, str, str], *, path: str
) -> Iterator[FieldError]:
    what, verb, unit = words
    least, most = schema.limits.get(f"min{what}"), schema.limits.get(f"max{what}")
    size = len(value)
    if least is not None and size < least:
        text = f"{path} in body should {verb} at least {_shown(least)}{unit}"
        yield invalid_value(path, value if isinstance(value, str) else size, text)
    if most is not None and size > most:
        is_text = isinstance(value, str)
        yield too_long(path, _shown(most)) if is_text else too_many(path, size, _shown(most))


def _number_errors(value: float, schema: Schema, *, path: str) -> Iterator[FieldError]:
    limits, excluded = schema.limits, schema.excluded
    least, most, step = (limits.get(name) for name in ("minimum", "maximum", "multipleOf"))
    if least is not None and (value < least or (value == least and "minimum" in excluded)):
        bound = "greater than" if "minimum" in excluded else "greater than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {bound} {_shown(least)}")
    if most is not None and (value > most or (value == most and "maximum" in excluded)):
        bound = "less than" if "maximum" in excluded else "less than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {bound} {_shown(most)}")
    if step and Fraction(str(value)) % Fraction(str(step)):
        yield invalid_value(path, value, f"{path} in body should be a multiple of {_shown(step)}")


def _shown(limit: float) -> float:
    return int(limit) if float(limit).is_integer() else limit


# Combinations


def _combination_errors(value: Any, schema: Schema, *, path: str) -> Iterator[FieldError]:
    if schema.any_of:
        broken = _broken(value, schema.any_of, path=path)
        if all(broken):
            yield wrong_combination(path, "must validate at least one schema (anyOf)")
            yield from min(broken, key=len)
    if schema.one_of:
        yield from _one_of_errors(value, schema.one_of, path=path)
    if schema.all_of:
        errors = [error for each in _broken(value, schema.all_of, path=path) for error in each]
        yield from errors
        if errors:
            yield wrong_combination(path, "must validate all the schemas (allOf)")
    if schema.none_of is not None and not list(validate(value, schema.none_of, path=path)):
        yield wrong_combination(path, "must not validate the schema (not)")


def _one_of_errors(
    value: Any, alternatives: tuple[Schema, ...], *, path: str
) -> Iterator[FieldError]:
    broken = _broken(value, alternatives, path=path)
    fitting = sum(1 for errors in broken if not errors)
    if fitting == 1:
        return
    found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
    yield wrong_combination(path, f"must validate one and only one schema (oneOf). {found}")
    if not fitting:
        yield from min(broken, key=len)


def _broken(value: Any, schemas: tuple[Schema, ...], *, path: str) -> list[list[FieldError]]:
    """What is wrong with the value by each of the schemas."""
    return [list(validate(value, schema, path=path)) for schema in schemas]
