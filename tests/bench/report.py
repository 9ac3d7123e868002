"""From samples to the table and to what must hold.

Each figure of a row is the median over its runs; distributions (Filter times) are pooled. Rates are
compared only as ratios to the stock row of the same run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from tests.bench import histogram
from tests.bench.histogram import Histogram
from tests.bench.measure import Sample
from tests.bench.rows import PINNED_PAIR, Row

_HANDLER_LIMIT_S = 0.001
_CLIENT_LIMIT_MS = 2.0
_REJECTIONS_LIMIT = 0.1
_PINNED_TOLERANCE = 0.2
_PROCESSES = ("apiserver", "etcd", "scheduler", "extender")
_REJECTIONS = ("wait", "protect", "behind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the table."""

    row: Row
    runs: int
    rates: tuple[float, ...]
    ratio: float
    """To the stock row it is compared with; NaN for the stock rows themselves."""
    bound: int
    expected: int
    cpu_ms: dict[str, float]
    """CPU per pod."""
    rss_mib: dict[str, float]
    filter_s: Histogram
    algorithm_s: Histogram
    client_ms: list[float]
    bare_ms: list[float]
    """Seen by a client of a server that does nothing, at the same time."""
    calls_per_pod: float
    rejections_per_pod: float
    writes_per_pod: float
    allocated_mib: float
    """By the API server, per pod."""
    collections: float
    """How often it collected garbage in a run, on average."""
    partial: int
    drift: int

    @property
    def rate(self) -> float:
        return median(self.rates)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that must hold."""

    holds: bool
    text: str


def summarize(rows: Sequence[Row], samples: Sequence[Sample]) -> list[Line]:
    """One line per row that was run, in the order of the rows."""
    rates = {row.name: tuple(each.rate for each in samples if each.row == row.name) for row in rows}
    return [
        _line(row, [each for each in samples if each.row == row.name], rates)
        for row in rows
        if rates[row.name]
    ]


def _line(row: Row, samples: list[Sample], rates: dict[str, tuple[float, ...]]) -> Line:
    bound = sum(each.bound for each in samples) or 1
    stock = rates.get(row.of, ())
    filter_s, algorithm_s = Histogram(), Histogram()
    for each in samples:
        filter_s = filter_s.plus(each.filter_s)
        algorithm_s = algorithm_s.plus(each.algorithm_s)
    rejected = sum(each.answers.get(kind, 0.0) for each in samples for kind in _REJECTIONS)
    return Line(
        row=row,
        runs=len(samples),
        rates=rates[row.name],
        ratio=median(rates[row.name]) / median(stock) if stock else math.nan,
        bound=sum(each.bound for each in samples),
        expected=sum(each.pods for each in samples),
        cpu_ms={
            name: 1000 * median(each.cpu_s[name] / (each.bound or 1) for each in samples)
            for name in samples[0].cpu_s
        },
        rss_mib={
            name: max(each.rss_mib.get(name, 0.0) for each in samples)
            for name in samples[0].rss_mib
        },
        filter_s=filter_s,
        algorithm_s=algorithm_s,
        client_ms=[value for each in samples for value in each.probed.extender_ms],
        bare_ms=[value for each in samples for value in each.probed.bare_ms],
        calls_per_pod=sum(sum(each.answers.values()) for each in samples) / bound,
        rejections_per_pod=rejected / bound,
        writes_per_pod=sum(sum(each.writes.values()) for each in samples) / bound,
        allocated_mib=sum(each.allocated_mib for each in samples) / bound,
        collections=mean(each.collections for each in samples),
        partial=sum(len(each.partial) for each in samples),
        drift=sum(each.drift for each in samples),
    )


# What must hold ---------------------------------------------------------------------------------


def verdicts(lines: Sequence[Line]) -> list[Verdict]:
    """Every assertion that the rows at hand allow."""
    found = [verdict for line in lines for verdict in _of_line(line)]
    found += _pinned_pair({line.row.name: line for line in lines})
    return found


def _of_line(line: Line) -> Iterable[Verdict]:
    name = line.row.name
    yield Verdict(line.bound == line.expected, f"{name}: {line.bound} of {line.expected} bound")
    if line.row.at_least is not None and not math.isnan(line.ratio):
        wanted = line.row.at_least
        yield Verdict(
            line.ratio >= wanted, f"{name}: {line.ratio:.2f} of {line.row.of}, wanted {wanted:.2f}"
        )
    if line.row.side.has_extender:
        yield Verdict(line.drift == 0, f"{name}: ledger drift {line.drift}")
    if line.row.gangs:
        yield Verdict(line.partial == 0, f"{name}: partial gangs {line.partial}")
    if line.row.calls_filter:
        yield from _of_calls(line)


def _of_calls(line: Line) -> Iterable[Verdict]:
    name = line.row.name
    yield Verdict(
        line.rejections_per_pod < _REJECTIONS_LIMIT,
        f"{name}: {line.rejections_per_pod:.3f} rejections per bound pod,"
        f" wanted < {_REJECTIONS_LIMIT}",
    )
    p99_ms = 1000 * line.filter_s.quantile(0.99)
    yield Verdict(
        line.filter_s.share_within(_HANDLER_LIMIT_S) >= 0.99,
        f"{name}: Filter p99 {p99_ms:.2f} ms in the handler, wanted < 1",
    )
    if line.client_ms:
        seen_ms = histogram.percentile(line.client_ms, 0.99)
        yield Verdict(
            seen_ms < _CLIENT_LIMIT_MS,
            f"{name}: Filter p99 {seen_ms:.2f} ms seen by the client, wanted < 2",
        )


def _pinned_pair(lines: dict[str, Line]) -> Iterable[Verdict]:
    small, large = (lines.get(name) for name in PINNED_PAIR)
    if small is None or large is None:
        return
    ratio = large.cpu_ms["scheduler"] / small.cpu_ms["scheduler"]
    yield Verdict(
        abs(ratio - 1) <= _PINNED_TOLERANCE,
        f"scheduler CPU per pinned pod at {large.row.nodes} nodes is {ratio:.2f} of that at"
        f" {small.row.nodes}, wanted 0.80 to 1.20",
    )


# The table --------------------------------------------------------------------------------------

_HEAD = (
    "row",
    "pods",
    "pods/s (runs)",
    "of stock",
    "CPU ms/pod: apiserver etcd scheduler extender",
    "RSS MiB: same",
    "Filter ms: handler p50/p99",
    "client p50/p99",
    "bare p50/p99",
    "algorithm p50/p99",
    "calls/pod",
    "rejected/pod",
    "writes/pod",
    "apiserver MiB/pod, collections/run",
    "partial",
)


def table(lines: Sequence[Line]) -> str:
    """The lines as a Markdown table that also reads well in a terminal."""
    cells = [_HEAD, *map(_cells, lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    ruler = tuple("-" * width for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (cells[0], ruler, *cells[1:])
    )


def _cells(line: Line) -> tuple[str, ...]:
    runs = " ".join(f"{rate:.0f}" for rate in line.rates)
    asked = line.row.calls_filter
    return (
        line.row.name,
        f"{line.row.pods} on {line.row.nodes}",
        f"{line.rate:.0f} ({runs})",
        "" if math.isnan(line.ratio) else f"{line.ratio:.2f}",
        " ".join(f"{line.cpu_ms.get(name, 0.0):.2f}" for name in _PROCESSES),
        " ".join(f"{line.rss_mib.get(name, 0.0):.0f}" for name in _PROCESSES),
        _quantiles(line.filter_s) if asked else "",
        _percentiles(line.client_ms),
        _percentiles(line.bare_ms),
        _quantiles(line.algorithm_s),
        f"{line.calls_per_pod:.2f}" if asked else "",
        f"{line.rejections_per_pod:.3f}" if asked else "",
        f"{line.writes_per_pod:.2f}",
        f"{line.allocated_mib:.2f} {line.collections:.1f}",
        str(line.partial) if line.row.gangs else "",
    )


def _quantiles(times: Histogram) -> str:
    return f"{1000 * times.quantile(0.5):.2f}/{1000 * times.quantile(0.99):.2f}"


def _percentiles(times_ms: list[float]) -> str:
    if not times_ms:
        return ""
    return f"{histogram.percentile(times_ms, 0.5):.2f}/{histogram.percentile(times_ms, 0.99):.2f}"
