"""YAML with tabs where Go's reader takes them: as white space after something on the same line.

PyYAML's own scanner refuses them everywhere; libyaml's takes them as Go's does, but through it a
text that is nested deeply enough ends the process, and what is read here was written by hand.

``y`` and ``n`` are booleans to Go, as ``yes`` and ``no`` are to both.

A value that its own tag or form contradicts (``!!bool maybe``, ``2026-13-01``) is an error with a
place like all others; PyYAML lets whatever Python raised through.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

UNREADABLE = "the value cannot be read"

MOST_VALUES: Final = 100_000
"""A text with aliases of aliases stands for any number; one that was written by hand has less."""

_BOOLEAN: Final = "tag:yaml.org,2002:bool"
_BLANKS = " \t"
_BREAKS = "\r\n\x85\u2028\u2029"


class Loader(yaml.SafeLoader):
    """For `yaml.load`: as in Go a tab still does not indent, nor follow the dash of a list."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}

    def scan_to_next_token(self) -> None:
        """Skip what separates tokens."""
        super().scan_to_next_token()
        # Where a key may begin, white space is indentation.
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_plain_spaces(self, indent: int, start_mark: yaml.Mark) -> list[str] | None:
        """Skip what follows a word of plain text, and return what is text if more words follow."""
        length = 0
        while self.peek(length) in _BLANKS:
            length += 1
        blanks = self.prefix(length)
        if "\t" not in blanks:
            return super().scan_plain_spaces(indent, start_mark)
        self.forward(length)
        if self.peek() in _BREAKS:
            return super().scan_plain_spaces(indent, start_mark)
        return [blanks]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of ``node``."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise yaml.constructor.ConstructorError(
                problem=UNREADABLE, problem_mark=node.start_mark
            ) from error


Loader.add_implicit_resolver(_BOOLEAN, re.compile("[yYnN]$"), list("yYnN"))


def problem(error: yaml.YAMLError) -> str:
    """What is wrong and where, on one line."""
    if isinstance(error, yaml.reader.ReaderError):
        code = error.character if isinstance(error.character, int) else ord(error.character[:1])
        return f"character {int(error.position) + 1}: U+{code:04X} may not stand in YAML"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    said = getattr(error, "problem", None) or getattr(error, "context", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {said}"


def load(text: str) -> Any:
    """The first document in ``text``, all that Go's reader looks at.

    Raises YAMLError, or RecursionError when it is too deep.
    """
    return load_first(text)[0]


def load_first(text: str) -> tuple[Any, bool]:
    """The first document of ``text``, and whether another one follows."""
    loader = Loader(text)
    try:
        value = loader.get_data() if _goes_on(loader) else None
        return value, _goes_on(loader)
    finally:
        loader.dispose()


def _goes_on(loader: Loader) -> bool:
    return bool(loader.check_data())  # type: ignore[no-untyped-call]  # the stubs leave it out


@dataclass(frozen=True, slots=True)
class Placed:
    """A value of a document and the line where it begins.

    ``value`` holds other `Placed` where it is a mapping (by the text of their keys) or a tuple, and
    is what YAML says it is otherwise.
    """

    value: Any
    line: int


def load_placed(text: str) -> Placed | None:
    """The first document in ``text`` with its lines; None: there is none.

    Raises YAMLError, or RecursionError when it is too deep.
    """
    loader = Loader(text)
    try:
        if not loader.check_node():
            return None
        return _Placing(loader).placed(loader.get_node())
    finally:
        loader.dispose()


class _Placing:
    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._left = MOST_VALUES

    def placed(self, node: Any) -> Placed:
        self._left -= 1
        if self._left < 0:
            raise yaml.constructor.ConstructorError(
                problem=f"there are more than {MOST_VALUES} values", problem_mark=node.start_mark
            )
        return Placed(self._value(node), node.start_mark.line + 1)

    def _value(self, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            self._loader.flatten_mapping(node)
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self.placed(each) for each in node.value)
        return self._loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode) -> Mapping[str, Placed]:
        found: dict[str, Placed] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    problem="a key is not text", problem_mark=key.start_mark
                )
            found[str(key.value)] = self.placed(value)
        return found
