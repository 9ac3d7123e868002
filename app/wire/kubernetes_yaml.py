"""YAML as Kubernetes reads it, where PyYAML reads something else.

What looks like a date or a time of day is text (PyYAML: a date, a number to base 60), numbers
may be octal as ``0o17`` and have an exponent without a dot, and whole numbers are integers however
they are written: JSON knows no difference. Tabs may separate.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from app.wire import go_yaml

_INTEGER: Final = "tag:yaml.org,2002:int"
_NUMBER: Final = "tag:yaml.org,2002:float"
_OTHERWISE: Final = frozenset({_INTEGER, _NUMBER, "tag:yaml.org,2002:timestamp"})
_INTEGERS: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", re.ASCII
)
_NUMBERS: Final = re.compile(
    r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))"
    r"|\.(?:nan|NaN|NAN)",
    re.ASCII,
)
_STARTS: Final = "-+.0123456789"
_OF_A_VALUE: Final = 200
"""Characters, or bits of a number: more of them count as further values."""


class NotObjects(ValueError):
    """A text cannot be read as objects; it says what is wrong where."""


class Loader(go_yaml.Loader):
    """For `yaml.load_all`."""


def documents(text: str, *, most: int | None = None) -> list[tuple[int, Any]]:
    """Number and content of each document that is not empty; ``List`` objects are taken apart.

    Raises NotObjects, also where aliases make more than ``most`` values, or long ones, of the text.
    """
    try:
        loaded = list(yaml.load_all(text, Loader))
        is_large = most is not None and _size(loaded, {}) > most
    except yaml.YAMLError as error:
        raise NotObjects(f"not YAML: {go_yaml.problem(error)}") from error
    except RecursionError as error:
        raise NotObjects("not YAML: nested too deeply") from error
    except ValueError as error:
        raise NotObjects("not YAML: a number in it cannot be read") from error
    if is_large:
        raise NotObjects(f"there are more than {most} values")
    return [each for number, it in enumerate(loaded, start=1) for each in _objects(number, it)]


def _size(value: Any, sizes: dict[int, int]) -> int:
    """How many values ``value`` is of, a long one counted as several; ``sizes``: of known objects.

    Aliases stand for the same object in many places, which is counted in each. One that holds
    itself counts nothing inside: that no JSON can say it is told later.
    """
    if isinstance(value, str | bytes):
        return 1 + len(value) // _OF_A_VALUE
    if isinstance(value, int):
        return 1 + value.bit_length() // _OF_A_VALUE
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = 0
        inside = (*value, *value.values()) if isinstance(value, Mapping) else value
        sizes[id(value)] = 1 + sum(_size(each, sizes) for each in inside)
    return sizes[id(value)]


def _objects(number: int, document: Any) -> Iterator[tuple[int, Any]]:
    _check_json(document, number)
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items") or []
        if not isinstance(items, list):
            raise NotObjects(f"document {number}: items: is no list")
        yield from ((number, item) for item in items)
    elif document is not None:
        yield number, document


def _check_json(document: Any, number: int) -> None:
    """YAML can say more than an API server can be told: circles, sets, bytes, infinity."""
    try:
        json.dumps(document, allow_nan=False)
    except TypeError:
        why = "a set, bytes, or a key that is neither text nor a number"
    except (ValueError, RecursionError):
        why = "an infinite number, an object that holds itself, or too many levels"
    else:
        return
    raise NotObjects(f"document {number}: cannot be said in JSON: {why}")


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    # What Go calls octal has one zero before it; Python asks for the letter.
    return int(re.sub("^([-+]?)0o?(?=[0-7])", r"\g<1>0o", text), base=0)


def _number(loader: Loader, node: yaml.ScalarNode) -> int | float:
    number = loader.construct_yaml_float(node)
    return int(number) if number.is_integer() else number


Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag not in _OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _form, _read in ((_INTEGER, _INTEGERS, _integer), (_NUMBER, _NUMBERS, _number)):
    Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_form.pattern})$"), list(_STARTS))
    Loader.add_constructor(_tag, _read)
