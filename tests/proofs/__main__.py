"""`make proofs`: what `make test` tries a little of, a hundred times as hard.

Each piece takes less than ten minutes. What has ended is recorded for the commit and the seed, so
the next run goes on with the pieces that have not passed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

from tests.proofs.catalogue import PIECES
from tests.proofs.piece import SEEDS
from tests.proofs.record import Run, add, commit_of, load, resumed
from tests.proofs.runner import chosen, in_pytest, prove, told

ROOT = Path(__file__).parents[2]
RECORD = ROOT / ".cache" / "proofs.json"
LOGS = ROOT / ".cache" / "proofs"


def main() -> None:
    options = _parser().parse_args()
    pieces = chosen(PIECES, options.piece)
    if not pieces:
        sys.exit(f"there is no piece {options.piece!r}; --list shows them")
    fresh = random.SystemRandom().randrange(1, SEEDS)
    run = resumed(load(RECORD), commit_of(ROOT), seed=options.seed, fresh=fresh)
    _say(f"PUMICE_SEED={run.seed}, commit {run.commit}, {len(pieces)} of {len(PIECES)} pieces")
    if options.list:
        for piece in pieces:
            _say(f"{piece.name:<24} {told(run, piece)}")
        return
    try:
        run = prove(
            pieces,
            run,
            execute=in_pytest(ROOT, LOGS, _say),
            keep=lambda ended: add(RECORD, ended),
            say=_say,
        )
    except KeyboardInterrupt:
        sys.exit("stopped; the next run goes on with this piece")
    sys.exit(_verdict(run, [piece.name for piece in pieces]))


def _verdict(run: Run, names: list[str]) -> str | None:
    """What to exit with."""
    failed = [name for name in names if not run.has_passed(name)]
    again = "\n".join(f"  make proofs PIECE={name} PUMICE_SEED={run.seed}" for name in failed)
    return f"{len(failed)} of {len(names)} pieces failed; one alone:\n{again}" if failed else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("--piece", default="*", help="only this one, or those that match: 'kill-*'")
    parser.add_argument(
        "--seed",
        type=int,
        default=int(os.environ.get("PUMICE_SEED", "0")) or None,
        help="of all dice (default: that of the latest run of this commit, else a new one)",
    )
    parser.add_argument("--list", action="store_true", help="show what became of each piece")
    return parser


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - progress of a long run


if __name__ == "__main__":
    main()
