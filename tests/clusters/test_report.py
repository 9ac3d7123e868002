"""The count of tests per cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters import report


def test_every_place_has_a_line_even_if_nothing_ran_there() -> None:
    tally = report.Tally({("real", "passed"): 3, ("real", "failed"): 1, ("none", "passed"): 7})
    assert report.lines(tally) == [
        "1 failed, 3 passed on the real control plane",
        "nothing run on the sandbox",
        "7 passed without a cluster",
    ]


def test_runs_add_up_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tally.json"
    report.add_up(report.Tally({("real", "passed"): 3}), path)
    total = report.add_up(report.Tally({("real", "passed"): 2, ("sandbox", "passed"): 1}), path)
    assert total == {("real", "passed"): 5, ("sandbox", "passed"): 1}
    assert report.add_up(report.Tally(), path) == total


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_counts_once_however_many_run_side_by_side(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "tally.json"
    one = f"{__file__}::{test_runs_add_up_in_the_file.__name__}"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", workers, one],
        env=os.environ | {"PUMICE_TEST_TALLY": os.fspath(path)},
        check=True,
        capture_output=True,
    )
    assert report.add_up(report.Tally(), path) == {("none", "passed"): 1}
