"""Typed reading of plugin arguments.

Tools that rewrite the ConfigMap turn ``10`` into ``"10"`` and ``true`` into ``"true"``
(volcano.md §11), so numbers and booleans are accepted as text too. An argument that is absent, null
or empty text keeps its default; any other value that does not fit is a :class:`ConfError` naming
plugin, key and value.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.core.conf_error import ConfError
from app.kit.durations import parse_duration
from app.model.booleans import boolean
from app.model.conf import PluginConf

_SUFFIXES = {
    "m": 1e-3,
    **{prefix: 1000.0**power for power, prefix in enumerate(("k", "M", "G", "T"), start=1)},
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGT", start=1)},
}
_QUANTITY = re.compile(rf"([0-9]+(?:\.[0-9]+)?)({'|'.join(_SUFFIXES)})")


def parse_bool(value: object) -> bool:
    """A boolean, or text that Go reads as one; ``ValueError`` otherwise."""
    if isinstance(value, bool):
        return value
    found = boolean(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not true or false")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Noted(Mapping[str, object]):
    """Arguments that note which of them were asked for, so that the others can be told."""

    given: Mapping[str, object]
    _asked: set[str] = field(default_factory=set)

    def __getitem__(self, key: str) -> object:
        self._asked.add(key)
        return self.given[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def unread(self) -> list[str]:
        """Arguments that no plugin asked for, as they stand in the configuration."""
        return [key for key in self.given if key not in self._asked]


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The arguments of one plugin, or of an action."""

    conf: PluginConf
    owner: str = "plugin"

    def integer(self, key: str, default: int) -> int:
        """The whole number at ``key``."""
        value = self._number(key, kind="a whole number")
        if value is None:
            return default
        if not value.is_integer():
            raise self._wrong(key, kind="a whole number")
        return int(value)

    def number(self, key: str, default: float) -> float:
        """The number at ``key``."""
        value = self._number(key, kind="a number")
        return default if value is None else value

    def flag(self, key: str, *, default: bool) -> bool:
        """The boolean at ``key``."""
        value = self._given(key)
        if value is None:
            return default
        try:
            return parse_bool(value)
        except ValueError:
            raise self._wrong(key, kind="true or false") from None

    def quantity(self, key: str, default: float) -> float:
        """The quantity at ``key``, such as ``250m`` or ``200Mi``: cores, bytes, items."""
        value = self._given(key)
        if isinstance(value, str) and (found := _QUANTITY.fullmatch(value.strip())):
            return float(found[1]) * _SUFFIXES[found[2]]
        number = self._number(key, kind="a quantity such as 250m or 200Mi")
        return default if number is None else number

    def text(self, key: str) -> str:
        """The text at ``key``, or empty."""
        value = self._given(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(key, kind="text")
        return value

    def duration(self, key: str) -> float | None:
        """The positive duration at ``key`` in seconds, None when absent."""
        value = self._given(key)
        if value is None:
            return None
        try:
            seconds = parse_duration(value.strip() if isinstance(value, str) else "")
        except ValueError:
            seconds = 0.0
        if seconds <= 0:
            raise self._wrong(key, kind="a positive duration such as 1h30m")
        return seconds

    def _given(self, key: str) -> object:
        value = self.conf.arguments.get(key)
        return None if isinstance(value, str) and not value.strip() else value

    def _number(self, key: str, *, kind: str) -> float | None:
        value = self._given(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self._wrong(key, kind=kind)
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise self._wrong(key, kind=kind) from None
        if not math.isfinite(number):
            raise self._wrong(key, kind=kind)
        return number

    def _wrong(self, key: str, *, kind: str) -> ConfError:
        value = self.conf.arguments.get(key)
        return ConfError(f"{self.owner} {self.conf.name}: argument {key}: {value!r} is not {kind}")
