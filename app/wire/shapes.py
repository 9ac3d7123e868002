"""Values of any form, compared with what a table declares of them.

Read ``"Container": {"[text]": "args command"}`` as: ``args`` and ``command`` of a container are
lists of texts. ``{…}`` is a map from names to what is inside, ``Open`` an object that may hold
anything; null is allowed everywhere but in lists of what must be whole. A field that is not named
may hold anything too and is warned of: it may be misspelt or misplaced, and it may come with a
later version.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.kit.likeness import meant
from app.wire.findings import Findings, at
from app.wire.reading import amount

_MOST_QUOTED: Final = 60

Shapes = Mapping[str, Mapping[str, str]]
"""The type of each field of each kind of object."""


def shapes_of(declared: Shapes) -> Shapes:
    """The table the other way round: from fields to types."""
    return {
        name: {field: kind for kind, fields in by_kind.items() for field in fields.split()}
        for name, by_kind in declared.items()
    }


def _is_quantity(value: object) -> bool:
    """Whether ``value`` can be read; the policies refuse larger powers too, which take minutes."""
    far = isinstance(value, str) and _FAR.search(value) is not None
    return not far and amount("", value) is not None


_FAR: Final = re.compile(r"[eE][-+]?[0-9]{4}")
"""A power of four digits or more."""


def _is_number(value: object, bits: int) -> bool:
    """Whether ``value`` is a whole number that a field of so many bits can hold."""
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


_PLAIN: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "text": (lambda value: isinstance(value, str), "must be a string"),
    "flag": (lambda value: isinstance(value, bool), "must be true or false"),
    "number": (lambda value: _is_number(value, 64), "must be an integer"),
    "small": (lambda value: _is_number(value, 32), "must be an integer of 32 bits"),
    "int-or-string": (
        lambda value: isinstance(value, str) or _is_number(value, 64),
        "must be an integer or a string",
    ),
    "quantity": (
        _is_quantity,
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
}


def check_shape(
    value: object,
    kind: str,
    shapes: Shapes,
    *,
    path: str,
    findings: Findings,
    whole: Collection[str] = (),
) -> None:
    """What in ``value``, at ``path``, is of another type than ``kind`` says, or of no field.

    ``whole``: kinds of which a list may not hold null.
    """
    _Checking(shapes, whole, findings).check(value, kind, path)


def is_of(value: object, kind: str, shapes: Shapes) -> bool:
    """Whether nothing in ``value`` is of another type than ``kind`` among ``shapes`` says."""
    findings = Findings()
    check_shape(value, kind, shapes, path="", findings=findings)
    return not findings.errors


@dataclass(frozen=True, slots=True)
class _Checking:
    shapes: Shapes
    whole: Collection[str]
    findings: Findings

    def check(self, value: object, kind: str, path: str) -> None:
        """What is in ``value``, at ``path``, and not of the types that ``kind`` says."""
        if value is None:
            return
        if kind in _PLAIN:
            fits, problem = _PLAIN[kind]
            if not fits(value):
                self._refuse(value, problem, path)
        elif kind.startswith("["):
            self._check_list(value, kind[1:-1], path)
        elif kind.startswith("{"):
            self._check_map(value, kind[1:-1], path)
        elif not isinstance(value, dict):
            self._refuse(value, "must be an object", path)
        else:
            self._check_fields(value, self.shapes.get(kind), path)

    def _check_fields(
        self, value: Mapping[str, object], fields: Mapping[str, str] | None, path: str
    ) -> None:
        if fields is None:
            return
        for key, inside in fields.items():
            self.check(value.get(key), inside, at(path, key))
        for key in value:
            if key not in fields:
                self.findings.warn(at(path, key), f"unknown field{meant(key, fields)}")

    def _check_list(self, value: object, inside: str, path: str) -> None:
        if not isinstance(value, list):
            self._refuse(value, "must be a list", path)
            return
        for index, each in enumerate(value):
            if each is None and inside in self.whole:
                self.findings.refuse(at(path, index), "Required value")
            self.check(each, inside, at(path, index))

    def _check_map(self, value: object, inside: str, path: str) -> None:
        if not isinstance(value, dict):
            self._refuse(value, "must be an object", path)
            return
        for key, each in value.items():
            self.check(each, inside, f"{path}[{key}]")

    def _refuse(self, value: object, problem: str, path: str) -> None:
        quoted: Any = value if isinstance(value, str) else json.dumps(value)
        self.findings.refuse(path, f'Invalid value: "{quoted[:_MOST_QUOTED]}": {problem}')
