"""How long gangs run: what they declare, and what was learned of others before them.

What was learned is a *sketch*: counts of runs in buckets of durations, each 7 % longer than the one
before. A quantile of a sketch is in the bucket of the run that it is, so it is off by 7 % at most.
Sketches of the same key add up. A sketch of a thousand runs is halved, so that late runs count more
than early ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint16]
"""Runs per bucket, shape ``(BUCKETS,)``."""

RATIO: Final = 1.07
"""Of the ends of a bucket."""
BUCKETS: Final = 256
"""The last one begins at a year."""
MOST_KEYS: Final = 1_800
"""Sketches that are kept: less than 1 MB in all. The one that was fed least lately goes first."""
MOST_RUNS: Final = 1_000
KEY_BYTES: Final = 16
LEAST_RUNS: Final = 5
"""A sketch of fewer runs tells nothing."""

_LOG: Final = log(RATIO)
_EDGES: Final = np.arange(BUCKETS + 1) * _LOG
"""Logarithms of the ends of the buckets."""


def bucket_of(seconds: float) -> int:
    """The bucket of a run; one of less than a second is in the first."""
    return min(int(log(max(seconds, 1.0)) / _LOG), BUCKETS - 1)


def quantile(counts: Counts, share: float, *, beyond: float = 0.0) -> float | None:
    """The duration that ``share`` of the runs that lasted longer than ``beyond`` did not exceed.

    In seconds. None: no run lasted so long.
    """
    weights = counts.astype(np.float64)
    if beyond >= 1.0:
        left = (_EDGES[1:] - log(beyond)) / _LOG
        weights *= left.clip(0.0, 1.0)
    sums = np.cumsum(weights)
    if sums[-1] < 0.5:  # half of a run: what is left of one in the bucket of ``beyond``
        return None
    asked = share * sums[-1]
    filled = np.flatnonzero(weights)
    at = int(np.clip(np.searchsorted(sums, asked), filled[0], filled[-1]))
    lower = max(_EDGES[at], log(beyond) if beyond >= 1.0 else 0.0)
    inside = (asked - (sums[at] - weights[at])) / weights[at]
    return float(np.exp(lower + inside * (_EDGES[at + 1] - lower)))


class Sketches:
    """The sketches by key (:data:`KEY_BYTES` bytes), those that were fed least lately first."""

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._counts: NDArray[np.uint16] = np.zeros((MOST_KEYS, BUCKETS), dtype=np.uint16)

    def __len__(self) -> int:
        return len(self._rows)

    def feed(self, key: bytes, seconds: float) -> None:
        """A gang of that key ran for so long."""
        run = np.zeros(BUCKETS, dtype=np.uint16)
        run[bucket_of(seconds)] = 1
        self.add(key, run)

    def add(self, key: bytes, counts: Counts) -> None:
        """Add a sketch to the one of that key."""
        row = self._rows.pop(key, None)
        if row is None:
            row = len(self._rows)
            if row == MOST_KEYS:
                row = self._rows.pop(next(iter(self._rows)))
            self._counts[row] = 0
        self._rows[key] = row
        total = self._counts[row].astype(np.int64) + counts
        while total.sum() > MOST_RUNS:
            total = (total + 1) // 2
        self._counts[row] = total

    def of(self, key: bytes) -> Counts | None:
        """The sketch of that key; None: there is none of :data:`LEAST_RUNS` runs."""
        row = self._rows.get(key)
        if row is None or self._counts[row].sum() < LEAST_RUNS:
            return None
        found: Counts = self._counts[row].copy()
        return found

    def all(self) -> Iterator[tuple[bytes, Counts]]:
        """Every key with its sketch, in the order in which they were fed last."""
        for key, row in self._rows.items():
            yield key, self._counts[row].copy()

    def take(self, found: Iterable[tuple[bytes, Counts]]) -> None:
        """Add sketches that were kept."""
        for key, counts in found:
            self.add(key, counts)


@dataclass(frozen=True, slots=True, eq=False)
class RunTime:
    """What is known of how long a gang runs, in seconds from its start.

    ``declared``: it says so itself. ``limit``: it is ended then at the latest. ``learned`` are the
    sketches of gangs like it, the most alike first. A gang that has run longer than it declared
    goes by what was learned.
    """

    declared: float | None = None
    limit: float | None = None
    learned: Sequence[Counts] = ()

    @property
    def is_exact(self) -> bool:
        """Whether one number is all that is known."""
        return not self.learned

    def remaining(self, share: float, *, ran: float) -> float | None:
        """For how long the gang runs on that has run for ``ran`` seconds; None: it is not known.

        Of gangs like it that had run for so long, ``share`` did not run on for longer.
        """
        most = float("inf") if self.limit is None else max(self.limit - ran, 0.0)
        if self.declared is not None and self.declared > ran:
            return min(self.declared - ran, most)
        for counts in self.learned:
            whole = quantile(counts, share, beyond=ran)
            if whole is not None:
                return min(max(whole - ran, 0.0), most)
        return None if self.limit is None else most


UNKNOWN: Final = RunTime()
