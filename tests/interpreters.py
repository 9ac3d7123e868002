"""The Python that the environment is made with: the fastest at hand.

Run as `python -m tests.interpreters UV`, where UV is that program: prints a path. It is the Python
that runs this, unless another one that is new enough needs a fifth less time for the same work.
Built from source without `--enable-optimizations`, as version managers do unless they are told, one
takes half as long again as the system's, and the scheduler extender an eighth. Only the standard
library is used: this runs before any environment exists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path

_OLDEST = (3, 11)
_NEWEST = (3, 14)
"""The locked packages come ready-made for all from the one to the other."""
_MUCH_LESS = 0.8
_LONGEST_S = 20
_ROUNDS = 3
_WORK = """
import asyncio, ctypes, sqlite3, ssl, sys, time, zoneinfo

class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def both(self, times):
        return self.left + self.right * times

def work():
    sums = {}
    for number in range(20_000):
        key = f"key-{number % 100}"
        sums[key] = sums.get(key, 0) + Pair(number, len(key)).both(3)
    return sums

def seconds():
    start = time.process_time()
    work()
    return time.process_time() - start

print(min(seconds() for _ in range(5)))
"""
"""Calls, attributes, dictionaries and text, for what they cost; and what Pumice needs of Python."""


def fastest(own: Path, seconds: Mapping[Path, float]) -> Path:
    """`own`, unless another takes much less time; of several the fastest."""
    best = min(seconds, key=lambda path: seconds[path])
    return best if seconds[best] < _MUCH_LESS * seconds[own] else own


def installed(uv: str) -> Iterator[Path]:
    """The Pythons that `uv` finds and that are new enough, some by several names."""
    listed = subprocess.run(
        [uv, "python", "list", "--only-installed", "--offline", "--output-format", "json"],
        check=True,
        capture_output=True,
    ).stdout
    for each in json.loads(listed):
        version = each["version_parts"]
        usual = (each["implementation"], each["variant"]) == ("cpython", "default")
        if usual and _OLDEST <= (version["major"], version["minor"]) <= _NEWEST:
            yield Path(each["path"])


def time_of(python: Path) -> float | None:
    """Processor seconds it takes for the work; None if it lacks something."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _WORK], capture_output=True, timeout=_LONGEST_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return float(done.stdout)


def times_of(pythons: Iterable[Path]) -> dict[Path, float]:
    """The shortest time of each that has all; in turns, as the machine may be busy meanwhile."""
    best: dict[Path, float] = {}
    for python in [*pythons] * _ROUNDS:
        took = time_of(python)
        if took is not None:
            best[python] = min(took, best.get(python, took))
    return best


def advantage(own: Path, chosen: Path, seconds: Mapping[Path, float]) -> str:
    """Why it is not `own`, and what to do about that."""
    times = seconds[own] / seconds[chosen]
    why = f"{times:.1f} times as fast as {own}" if isfinite(times) else f"as {own} lacks a module"
    return f"{why}; PYTHON=… names another"


def main(uv: str) -> None:
    """Print the fastest, and say so when it is not the one that runs this."""
    own = Path(sys.executable)
    seconds = times_of([own, *installed(uv)])
    seconds.setdefault(own, float("inf"))
    chosen = fastest(own, seconds)
    if chosen != own:
        sys.stderr.write(f"environment: made with {chosen}, {advantage(own, chosen, seconds)}\n")
    sys.stdout.write(f"{chosen}\n")


if __name__ == "__main__":
    main(sys.argv[1])
