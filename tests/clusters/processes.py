"""Programs under test: the sandbox's child processes. Waiting for one in vain fails the test."""

from __future__ import annotations

from collections.abc import Callable

from app.sandbox.controlplane import processes
from app.sandbox.controlplane.processes import NotReady, Process, stop_all

__all__ = ["NotReady", "Process", "stop_all", "wait_until"]


def wait_until(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Poll until the condition holds; the text names what was waited for."""
    try:
        processes.wait_until(condition, timeout_s=timeout_s, what=what)
    except NotReady as error:
        raise AssertionError(str(error)) from error
