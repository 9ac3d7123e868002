"""Which Python the environment is made with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreters import chosen, is_usable

OWN = Path("/own/python3")
PLAIN, OPTIMIZED = "'--enable-shared'", "'--enable-optimizations' '--with-lto'"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """One that ends well."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("configured", [OPTIMIZED, None], ids=["optimized", "does-not-tell"])
def test_the_one_that_asks_stays(configured: str | None, program: Path) -> None:
    assert chosen(OWN, configured, system=program) == OWN


def test_one_without_optimizations_gives_way_to_the_systems(program: Path) -> None:
    assert chosen(OWN, PLAIN, system=program) == program


def test_it_stays_where_the_systems_is_missing_or_too_old_or_incomplete(program: Path) -> None:
    assert chosen(OWN, PLAIN, system=program.parent / "missing") == OWN
    program.write_text("#!/bin/sh\necho 'No module named ssl' >&2\nexit 1\n")
    assert chosen(OWN, PLAIN, system=program) == OWN


def test_the_one_that_runs_this_will_do() -> None:
    assert is_usable(Path(sys.executable))


def test_one_path_is_printed() -> None:
    command = [sys.executable, "-m", "tests.interpreters"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = printed.splitlines()
    assert is_usable(Path(line))
