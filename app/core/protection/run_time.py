"""Run times in annotations: a number of seconds, or a duration such as ``1h30m``.

A queue may say for how long its pods are left alone once they have begun, and a gang how long it
will run.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.kit.durations import parse_duration
from app.model.resources import Mask
from app.model.workload import Queue

Times = NDArray[np.float64]

MINIMUM_RUN_TIME = "pumice.sh/minimum-run-time"
RUN_TIME = "pumice.sh/run-time"
"""Annotation of a PodGroup, a job or a pod: how long it will run, as far as its owner knows."""


def parse_run_time(text: str) -> float:
    """Seconds in ``text``; raises ``ValueError``, also where they are less than none."""
    said = text.strip()
    seconds = float(said) if said.isascii() and said.isdecimal() else parse_duration(said)
    if seconds < 0:
        raise ValueError(f"{text!r} is less than no time")
    return seconds


def declared_run_time(annotations: Mapping[str, str]) -> float | None:
    """How many seconds a gang says that it will run; None where it says nothing readable."""
    said = annotations.get(RUN_TIME)
    if said is None:
        return None
    try:
        return parse_run_time(said)
    except ValueError:
        return None


def minimum_run_time(queue: Queue) -> float:
    """For how many seconds pods of ``queue`` are not evicted; 0 where it says nothing readable."""
    said = queue.annotations.get(MINIMUM_RUN_TIME)
    if said is None:
        return 0.0
    try:
        return parse_run_time(said)
    except ValueError:
        return 0.0


def has_run_for(started: Times, *, least: Times, now: float) -> Mask:
    """Which pods have run for ``least`` seconds; one that has not started (0) has run for none.

    Times are seconds since the epoch, all of shape ``(C,)``.
    """
    ran = np.where(started > 0, np.maximum(now - started, 0.0), 0.0)
    mask: Mask = ran >= least
    return mask
