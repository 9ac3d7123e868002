"""Runs the pieces one after the other and goes on where an earlier run has stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.proofs.piece import Piece
from tests.proofs.record import Outcome, Run

LIMIT_S = 590.0
"""A piece that takes longer has failed: it wants more shares."""
_SHOWN_LINES = 60

Execute = Callable[[Piece, int], Outcome]
Say = Callable[[str], None]


def chosen(pieces: Sequence[Piece], pattern: str) -> list[Piece]:
    """The pieces whose name matches the pattern of a shell."""
    return [piece for piece in pieces if fnmatchcase(piece.name, pattern)]


def prove(
    pieces: Sequence[Piece], run: Run, *, execute: Execute, keep: Callable[[Run], None], say: Say
) -> Run:
    """Run the pieces that have not passed yet; each is kept as soon as it has ended."""
    for number, piece in enumerate(pieces, 1):
        place = f"[{number}/{len(pieces)}] {piece.name}"
        if run.has_passed(piece.name):
            say(f"{place}: {told(run, piece)} before")
            continue
        say(f"{place} …")
        outcome = execute(piece, run.seed)
        run = run.with_piece(piece.name, outcome)
        keep(Run(run.commit, run.seed, {piece.name: outcome}))
        say(f"{place}: {told(run, piece)}")
    return run


def told(run: Run, piece: Piece) -> str:
    """What became of a piece in a run, in words."""
    outcome = run.pieces.get(piece.name)
    if outcome is None:
        return "to run"
    return f"{'passed in' if outcome.passed else 'FAILED after'} {outcome.seconds:.0f} s"


def in_pytest(root: Path, logs: Path, say: Say, *, limit_s: float = LIMIT_S) -> Execute:
    """Executes pieces by pytest, each with a log; the end of the log of one that fails is shown."""

    def execute(piece: Piece, seed: int) -> Outcome:
        log = logs / f"{piece.name}.log"
        began = time.monotonic()
        passed = _run(piece, seed, root=root, log=log, limit_s=limit_s)
        if not passed:
            say("\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]))
            say(f"the whole log: {log}")
        return Outcome(passed, round(time.monotonic() - began, 1))

    return execute


def _run(piece: Piece, seed: int, *, root: Path, log: Path, limit_s: float) -> bool:
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w") as written,
        subprocess.Popen(
            piece.command(seed),
            cwd=root,
            env=os.environ | piece.environment(seed),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            written.write(f"\n{piece.name} takes longer than {limit_s:.0f} s\n")
            return False
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs; programs of the control plane end with the pytest that started them."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
