"""Become another program that the kernel kills when the starter dies.

Run as a script: `tether.py PARENT_PID PROGRAM ARGUMENT...`. Asking the kernel before the program
is entered, in a process of its own, avoids running Python between fork and exec of a process that
has threads. The signal is tied to the starter's *thread*: start processes from one that lasts.
Only Linux can do this; elsewhere a starter that is killed leaves the program behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Replace this process by the program; exits with an error where the starter has ended."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the starter is gone")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
