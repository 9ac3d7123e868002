"""What has been proved so far: runs of the pieces, each of one commit and one seed, in a file."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """How a piece ended."""

    passed: bool
    seconds: float


class Run(msgspec.Struct, frozen=True):
    """The pieces that have ended with these dice on this commit."""

    commit: str
    seed: int
    pieces: dict[str, Outcome] = {}

    def with_piece(self, name: str, outcome: Outcome) -> Run:
        return msgspec.structs.replace(self, pieces={**self.pieces, name: outcome})

    def has_passed(self, name: str) -> bool:
        return name in self.pieces and self.pieces[name].passed


def load(path: Path) -> tuple[Run, ...]:
    """The runs that are recorded, the latest last."""
    return msgspec.json.decode(path.read_bytes(), type=tuple[Run, ...]) if path.exists() else ()


def add(path: Path, ended: Run) -> None:
    """Record the pieces that have ended, beside those that the same run has already."""
    runs = load(path)
    same = [run for run in runs if (run.commit, run.seed) == (ended.commit, ended.seed)]
    for run in same:
        ended = msgspec.structs.replace(ended, pieces={**run.pieces, **ended.pieces})
    others = [run for run in runs if run not in same]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode((*others, ended))))


def resumed(runs: Sequence[Run], commit: str, *, seed: int | None, fresh: int) -> Run:
    """The run that goes on: the latest of the commit, unless a seed names another.

    Where there is none, one begins with the seed that is named, else with a `fresh` one.
    """
    of_commit = [run for run in runs if run.commit == commit and seed in (None, run.seed)]
    return of_commit[-1] if of_commit else Run(commit, fresh if seed is None else seed)


def commit_of(root: Path) -> str:
    """The commit that is checked out; with changes that are not committed, their digest too."""
    head = _git(root, "rev-parse", "--short=12", "HEAD").strip()
    changed = _git(root, "status", "--porcelain")
    if not changed:
        return head
    changes = changed + _git(root, "diff", "HEAD")
    return f"{head}+{hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def _git(root: Path, *command: str) -> str:
    return subprocess.run(
        ["git", *command], cwd=root, check=True, capture_output=True, text=True
    ).stdout
