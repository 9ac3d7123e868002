"""Which process goes first where several want a core.

kube-scheduler's loop stands still until Filter is answered, so on a busy machine each millisecond
that the extender waits for a core is one for every pod. Among the processes of one container the
same holds; between containers their CPU requests decide, and this changes nothing.

Niceness says how much of a core a process may take, and the length of its turns how soon it gets
one: the kernel lets a process with short turns interrupt processes with long ones.
"""

import ctypes
import logging
import os
import platform
import struct
from typing import Final

log = logging.getLogger(__name__)

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""Number of the system call, which the C library has no function for."""
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""sched_attr, as sched_setattr(2) has it: size, policy, flags, nice, priority, runtime, ..."""
_SCHED_OTHER: Final = 0
_TURN_NS: Final = 100_000
"""The shortest that Linux grants, from 6.12 on; older kernels take no notice."""


def be_urgent(by: int) -> None:
    """Lower this process's niceness by ``by``, where permitted, and have it take short turns."""
    if not by:
        return
    try:
        os.nice(-by)
    except PermissionError:
        log.info("not permitted to lower the niceness, left as it is", extra={"by": by})
        return
    _take_short_turns()


def _take_short_turns() -> None:
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, _SCHED_OTHER, 0, nice, 0, _TURN_NS, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(ctypes.c_long(number), 0, wanted, 0):
        log.info("the kernel grants no short turns: %s", os.strerror(ctypes.get_errno()))
