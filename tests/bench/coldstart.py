"""Cold start and a busy day: ``python -m tests.bench.coldstart``.

A real ``pumice extender`` is started on a cluster of 5,000 nodes and 50,000 pods that a scripted
API server (a process of its own, see `replay`) lists and then changes 1,000 times a second. Shown
are the time from the first LIST to the first correct decision, less what the same server needs for
the same bytes alone; memory; the share of one core; and how long a change takes from the server's
socket into the cache. Exit code 1 when one of them is over its limit. On a machine that does other
things at the same time, look at CPU times.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.bench import crowd, histogram, usage
from tests.bench.churn import BORN, BORN_OTHERS, GONE_AFTER_S, OTHERS, OURS, probe_group
from tests.bench.crowd import Crowd, Place
from tests.bench.replay import PROBE_AT
from tests.bench.scripted import Server, answers, extending, port_of, serving
from tests.bench.table import Row, judged, table
from tests.clusters.processes import wait_until
from tests.clusters.pumice import Extender

COLD_S, RSS_MB, CORE, LAG_S = 5.0, 400.0, 0.5, 1.0
_POLL_S = 0.002
_QUIET_S = 3.0
_PROBE_STARTS_S = 0.3
_ASKED_A_SECOND = 20
"""Seldom enough not to count in the share of a core."""


def main() -> None:
    options = _parser().parse_args()
    population = Crowd(options.nodes, options.pods)
    _say(f"{options.nodes} nodes, {options.pods} pods, {options.rate} events/s, {_machine()}")
    with tempfile.TemporaryDirectory(prefix="pumice-coldstart-") as folder:
        rows = _run(Path(folder), population, rate=options.rate, seconds=options.seconds)
    _say(f"\n{table(rows)}")
    sys.exit(0 if all(row.holds for row in rows) else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coldstart", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rate", type=int, default=1_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=20, help="how long")
    return parser


def _run(folder: Path, population: Crowd, *, rate: int, seconds: int) -> list[Row]:
    with serving(folder, population, rate=rate, seconds=seconds) as server:
        began = time.monotonic()
        server.list_all()
        own_s = time.monotonic() - began
        volume = server.told().list_bytes
        server.forget()
        started = time.monotonic()
        with extending(folder, server) as extender:
            rows = _cold_start(extender, server, population, started=started, own_s=own_s)
            rows.insert(0, Row("listed", f"{volume / 1e6:.0f} MB in {own_s:.2f} s by the server"))
            time.sleep(_QUIET_S)
            chosen = _first_decision(extender, population)
            rows += _listed_again(extender, server, chosen)
            rows += _busy_day(extender, server, chosen, seconds=seconds)
            return [*rows, _same_as_the_server(extender, population, seconds=seconds)]


# Cold start -------------------------------------------------------------------------------------


def _cold_start(
    extender: Extender, server: Server, population: Crowd, *, started: float, own_s: float
) -> list[Row]:
    wait_until(lambda: server.told().lists > 0, timeout_s=120, what="the first LIST")
    before = usage.of(extender.pid)
    extender.wait_ready(lambda: answers(port_of(extender), "/readyz"), timeout_s=120)
    ready_at = time.monotonic()
    chosen = _first_decision(extender, population)
    decided_at, spent = time.monotonic(), usage.of(extender.pid)
    told = server.told()
    total_s = decided_at - told.first_list_at
    beyond_s = total_s - own_s
    rss = _memory(extender)
    gangs = len(extender.get("/debug/gangs"))
    drifts = len(extender.get("/debug/ledger")["drifts"])
    return [
        Row("start to first LIST", f"{told.first_list_at - started:.2f} s"),
        Row("first LIST to last page", f"{told.last_page_at - told.first_list_at:.2f} s"),
        Row("first LIST to ready", f"{ready_at - told.first_list_at:.2f} s"),
        Row("first LIST to first decision", f"{total_s:.2f} s, {chosen}"),
        Row("CPU time of the extender in that", f"{spent.cpu_s - before.cpu_s:.2f} s"),
        judged("beyond the server's own time", beyond_s, COLD_S, "s"),
        judged("resident memory, at its peak", rss["VmHWM"], RSS_MB, "MB"),
        Row("resident memory, now", f"{rss['VmRSS']:.0f} MB"),
        Row(
            "gangs placed",
            f"{gangs} of {population.waiting_gangs}",
            f"= {population.fitting_gangs}",
            gangs == population.fitting_gangs,
        ),
        Row("ledger drift", str(drifts), "= 0", drifts == 0),
    ]


def _question(names: list[str]) -> bytes:
    """A Filter call for a member of a gang that fits."""
    place = Place("wait-00000-0", gang="wait-00000", cpu=crowd.WAITING_CPU)
    return msgspec.json.encode({"Pod": json.loads(crowd.pod(place)), "NodeNames": names})


def _first_decision(extender: Extender, population: Crowd) -> str:
    """Ask, offering every node; the node it may go to."""
    names = [crowd.node_name(index) for index in range(population.nodes)]
    body = _question(names)
    connection = http.client.HTTPConnection("127.0.0.1", port_of(extender), timeout=30)
    connection.request("POST", "/v1/filter", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    free = set(names[: crowd.FREE_NODES])
    chosen = answer["NodeNames"] or []
    if len(chosen) != 1 or chosen[0] not in free:
        raise AssertionError(f"not a free node: {chosen} {answer.get('Error')}")
    return str(chosen[0])


# Listed again -----------------------------------------------------------------------------------


def _listed_again(extender: Extender, server: Server, chosen: str) -> list[Row]:
    """How long Filter takes while all pods are listed again after a 410."""
    with _asking(extender, chosen, rate=250) as times_ms:
        server.relist()
        began = time.monotonic()
        wait_until(
            lambda: all(server.told().completed.get(stream) == 2 for stream in (OURS, OTHERS)),
            timeout_s=60,
            what="the listing after 410",
        )
        took_s = time.monotonic() - began
    return [
        Row("all pods listed again after 410", f"in {took_s:.2f} s"),
        Row("Filter while they are", _spread(times_ms)),
    ]


def _spread(times_ms: list[float]) -> str:
    p50, p99 = (histogram.percentile(times_ms, share) for share in (0.5, 0.99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, worst {max(times_ms):.1f} ms"


@contextmanager
def _asking(extender: Extender, chosen: str, *, rate: int) -> Iterator[list[float]]:
    """Ask Filter while the block runs, from a process of its own; its times afterwards."""
    times_ms: list[float] = []
    words = ("-m", "tests.bench.probe", "127.0.0.1", str(port_of(extender)), str(rate))
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as probe:
        assert probe.stdin is not None
        probe.stdin.write(_question([chosen]))
        probe.stdin.close()
        probe.stdin = None
        time.sleep(_PROBE_STARTS_S)
        try:
            yield times_ms
        finally:
            probe.terminate()
            told, _ = probe.communicate(timeout=10)
    answer = json.loads(told)
    if answer["refused"]:
        raise AssertionError(f"{answer['refused']} Filter calls for a planned pod were refused")
    times_ms += answer["times_ms"]


# A busy day -------------------------------------------------------------------------------------


def _busy_day(extender: Extender, server: Server, chosen: str, *, seconds: int) -> list[Row]:
    idle = usage.of(extender.pid)
    before, quiet_from = extender.metrics(), time.monotonic()
    time.sleep(_QUIET_S)
    idle_core = (usage.of(extender.pid).cpu_s - idle.cpu_s) / (time.monotonic() - quiet_from)
    writes = server.told().writes
    with _asking(extender, chosen, rate=_ASKED_A_SECOND) as times_ms:
        began = server.churn().began_at
        _sleep_until(began)
        first = usage.of(extender.pid)
        found = [_probe(extender, second, began) for second in range(seconds)]
        wait_until(lambda: server.told().done, timeout_s=30, what="the script's end")
        took_s = time.monotonic() - began
        core = (usage.of(extender.pid).cpu_s - first.cpu_s) / took_s
    told = server.told()
    grown = histogram.growth(extender.metrics(), before)
    delay = histogram.histogram(grown, "pumice_mailbox_delay_seconds")
    cycles = histogram.histogram(grown, "pumice_cycle_seconds")
    handled = histogram.histogram(grown, "pumice_extender_call_seconds", 'verb="filter"')
    lags = [at - sent for at, sent in zip(found, told.probes, strict=True)]
    rss = _memory(extender)
    return [
        Row("idle share of a core", f"{idle_core:.0%}"),
        Row("events", f"{told.sent} in {took_s:.1f} s: {told.sent / took_s:.0f}/s"),
        Row("server late by at most", f"{1000 * told.latest_s:.0f} ms"),
        judged("share of a core", 100 * core, 100 * CORE, "%"),
        judged("lag to the cache, median", histogram.percentile(lags, 0.5), LAG_S, "s"),
        Row("lag to the cache, worst", f"{1000 * max(lags):.0f} ms"),
        Row("Filter meanwhile", _spread(times_ms)),
        Row("Filter in the handler, p99", f"{1000 * handled.quantile(0.99):.2f} ms"),
        Row("lag in the mailbox, p99", f"{1000 * delay.quantile(0.99):.1f} ms"),
        Row("cycles", f"{cycles.total:.0f}, p50 {1000 * cycles.quantile(0.5):.0f} ms"),
        Row("writes", str(told.writes - writes)),
        judged("resident memory afterwards, at its peak", rss["VmHWM"], RSS_MB, "MB"),
        Row("resident memory afterwards, now", f"{rss['VmRSS']:.0f} MB"),
    ]


def _probe(extender: Extender, second: int, began: float) -> float:
    """When the probe of that second is in the cache."""
    _sleep_until(began + second + PROBE_AT - _POLL_S)
    connection = http.client.HTTPConnection("127.0.0.1", port_of(extender), timeout=30)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        connection.request("GET", f"/plan/{crowd.NAMESPACE}/{probe_group(second)}")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            connection.close()
            return time.monotonic()
        time.sleep(_POLL_S)
    raise AssertionError(f"the probe of second {second} never arrived")


def _same_as_the_server(extender: Extender, population: Crowd, *, seconds: int) -> Row:
    """Whether every pod that was created and not deleted is known, and no other."""
    alive = population.pods + seconds + BORN * min(seconds, GONE_AFTER_S)
    expected = alive - BORN_OTHERS  # pods of others count from when they are bound
    totals = extender.get("/debug/snapshot")["totals"]
    known = totals["members"] + totals["foreign"]
    return Row("pods known", str(known), f"= {expected}", known == expected)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _memory(extender: Extender) -> dict[str, float]:
    """Fields of the kernel's status page that are sizes, in MB, its front's added."""
    pages = [Path(f"/proc/{pid}/status").read_text() for pid in usage.family(extender.pid)]
    lines = (line for page in pages for line in page.splitlines() if line.endswith(" kB"))
    sums: Counter[str] = Counter()
    for name, kilo, _ in map(str.split, lines):
        sums[name.rstrip(":")] += int(kilo) * 1024
    return {name: size / 1e6 for name, size in sums.items()}


def _machine() -> str:
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
