"""Where the stock programs lie: a folder that is named, else the newest one in the cache.

`make controlplane` compiles them into a folder of the cache whose name carries the Kubernetes
version, and which appears only when it is complete. Only the standard library is used: the build
runs before any environment exists.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
FOLDER_VARIABLE = "PUMICE_CONTROLPLANE"
_VERSION = re.compile(r"controlplane-v(\d+)\.(\d+)\.(\d+)-\w+")


class ProgramsMissing(Exception):
    """The programs are not where they should be; the text says what to do about it."""


def cache_root() -> Path:
    """Return the folder for what is expensive to make and safe to delete."""
    if chosen := os.environ.get("PUMICE_CACHE"):
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pumice"


def located(folder: Path | None = None) -> Path:
    """Return the folder with all four programs: this one if given, else the cache's newest."""
    if folder is None:
        folder = _newest(cache_root())
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ProgramsMissing(f"{folder} has no {', '.join(missing)}")
    return folder


def _newest(cache: Path) -> Path:
    found: list[tuple[tuple[int, ...], float, Path]] = []
    for folder in cache.glob("controlplane-v*"):
        if version := _VERSION.fullmatch(folder.name):
            number = tuple(int(part) for part in version.groups())
            found.append((number, folder.stat().st_mtime, folder))
    if not found:
        raise ProgramsMissing(
            f"no control plane in {cache}: run `make controlplane` in a checkout of Pumice"
            f" (five minutes), or name a folder with {', '.join(PROGRAMS)}"
        )
    return max(found)[2]
