"""Programs under test: the sandbox's child processes. Waiting for one in vain fails the test."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.sandbox.controlplane import processes
from app.sandbox.controlplane.processes import NotReady, Process, stop_all

__all__ = ["NotReady", "Process", "ended", "stop_all", "wait_until"]

_ENDS_WITHIN_S = 10.0


def ended(process: Process) -> int:
    """The exit code after SIGTERM, which comes in time."""
    began = time.monotonic()
    process.terminate()
    code = process.wait(timeout_s=_ENDS_WITHIN_S + 20)
    assert time.monotonic() - began < _ENDS_WITHIN_S, process.log.read_text()
    return code


def wait_until(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Poll until the condition holds; the text names what was waited for."""
    try:
        processes.wait_until(condition, timeout_s=timeout_s, what=what)
    except NotReady as error:
        raise AssertionError(str(error)) from error
