"""Which names a member's selector means.

What a pattern or a label selector matches is worked out once and then kept up to date name by name:
when one of 5,000 nodes comes, it is held against the selectors there are, and nothing else is.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from app.webhooks.hypernodes import pattern_problem
from app.wire.errors import DecodeError
from app.wire.objects.selectors import LabelSelectorJson, label_selector

Labels = Mapping[str, str]

_NOTHING: Final[frozenset[str]] = frozenset()


class SelectorError(ValueError):
    """A selector means nothing."""


@dataclass(slots=True)
class _Match:
    holds: Callable[[str, Labels], bool]
    names: set[str] = field(default_factory=set)


class Names:
    """Names with their labels."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        self._matches: dict[bytes, _Match] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._labels

    def put(self, name: str, labels: Labels) -> bool:
        """Add a name, or change its labels; whether that was new."""
        if self._labels.get(name) == labels:
            return False
        self._labels[name] = labels
        for match in self._matches.values():
            (match.names.add if match.holds(name, labels) else match.names.discard)(name)
        return True

    def drop(self, name: str) -> bool:
        """Remove a name; whether it was there."""
        for match in self._matches.values():
            match.names.discard(name)
        return self._labels.pop(name, None) is not None

    def selected(self, selector: Mapping[str, Any]) -> Set[str]:
        """The names that a selector means; raises `SelectorError`."""
        exact = selector.get("exactMatch")
        if exact is not None:
            name = str(exact.get("name") or "")
            return frozenset({name}) if name in self._labels else _NOTHING
        key = msgspec.json.encode(selector, order="sorted")
        if key not in self._matches:
            holds = _test(selector)
            names = {name for name, labels in self._labels.items() if holds(name, labels)}
            self._matches[key] = _Match(holds, names)
        return self._matches[key].names


def _test(selector: Mapping[str, Any]) -> Callable[[str, Labels], bool]:
    pattern, labels = selector.get("regexMatch"), selector.get("labelMatch")
    if pattern is not None:
        return _pattern(str(pattern.get("pattern") or ""))
    if labels is not None:
        return _labels(labels)
    raise SelectorError("it has no selector")


def _pattern(text: str) -> Callable[[str, Labels], bool]:
    """Matches anywhere in the name, as Go's regular expressions do."""
    problem = pattern_problem(text)
    if problem:
        raise SelectorError(f"pattern {text}: {problem}")
    search = re.compile(text).search
    return lambda name, _: search(name) is not None


def _labels(selector: Mapping[str, Any]) -> Callable[[str, Labels], bool]:
    try:
        wanted = label_selector(msgspec.convert(selector, LabelSelectorJson), "labelMatch")
    except (DecodeError, msgspec.ValidationError) as error:
        raise SelectorError(str(error)) from error
    if wanted is None or not wanted.requirements:
        raise SelectorError("labelMatch has no requirement")
    return lambda _, labels: wanted.matches(labels)
