"""Programs as child processes: one log file each, ready when a condition says so.

A process ends in one of four ways: `stop` (SIGTERM, then SIGKILL after a grace), `kill` (SIGKILL,
as a fault), leaving the `with` block, or with the process that started it (see `tether`). It is
always addressed by its own id. Ctrl-C at the terminal does not reach it, so that their starter can
end several in order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_TETHER = Path(__file__).with_name("tether.py")
_POLL_S = 0.03
_STANDSTILL_S = 1.0
_TAIL_BYTES = 3000


class NotReady(Exception):
    """A condition did not come true in time, or the process that should make it true ended."""


def wait_until(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Poll until the condition holds; the text names what was waited for.

    Time in which the whole machine stood still (a virtual one does, when it is moved or saved) does
    not count: the awaited process stood still too.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        now = time.monotonic()
        if now > deadline:
            raise NotReady(f"{what}: not within {timeout_s:g} s")
        time.sleep(_POLL_S)
        slept = time.monotonic() - now
        if slept > _STANDSTILL_S:
            deadline += slept


class Process:
    """One child process, started at construction; output goes to `log`, appended."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        self.argv = tuple(str(word) for word in argv)
        self.name = name or Path(self.argv[0]).name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                process_group=0,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of the child's own process group."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether the child has not ended yet; an ended child is reaped by this look."""
        return self._popen.poll() is None

    @property
    def returncode(self) -> int | None:
        """The process's exit code: None while it runs; negative: ended by that signal."""
        return self._popen.poll()

    def wait_ready(self, condition: Callable[[], bool], *, timeout_s: float = 30) -> Self:
        """Poll until the condition holds; fail at once, with the log's end, if it ends."""

        def ready_or_ended() -> bool:
            return not self.running or condition()

        try:
            wait_until(ready_or_ended, timeout_s=timeout_s, what=f"{self.name} ready")
        except NotReady as error:
            self.stop()
            raise NotReady(f"{error}\n{self.log_tail()}") from error
        if not self.running:
            raise NotReady(f"{self.name} ended with {self.returncode}\n{self.log_tail()}")
        return self

    def wait(self, *, timeout_s: float) -> int:
        """Wait for the end and return the exit code."""
        return self._popen.wait(timeout_s)

    def terminate(self) -> None:
        """Send SIGTERM and do not wait."""
        if self.running:
            self._popen.terminate()

    def kill(self) -> None:
        """Send SIGKILL and wait: the fault `kill -9`."""
        if self.running:
            self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()

    def stop(self, *, grace_s: float = 5) -> int:
        """Send SIGTERM, wait up to the grace, then SIGKILL; return the exit code."""
        self.terminate()
        try:
            return self._popen.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._popen.wait()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): alive, connected and silent."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`; an ended or running process does not mind."""
        self._popen.send_signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """Return the last lines of the log, for failure messages."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - _TAIL_BYTES))
            return log.read().decode(errors="replace")


def stop_all(processes: Iterable[Process], *, grace_s: float = 5) -> None:
    """Stop several at once: all are told first, then all are waited for."""
    told = list(processes)
    for process in told:
        process.terminate()
    deadline = time.monotonic() + grace_s
    for process in told:
        process.stop(grace_s=max(0.0, deadline - time.monotonic()))
