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
    """Usage of one process; nothing when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return Usage(0.0, 0.0)
    # The second field, the command in brackets, may hold spaces.
    fields = stat.rpartition(")")[2].split()
    user, system, pages = int(fields[11]), int(fields[12]), int(fields[21])
    return Usage((user + system) / _TICKS, pages * _PAGE / _MIB)


def of_all(pids: Mapping[str, int]) -> dict[str, Usage]:
    """Usage of several, by their names."""
    return {name: of(pid) for name, pid in pids.items()}
