"""Where ``pumice`` begins: with ears for signals, before what takes a second or more to load.

The first process of a container gets no signal that it has no handler for, so a SIGTERM would be
lost, and the container be killed when its grace period is over. And a Ctrl-C is no error to trace.
"""

import os
import signal
from types import FrameType


def main() -> None:
    """Entry point of the console script."""
    interrupt = signal.getsignal(signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    from app.cli import root

    signal.signal(signal.SIGINT, interrupt)
    root.main()


def _end(number: int, _frame: FrameType | None) -> None:
    """End as a shell tells of a process that a signal ended.

    No exception is raised, see :mod:`app.main.signals`.
    """
    os._exit(128 + number)
