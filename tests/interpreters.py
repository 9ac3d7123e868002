"""The Python that the environment is made with.

Run as `python -m tests.interpreters`: prints a path, and on stderr why if it is not that of the
Python that runs this. Built from source without `--enable-optimizations`, as version managers do
unless they are told, a Python takes half as long again for the same work, and the scheduler
extender an eighth. Distributions build theirs with profiles, though not all say so; so the system's
is taken then, if it is new enough and complete. Only the standard library is used: this runs before
any environment exists.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

SYSTEM = Path("/usr/bin/python3")
_LONGEST_S = 20
_NEEDED = """
import ctypes, ssl, sys, zoneinfo
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
"""
"""The locked packages come ready-made for all versions from the one to the other."""


def is_optimized(configured: str | None) -> bool:
    """Whether a Python that was `configured` so is as fast as can be, as far as that tells."""
    return configured is None or "--enable-optimizations" in configured


def is_usable(python: Path) -> bool:
    """Whether it is there, new enough, and has the modules that are needed."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _NEEDED], capture_output=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def chosen(own: Path, configured: str | None, *, system: Path = SYSTEM) -> Path:
    """`own`, unless it was `configured` without optimizations and the system's will do."""
    return own if is_optimized(configured) or not is_usable(system) else system


def main() -> None:
    """Print the path, and why."""
    own = Path(sys.executable)
    python = chosen(own, sysconfig.get_config_var("CONFIG_ARGS"))
    if python != own:
        why = f"{own} was built without optimizations; PYTHON=… names another"
        sys.stderr.write(f"environment: {python}, as {why}\n")
    sys.stdout.write(f"{python}\n")


if __name__ == "__main__":
    main()
