"""Having a core the moment it is wanted, for what measures others.

A client that waits for a core of its own between the answer and its look at the clock measures the
machine, and on two cores that are both busy nothing else. Kubernetes' processes ask for no such
place, so this one takes nothing from the order among them.
"""

from __future__ import annotations

import os


def go_first() -> bool:
    """Go before every process without a real-time priority; False where that is not permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    return True
