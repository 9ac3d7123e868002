"""A column of codes that changes in place; what is told of it does not."""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from app.model.placed_pods import NONE, Codes, Rows

V = TypeVar("V", bound=Hashable)

SPARE = 64
"""How many values beyond twice those in use are kept before the others are forgotten."""


class LiveCodes(Generic[V]):
    """What :meth:`told` gave is copied before the next change, and until then given again."""

    def __init__(self, found: Sequence[V | None], *, size: int) -> None:
        codes = Codes.of(found)
        self._codes: Rows = np.full(size, NONE, dtype=np.intp)
        self._codes[: len(found)] = codes.codes
        self._values: dict[V, int] = dict(codes.values)
        self._told: Codes[V] | None = None
        self._most = 2 * len(self._values) + SPARE

    def put(self, row: int, value: V | None) -> None:
        """Row ``row`` has ``value`` from now on."""
        code = NONE if value is None else self._code(value)
        if self._codes[row] != code:
            self._own_codes()
            self._codes[row] = code

    def move(self, row: int, to: int) -> None:
        """Row ``to`` has what ``row`` has, which has nothing from now on."""
        if row != to and self._codes[to] != self._codes[row]:
            self._own_codes()
            self._codes[to] = self._codes[row]
        self.put(row, None)

    def widen(self, size: int) -> None:
        """Have ``size`` rows."""
        grown = np.full(size, NONE, dtype=np.intp)
        grown[: len(self._codes)] = self._codes
        self._codes = grown

    def told(self) -> Codes[V]:
        """The column now, for good."""
        told = self._told
        if told is None or told.codes is not self._codes or told.values is not self._values:
            self._codes.flags.writeable = False
            told = self._told = Codes(self._codes, self._values)
        return told

    def _own_codes(self) -> None:
        if not self._codes.flags.writeable:
            self._codes = self._codes.copy()

    def _code(self, value: V) -> int:
        code = self._values.get(value)
        if code is None:
            if len(self._values) >= self._most:
                self._forget()
            elif self._told is not None and self._told.values is self._values:
                self._values = dict(self._values)
            code = self._values[value] = len(self._values)
        return code

    def _forget(self) -> None:
        """Keep the values that some row has, with new codes."""
        used = np.flatnonzero(np.bincount(self._codes[self._codes != NONE]))
        renumbered = np.full(len(self._values) + 1, NONE, dtype=np.intp)
        renumbered[used] = np.arange(len(used))
        self._codes = renumbered.take(self._codes)
        by_code = list(self._values)
        self._values = {by_code[old]: new for new, old in enumerate(used.tolist())}
        self._most = 2 * len(used) + SPARE
