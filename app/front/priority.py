"""Having a core the moment a call comes, and ending when the extender does.

With a real-time priority a process goes before all that have none. The extender itself is not given
one: for seconds no other process would have that core. The front works for a twentieth of a
millisecond at a time; should it ever go on for longer without a pause, it loses the priority.
"""

import ctypes
import logging
import os
import resource
import signal
import sys
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

PAUSELESS_US: Final = 100_000
"""Processor time without a pause, in microseconds, after which a process is no urgent one."""

_PR_SET_PDEATHSIG: Final = 1


def go_first(urgency: int) -> bool:
    """Take a real-time priority, if ``urgency`` is above 0; False when there is none to be had."""
    if urgency <= 0 or not hasattr(resource, "RLIMIT_RTTIME"):
        return False
    signal.signal(signal.SIGXCPU, _give_up)
    _, most = resource.getrlimit(resource.RLIMIT_RTTIME)
    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, (PAUSELESS_US, most))
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (OSError, ValueError) as error:  # not permitted, not there, or a limit below ours
        log.info("the front goes without a real-time priority: %s", error)
        return False
    return True


def _give_up(_number: int, _frame: FrameType | None) -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    log.warning("the front worked without a pause and has no real-time priority any more")


def end_with(parent: int) -> None:
    """End when that process does, even if it is killed; at once if it has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()
