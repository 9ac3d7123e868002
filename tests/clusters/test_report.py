"""The count of tests per cluster."""

from __future__ import annotations

from pathlib import Path

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
