"""Pieces run one after the other, and a later run goes on where an earlier one stopped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.proofs.piece import Piece, faults, properties
from tests.proofs.record import Outcome, Run, add, commit_of, load, resumed
from tests.proofs.runner import chosen, in_pytest, prove, told

PIECES = [*properties("sums", "tests/sums", shares=2), *faults("kill", "tests/kill", rounds=20)]
NAMES = ["sums-1", "sums-2", "kill"]
NEW = Run("c0ffee", seed=5)
PASSED, FAILED = Outcome(passed=True, seconds=3), Outcome(passed=False, seconds=4)


class Bench:
    """Runs pieces with outcomes that are given, and notes what was run, kept and said."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.ran: list[tuple[str, int]] = []
        self.kept: list[Run] = []
        self.said: list[str] = []

    def prove(self, run: Run) -> Run:
        return prove(
            PIECES, run, execute=self._execute, keep=self.kept.append, say=self.said.append
        )

    def _execute(self, piece: Piece, seed: int) -> Outcome:
        self.ran.append((piece.name, seed))
        return FAILED if piece.name in self.failing else PASSED


def test_all_pieces_run_with_the_seed_of_the_run() -> None:
    bench = Bench()
    run = bench.prove(NEW)
    assert bench.ran == [(name, 5) for name in NAMES]
    assert all(run.has_passed(name) for name in NAMES)


def test_each_piece_is_kept_when_it_has_ended() -> None:
    bench = Bench("sums-2")
    bench.prove(NEW)
    assert [list(run.pieces) for run in bench.kept] == [[name] for name in NAMES]
    assert bench.kept[1] == NEW.with_piece("sums-2", FAILED)


def test_a_piece_that_fails_does_not_keep_the_next_from_running() -> None:
    run = Bench("sums-1").prove(NEW)
    assert [run.has_passed(name) for name in NAMES] == [False, True, True]


def test_pieces_that_have_passed_are_not_run_again_and_those_that_failed_are() -> None:
    bench = Bench()
    bench.prove(NEW.with_piece("sums-1", PASSED).with_piece("sums-2", FAILED))
    assert [name for name, _ in bench.ran] == ["sums-2", "kill"]


def test_progress_is_said() -> None:
    bench = Bench("kill")
    bench.prove(NEW.with_piece("sums-1", PASSED))
    assert bench.said == [
        "[1/3] sums-1: passed in 3 s before",
        "[2/3] sums-2 …",
        "[2/3] sums-2: passed in 3 s",
        "[3/3] kill …",
        "[3/3] kill: FAILED after 4 s",
    ]
    assert told(NEW, PIECES[0]) == "to run"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*", NAMES), ("kill", ["kill"]), ("sums-*", NAMES[:2]), ("sum", [])],
)
def test_pieces_are_chosen_by_name_or_pattern(pattern: str, expected: list[str]) -> None:
    assert [piece.name for piece in chosen(PIECES, pattern)] == expected


# What a piece is


def test_the_shares_of_a_property_add_up_to_a_hundred_times_and_roll_different_dice() -> None:
    first, second, _ = PIECES
    assert [each.environment(5) for each in (first, second)] == [
        {"PUMICE_SCALE": "50", "PUMICE_SEED": "5"},
        {"PUMICE_SCALE": "50", "PUMICE_SEED": "1000005"},
    ]
    assert "--hypothesis-seed=1000005" in second.command(5)


def test_faults_repeat_their_rounds_one_after_the_other() -> None:
    *_, kill = PIECES
    assert kill.environment(5) == {"PUMICE_ROUNDS": "20", "PUMICE_SEED": "5"}
    assert not [option for option in kill.command(5) if "numprocesses" in option]


def test_a_path_that_another_piece_tries_is_left_out() -> None:
    (piece,) = properties("rest", "tests/a", "tests/b.py", without=("tests/a/own",))
    own = ["tests/a/one.py", "tests/a/own/one.py", "tests/b.py", "tests/ab.py"]
    assert [path for path in own if piece.covers(path)] == ["tests/a/one.py", "tests/b.py"]
    assert "--ignore=tests/a/own" in piece.command(5)


# What is recorded


def test_pieces_add_up_to_their_runs_and_the_latest_is_last(tmp_path: Path) -> None:
    path = tmp_path / "new" / "proofs.json"
    other = Run("c0ffee", seed=6).with_piece("kill", PASSED)
    assert load(path) == ()
    for ended in (NEW.with_piece("sums-1", PASSED), NEW.with_piece("kill", FAILED), other):
        add(path, ended)
    add(path, NEW.with_piece("kill", PASSED))
    assert load(path) == (other, NEW.with_piece("sums-1", PASSED).with_piece("kill", PASSED))


def test_the_latest_run_of_the_commit_goes_on_unless_a_seed_names_another() -> None:
    first, second, other = Run("a", 1), Run("a", 2), Run("b", 3)
    runs = (first, second, other)
    assert resumed(runs, "a", seed=None, fresh=9) is second
    assert resumed(runs, "a", seed=1, fresh=9) is first
    assert resumed(runs, "a", seed=4, fresh=9) == Run("a", 4)
    assert resumed(runs, "c", seed=None, fresh=9) == Run("c", 9)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "file").write_text("one")
    who = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_what_is_not_committed_makes_another_commit(root: Path) -> None:
    seen = [commit_of(root)]
    for text in ("two", "three", "one"):
        (root / "file").write_text(text)
        seen.append(commit_of(root))
    assert seen[0] == seen[3]
    assert len(set(seen)) == 3


# Pytest


@pytest.fixture
def said() -> list[str]:
    return []


def piece_of(path: Path, text: str) -> Piece:
    """A piece that runs a file of tests."""
    path.write_text(text)
    return Piece("small", (str(path),), marked="", variables={"PUMICE_ROUNDS": "20"})


ROUNDS = "import os\ndef test_rounds():\n    assert os.environ['PUMICE_ROUNDS'] == '{}'\n"
SLEEPS = "import time\ndef test_sleeps():\n    time.sleep(60)\n"


@pytest.mark.parametrize(("rounds", "passes"), [("20", True), ("21", False)])
def test_a_piece_runs_in_pytest(rounds: str, passes: bool, tmp_path: Path, said: list[str]) -> None:
    piece = piece_of(tmp_path / "test_small.py", ROUNDS.format(rounds))
    outcome = in_pytest(tmp_path, tmp_path / "logs", said.append)(piece, 5)
    assert outcome.passed is passes
    assert bool(said) is not passes
    assert "test_rounds" in "".join(said) or passes


def test_a_piece_that_takes_too_long_has_failed(tmp_path: Path, said: list[str]) -> None:
    piece = piece_of(tmp_path / "test_small.py", SLEEPS)
    outcome = in_pytest(tmp_path, tmp_path / "logs", said.append, limit_s=1)(piece, 5)
    assert not outcome.passed
    assert "small takes longer than 1 s" in "".join(said)
