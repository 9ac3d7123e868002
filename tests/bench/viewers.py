"""What readers of the page cost: ``python -m tests.bench.viewers``.

`[--nodes 5000] [--pods 50000] [--viewers 100] [--rate 1000] [--seconds 20]`. A real ``pumice
extender`` on a scripted API server (as in `coldstart`) is asked for the whole view, and then
followed by many readers, operators of four accounts, while the cluster changes. Shown are the times
and the sizes of the first views, and the share of one core without readers, with one and with all.
Readers that read in another process pay for their own reading. The aims are printed and not judged:
exit code 1 only when a reader is not told what it is to be told.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench import usage
from tests.bench.crowd import Crowd
from tests.bench.scripted import answers, extending, port_of, serving
from tests.bench.table import Row, table
from tests.clusters.pumice import Extender

HOST = "pumice.example"
"""Not a name of this machine: its readers show tokens."""
ACCOUNTS = 4
FIRST_S, CORE = 1.0, 0.10
_QUIET_S = 5.0
_MOST_S = 60.0


_WHOLE, _DELTA = b"event: whole\n", b"event: delta\n"
_TAIL = len(_DELTA) - 1


@dataclass(slots=True)
class Reader:
    """One that follows the view: how often it was told of what, and in how many bytes."""

    wholes: int = 0
    deltas: int = 0
    size: int = 0
    status: str = ""

    async def follow(self, port: int, account: str) -> None:
        """Read until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = f"GET /view/stream HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {account}"
            writer.write(f"{head}\r\n\r\n".encode())
            self.status = (await reader.readline()).decode().strip()
            tail = b""
            while piece := await reader.read(2**18):
                text = tail + piece
                self.wholes += text.count(_WHOLE)
                self.deltas += text.count(_DELTA)
                self.size += len(piece)
                tail = text[-_TAIL:]
        finally:
            writer.close()


def main() -> None:
    options = _parser().parse_args()
    population = Crowd(options.nodes, options.pods)
    _say(
        f"{options.nodes} nodes, {options.pods} pods, {options.rate} events/s, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="pumice-viewers-") as folder,
        serving(
            Path(folder), population, rate=options.rate, seconds=_script_s(options.seconds)
        ) as server,
        extending(Path(folder), server) as extender,
    ):
        extender.wait_ready(lambda: answers(port_of(extender), "/readyz"), timeout_s=180)
        time.sleep(_QUIET_S)
        rows = _first_views(extender)
        server.churn()
        for count in (0, 1, options.viewers):
            rows += asyncio.run(_followed(extender, count, seconds=options.seconds))
    _say(f"\n{table(rows)}")
    sys.exit(0 if all(row.holds for row in rows) else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.viewers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--rate", type=int, default=1_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=20, help="for each count of readers")
    return parser


def _script_s(seconds: int) -> int:
    """For how long the cluster changes: no reader is measured while it stands still."""
    return 3 * seconds + 3 * int(_MOST_S)


def _first_views(extender: Extender) -> list[Row]:
    """What the first view costs, and the next one, plain and compressed."""
    rows = []
    for what, encoding in (("first", ""), ("next", ""), ("compressed", "gzip")):
        before, began = usage.of(extender.pid).cpu_s, time.monotonic()
        size = _view(port_of(extender), encoding)
        took_s = time.monotonic() - began
        spent_s = usage.of(extender.pid).cpu_s - before
        aim = f" (aim {FIRST_S:g} s)" if what == "first" else ""
        rows.append(
            Row(f"{what} view", f"{took_s:.2f} s, CPU {spent_s:.2f} s, {size / 1e6:.2f} MB{aim}")
        )
    return rows


def _view(port: int, encoding: str) -> int:
    """The bytes of the whole view as one reader asks for it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_MOST_S)
    headers = {"Host": HOST, "Authorization": "Bearer first", "Accept-Encoding": encoding}
    connection.request("GET", "/view", headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise AssertionError(f"/view: {answer.status} {text[:200]!r}")
    return len(text)


async def _followed(extender: Extender, count: int, *, seconds: int) -> list[Row]:
    """The share of a core while so many readers follow, once all have been told the whole."""
    readers = [Reader() for _ in range(count)]
    port = port_of(extender)
    tasks = [
        asyncio.create_task(each.follow(port, f"account-{at % ACCOUNTS}"))
        for at, each in enumerate(readers)
    ]
    try:
        async with asyncio.timeout(_MOST_S):
            while not all(each.wholes for each in readers):
                for done in (task for task in tasks if task.done()):
                    raise AssertionError(
                        f"a reader was refused: {readers[tasks.index(done)].status}"
                    )
                await asyncio.sleep(0.1)
        await asyncio.sleep(_QUIET_S)
        before, began = usage.of(extender.pid).cpu_s, time.monotonic()
        heard = sum(each.size for each in readers)
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - began
        core = (usage.of(extender.pid).cpu_s - before) / took_s
        heard = sum(each.size for each in readers) - heard
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    readers_said = f"{count} reader" if count == 1 else f"{count} readers"
    if not count:
        return [Row(f"share of a core, {readers_said}", f"{core:.1%}")]
    each_kb_s = heard / took_s / count / 1e3
    least = min(each.deltas for each in readers)
    return [
        Row(f"share of a core, {readers_said}", f"{core:.1%}, {each_kb_s:.0f} kB/s each"),
        Row("changes that each was told, at least", str(least), "> 0", least > 0),
        Row("resident memory", f"{usage.of(extender.pid).rss_mib:.0f} MiB"),
    ]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
