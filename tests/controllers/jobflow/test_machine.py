"""Every cell of the table of phases."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.jobflow.machine import Phase, next_phase

_JOBS = ["Pending", "Running", "Completed", "Failed", "Terminated", "Aborted", "Restarting"]


@pytest.mark.parametrize(
    ("phase", "jobs", "expected"),
    [
        (Phase.PENDING, [], Phase.PENDING),
        (Phase.PENDING, ["Pending"], Phase.PENDING),
        (Phase.PENDING, ["Aborted"], Phase.PENDING),
        (Phase.PENDING, ["Running"], Phase.RUNNING),
        (Phase.PENDING, ["Completed"], Phase.RUNNING),
        (Phase.PENDING, ["Completed", "Completed"], Phase.RUNNING),
        (Phase.PENDING, ["Running", "Failed"], Phase.FAILED),
        (Phase.PENDING, ["Terminated"], Phase.FAILED),
        (Phase.RUNNING, ["Completed"], Phase.RUNNING),
        (Phase.RUNNING, ["Completed", "Pending"], Phase.RUNNING),
        (Phase.RUNNING, ["Completed", "Completed"], Phase.SUCCEED),
        (Phase.RUNNING, ["Completed", "Failed"], Phase.FAILED),
        (Phase.RUNNING, ["Terminated"], Phase.FAILED),
        (Phase.RUNNING, [], Phase.RUNNING),
    ],
)
def test_jobs_move_a_flow_of_two_steps(phase: Phase, jobs: list[str], expected: Phase) -> None:
    assert next_phase(phase, Counter(jobs), steps=2) is expected


@given(
    st.sampled_from([Phase.SUCCEED, Phase.FAILED, Phase.TERMINATING]),
    st.lists(st.sampled_from(_JOBS)),
    st.integers(0, 5),
)
def test_an_end_is_an_end(phase: Phase, jobs: list[str], steps: int) -> None:
    assert next_phase(phase, Counter(jobs), steps=steps) is phase
