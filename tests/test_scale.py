"""The counts of the tests come from one place, so that `make proofs` can multiply them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

from tests import scale

TESTS = Path(__file__).parent
OWN_COUNT = re.compile(r"max_examples|environ.*PUMICE_(SCALE|ROUNDS|SEED)\b")
ASKS = """
from tests import scale
one = scale.examples(40)
print(one.max_examples, one.derandomize, scale.ROUNDS, scale.FULL, scale.SEED)
"""


def counts(**variables: str) -> list[str]:
    """What the tests try with these variables."""
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        cwd=TESTS.parent,
        env=os.environ | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param("1", ["40", "True"], id="make test"),
        pytest.param("100", ["4000", "False"], id="make proofs rolls dice"),
        pytest.param("0.001", ["1", "True"], id="one at least"),
    ],
)
def test_a_property_tries_its_count_times_the_scale(scale: str, expected: list[str]) -> None:
    assert counts(PUMICE_SCALE=scale)[:2] == expected


@pytest.mark.parametrize(("rounds", "full"), [("3", "False"), ("20", "True")])
def test_long_rounds_measure_at_full_size(rounds: str, full: str) -> None:
    assert counts(PUMICE_ROUNDS=rounds, PUMICE_SEED="7")[2:] == [rounds, full, "7"]


def test_only_longer_runs_throw_other_dice() -> None:
    seeds = [counts(PUMICE_SCALE=scale, PUMICE_SEED="")[4] for scale in ("1", "1", "100", "100")]
    assert seeds[0] == seeds[1]
    assert seeds[2] != seeds[3]


def test_a_property_without_a_count_has_the_default() -> None:
    assert hypothesis.settings().max_examples == scale.scaled(scale.EXAMPLES)
    assert hypothesis.settings().derandomize == scale.SAME


def test_dice_are_those_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SEED", 7)
    assert scale.dice().random() == scale.dice().random()


def test_no_test_counts_by_itself() -> None:
    own = [
        str(path.relative_to(TESTS))
        for path in sorted(TESTS.rglob("*.py"))
        if path not in {TESTS / name for name in ("scale.py", "test_scale.py", "conftest.py")}
        and path.parent != TESTS / "proofs"
        and OWN_COUNT.search(path.read_text())
    ]
    assert own == []
