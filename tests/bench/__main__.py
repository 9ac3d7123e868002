"""`make bench`: the stock kube-scheduler alone and with us, side by side on the real control plane.

One run starts one control plane, gives it 1,000 and then 5,000 fake nodes, and runs every row some
times, the sides taking turns (see `rows`). It prints a table and what must hold; the exit code is 1
when something does not. Times depend on the machine and on what else it does: only ratios between
rows of one run are judged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.bench import report
from tests.bench.measure import Sample, clear, measure, warm_up
from tests.bench.rows import LARGE, SMALL, Row, chosen, order
from tests.bench.stand import Stand
from tests.bench.traffic import Traffic
from tests.clusters.binaries import kubernetes_version
from tests.clusters.certificates import KeyPair
from tests.clusters.client import tls_context

_REPEATS, _QUICK_REPEATS = 5, 1


def main() -> None:
    options = _parser().parse_args()
    repeats = options.repeats or (_QUICK_REPEATS if options.quick else _REPEATS)
    try:
        rows = chosen(options.rows, quick=options.quick)
    except ValueError as error:
        sys.exit(str(error))
    began = time.monotonic()
    _say(f"{_machine()}; {repeats} repeats of {len(rows)} rows")
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
        samples = asyncio.run(_run(Path(folder) / "plane", rows, repeats=repeats))
    lines = report.summarize(rows, samples)
    judged = report.verdicts(lines)
    _say(f"\n{report.table(lines)}\n")
    for verdict in judged:
        _say(f"{'holds ' if verdict.holds else 'FAILS '} {verdict.text}")
    _say(f"\n{_machine()}, {time.monotonic() - began:.0f} s")
    if options.json:
        _write(options.json, samples, judged)
    sys.exit(0 if all(verdict.holds for verdict in judged) else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat of the rows that judge")
    parser.add_argument("--rows", nargs="+", default=[], help="only these, and what they need")
    parser.add_argument("--repeats", type=int, help=f"runs of each row (default {_REPEATS})")
    parser.add_argument("--json", type=Path, help="also write all samples to this file")
    return parser


async def _run(folder: Path, rows: list[Row], *, repeats: int) -> list[Sample]:
    samples: list[Sample] = []
    with Stand(folder) as stand:
        plane = stand.plane
        admin = KeyPair(folder / "pki" / "admin.crt", folder / "pki" / "admin.key")
        context = tls_context(plane.authority.certificate, admin)
        async with Traffic(plane.url, context) as traffic:
            for count in (SMALL, LARGE):
                half = [row for row in rows if row.nodes == count]
                if half:
                    stand.grow(count)
                for repeat in range(repeats if half else 0):
                    stand.stop_side()  # so that each run of the stock row is of a new process too
                    heap = (repeat + 0.5) / repeats
                    for row in order(half, repeat=repeat):
                        samples.append(await _run_row(stand, traffic, row, heap=heap))
                stand.stop_side()
    return samples


async def _run_row(stand: Stand, traffic: Traffic, row: Row, *, heap: float) -> Sample:
    if stand.use(row.side):
        await warm_up(stand, traffic, row)
    sample = await measure(stand, traffic, row, heap=heap)
    await clear(traffic)
    busy = " ".join(f"{name} {cpu / sample.seconds:.0%}" for name, cpu in sample.cpu_s.items())
    _say(
        f"{row.name:16} {row.nodes:5} nodes {sample.bound:5} bound in {sample.seconds:6.2f} s"
        f" {sample.rate:5.0f}/s  busy: {busy}"
    )
    return sample


def _machine() -> str:
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores {platform.machine()},"
        f" Kubernetes {kubernetes_version()}, Python {platform.python_version()},"
        f" load {os.getloadavg()[0]:.1f}"
    )


def _write(path: Path, samples: list[Sample], judged: list[report.Verdict]) -> None:
    content = {
        "machine": _machine(),
        "samples": [asdict(sample) for sample in samples],
        "verdicts": [asdict(verdict) for verdict in judged],
    }
    path.write_text(json.dumps(content, indent=1, default=str))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
