"""Which Python the environment is made with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.interpreters import advantage, fastest, installed, time_of, times_of

OWN, OTHER, THIRD = Path("/own/python3"), Path("/other/python3"), Path("/third/python3")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that says what its test wrote there."""
    path = tmp_path / "program"
    path.touch(mode=0o755)
    return path


def python(path: str, version: str, **more: str) -> dict[str, object]:
    major, minor, patch = version.split(".")
    parts = {"major": int(major), "minor": int(minor), "patch": int(patch)}
    usual: dict[str, object] = {"implementation": "cpython", "variant": "default"}
    return usual | {"path": path, "version": version, "version_parts": parts} | more


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ({OWN: 1.0}, OWN),
        ({OWN: 1.0, OTHER: 0.9}, OWN),
        ({OWN: 1.0, OTHER: 0.6}, OTHER),
        ({OWN: 1.0, OTHER: 0.6, THIRD: 0.5}, THIRD),
        ({OWN: float("inf"), OTHER: 2.0}, OTHER),
    ],
    ids=["alone", "as-fast", "faster", "the-fastest", "own-lacks-something"],
)
def test_the_one_that_asks_stays_unless_another_is_much_faster(
    seconds: dict[Path, float], chosen: Path
) -> None:
    assert fastest(OWN, seconds) == chosen


@pytest.mark.parametrize(
    ("own_s", "says"),
    [
        (1.0, "2.0 times as fast as /own/python3; PYTHON=… names another"),
        (float("inf"), "as /own/python3 lacks a module; PYTHON=… names another"),
    ],
    ids=["slower", "lacks-something"],
)
def test_it_is_told_why_another_is_taken(own_s: float, says: str) -> None:
    assert advantage(OWN, OTHER, {OWN: own_s, OTHER: 0.5}) == says


def test_only_usual_ones_of_a_version_that_the_packages_are_there_for_are_tried(
    program: Path,
) -> None:
    listed = [
        python("/a/python3.11", "3.11.2"),
        python("/a/python3.10", "3.10.9"),
        python("/a/python3.99", "3.99.0"),
        python("/a/pypy", "3.11.2", implementation="pypy"),
        python("/a/python3.13t", "3.13.0", variant="freethreaded"),
        python("/a/python3.13", "3.13.0"),
    ]
    program.write_text(f"#!/bin/sh\necho '{json.dumps(listed)}'\n")
    assert list(installed(os.fspath(program))) == [Path("/a/python3.11"), Path("/a/python3.13")]


def test_each_is_timed_and_one_that_lacks_something_is_not_taken(program: Path) -> None:
    took = time_of(Path(sys.executable))
    assert took is not None
    assert took > 0
    program.write_text("#!/bin/sh\necho 'No module named ssl' >&2\nexit 1\n")
    assert time_of(program) is None
    assert time_of(program.parent / "missing") is None


def test_the_best_of_several_turns_counts(program: Path, tmp_path: Path) -> None:
    turns = tmp_path / "turns"
    program.write_text(f"#!/bin/sh\necho x >> {turns}\necho 0.$((9 - $(wc -l < {turns})))\n")
    assert times_of([program, tmp_path / "missing"]) == {program: 0.6}
