"""Samples of a Prometheus page, and histograms of them by their buckets."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

Samples = dict[str, float]

_LE = re.compile(r'le="([^"]+)"')


def parse(text: str, *prefixes: str) -> Samples:
    """Samples whose name begins with one of the prefixes, by name with labels."""
    return {
        name: float(value)
        for name, _, value in (
            line.rpartition(" ") for line in text.splitlines() if line.startswith(prefixes)
        )
    }


def growth(after: Samples, before: Samples) -> Samples:
    """What was counted in between."""
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values were at most each limit (cumulative, ascending, ending in infinity)."""

    limits: tuple[tuple[float, float], ...] = ()

    @property
    def total(self) -> float:
        return self.limits[-1][1] if self.limits else 0.0

    def plus(self, other: Histogram) -> Histogram:
        """Both together; their limits are the same, or one is empty."""
        if not self.limits or not other.limits:
            return self if self.limits else other
        pairs = zip(self.limits, other.limits, strict=True)
        return Histogram(tuple((limit, mine + theirs) for (limit, mine), (_, theirs) in pairs))

    def share_within(self, limit: float) -> float:
        """Share of values known to be at most ``limit`` (exact where it is a bucket's limit)."""
        within = [count for edge, count in self.limits if edge <= limit]
        return within[-1] / self.total if within and self.total else 0.0

    def quantile(self, share: float) -> float:
        """The value at that share, linear within its bucket; NaN without values."""
        if not self.total:
            return math.nan
        wanted, floor, below = share * self.total, 0.0, 0.0
        for limit, count in self.limits:
            if count >= wanted and count > below:
                if math.isinf(limit):
                    return floor
                return floor + (limit - floor) * (wanted - below) / (count - below)
            floor, below = limit, count
        return floor


def histogram(samples: Samples, name: str, *labels: str) -> Histogram:
    """The histogram ``name`` summed over all label sets that contain every text of ``labels``."""
    counts: dict[float, float] = {}
    for key, value in samples.items():
        if key.startswith(f"{name}_bucket") and all(label in key for label in labels):
            found = _LE.search(key)
            if found:
                limit = float(found[1])
                counts[limit] = counts.get(limit, 0.0) + value
    return Histogram(tuple(sorted(counts.items())))


def percentile(values: list[float], share: float) -> float:
    """Nearest-rank percentile; NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
