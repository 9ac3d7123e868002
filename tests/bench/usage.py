"""CPU time and memory of processes, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 2**20
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since the process began, and its resident memory now."""

    cpu_s: float
    rss_mib: float


def of(pid: int) -> Usage:
    """Usage of a process and of those that it started; nothing when it has ended."""
    each = [_usage(fields) for fields in map(_fields, family(pid)) if fields]
    return Usage(sum(one.cpu_s for one in each), sum(one.rss_mib for one in each))


def family(pid: int) -> list[int]:
    """A process and those that it started."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid, *(each for each in running if _fields(each)[1:2] == [str(pid)])]


def _usage(fields: list[str]) -> Usage:
    user, system, pages = int(fields[11]), int(fields[12]), int(fields[21])
    return Usage((user + system) / _TICKS, pages * _PAGE / _MIB)


def _fields(pid: int) -> list[str]:
    """The fields of its ``stat`` page from the third on, its state; none when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()  # the command in brackets may hold spaces


def of_all(pids: Mapping[str, int]) -> dict[str, Usage]:
    """Usage of several, by their names."""
    return {name: of(pid) for name, pid in pids.items()}
