"""Each test that depends on chance belongs to a piece."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.proofs.catalogue import PIECES
from tests.proofs.piece import TIMES, Piece

ROOT = Path(__file__).parents[2]
PROPERTY = re.compile(r"^@given\b|\w\.TestCase\b", re.MULTILINE)
ROUNDS = re.compile(r"^from tests\.scale import .*\b(ROUNDS|FULL|dice)\b", re.MULTILINE)


def files_with(pattern: re.Pattern[str]) -> list[str]:
    """The files that have it, from the root of the project."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [path for path in files if pattern.search(path.read_text())]
    assert found
    return [str(path.relative_to(ROOT)) for path in found]


def covering(path: str, variable: str) -> list[Piece]:
    """The pieces that try this file with a large count."""
    return [piece for piece in PIECES if variable in piece.variables and piece.covers(path)]


@pytest.mark.parametrize("path", files_with(PROPERTY))
def test_the_properties_of_each_file_are_tried_a_hundred_times_as_hard(path: str) -> None:
    pieces = covering(path, "PUMICE_SCALE")
    assert sum(float(piece.variables["PUMICE_SCALE"]) for piece in pieces) == pytest.approx(TIMES)


@pytest.mark.parametrize("path", files_with(ROUNDS))
def test_the_rounds_of_each_file_belong_to_a_piece(path: str) -> None:
    assert covering(path, "PUMICE_ROUNDS")


def test_no_two_pieces_have_the_same_name() -> None:
    assert set(Counter(piece.name for piece in PIECES).values()) == {1}


def test_each_path_of_a_piece_exists() -> None:
    named = [path for piece in PIECES for path in (*piece.paths, *piece.without)]
    missing = [path for path in named if not (ROOT / path).exists()]
    assert missing == []
