"""The phases of a JobFlow (volcano.md §5.6).

=========  ===========================================================
phase      what comes next
=========  ===========================================================
Pending    a job failed or was terminated: Failed; one runs or is
           complete: Running
Running    a job failed or was terminated: Failed; all are complete:
           Succeed
others     nothing
=========  ===========================================================
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    """``status.state.phase``; a new flow is Pending."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    FAILED = "Failed"
    TERMINATING = "Terminating"

    @property
    def is_open(self) -> bool:
        """Whether further jobs may be made."""
        return self in (Phase.PENDING, Phase.RUNNING)


_BAD: Final = ("Failed", "Terminated")


def next_phase(phase: Phase, jobs: Mapping[str, int], *, steps: int) -> Phase:
    """What follows; ``jobs`` are counts by the jobs' phases."""
    if not phase.is_open:
        return phase
    if any(jobs.get(bad) for bad in _BAD):
        return Phase.FAILED
    if phase is Phase.RUNNING and jobs.get("Completed", 0) == steps:
        return Phase.SUCCEED
    if jobs.get("Running") or jobs.get("Completed"):
        return Phase.RUNNING
    return phase
