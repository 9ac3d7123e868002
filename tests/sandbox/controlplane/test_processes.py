"""Child processes: ready, ended in every way, never left behind."""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.sandbox.controlplane import processes
from app.sandbox.controlplane.free_ports import free_port
from app.sandbox.controlplane.processes import NotReady, Process, stop_all, wait_until

_STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("on", flush=True)
time.sleep(60)
"""


def _runs(pid: int) -> bool:
    """An ended process that nobody has waited for yet does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _python(code: str, log: Path) -> Process:
    return Process([sys.executable, "-c", code], log=log)


def _has_begun(process: Process) -> Callable[[], bool]:
    return lambda: "on" in process.log_tail()


def test_a_process_is_ready_when_the_condition_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _python("import time; print('on', flush=True); time.sleep(60)", log) as process:
        process.wait_ready(_has_begun(process), timeout_s=10)
        assert process.running
    assert process.returncode == -signal.SIGTERM


def test_a_process_that_ends_before_it_is_ready_fails_at_once_with_its_log(tmp_path: Path) -> None:
    process = _python("import sys; sys.exit('no such flag')", tmp_path / "log")
    with pytest.raises(NotReady, match=r"ended with 1\nno such flag"):
        process.wait_ready(lambda: False, timeout_s=10)


def test_a_process_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    process = _python("import time; time.sleep(60)", tmp_path / "log")
    with pytest.raises(NotReady, match=r"ready: not within 0\.2 s"):
        process.wait_ready(lambda: False, timeout_s=0.2)
    assert not process.running


def test_sigterm_that_is_ignored_is_followed_by_sigkill(tmp_path: Path) -> None:
    process = _python(_STUBBORN, tmp_path / "log")
    process.wait_ready(_has_begun(process), timeout_s=10)
    assert process.stop(grace_s=0.2) == -signal.SIGKILL


def test_several_processes_share_one_grace(tmp_path: Path) -> None:
    processes = [_python(_STUBBORN, tmp_path / str(number)) for number in range(2)]
    for process in processes:
        process.wait_ready(_has_begun(process), timeout_s=10)
    stop_all(processes, grace_s=0.2)
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 2


def test_a_paused_process_is_alive_and_can_be_killed(tmp_path: Path) -> None:
    process = _python("import time; time.sleep(60)", tmp_path / "log")
    process.pause()
    assert process.running
    process.kill()
    assert process.returncode == -signal.SIGKILL


def test_a_process_ends_with_the_test_run_that_started_it(tmp_path: Path) -> None:
    run = (
        "import os, pathlib, signal\n"
        "from app.sandbox.controlplane.processes import Process\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        "child = Process(['sh', '-c', 'echo on; exec sleep 60'], log=log)\n"
        "child.wait_ready(lambda: 'on' in child.log_tail())\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    child = int(done.stdout)
    wait_until(lambda: not _runs(child), timeout_s=10, what="the orphan's end")


def test_free_ports_differ_and_skip_those_in_use() -> None:
    first = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        assert free_port() not in {first, first + 1}


class _Machine:
    """A clock that goes on while somebody sleeps, and that leaps while the machine stands still."""

    def __init__(self, standstill_s: float) -> None:
        self._now, self._standstill_s = 0.0, standstill_s

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds + self._standstill_s
        self._standstill_s = 0.0


@pytest.mark.parametrize("standstill_s", [0.0, 60.0])
def test_time_in_which_the_machine_stood_still_is_not_waited(
    monkeypatch: pytest.MonkeyPatch, standstill_s: float
) -> None:
    machine = _Machine(standstill_s)
    monkeypatch.setattr(processes, "time", machine)
    looked = itertools.count()
    wait_until(lambda: next(looked) == 100, timeout_s=10, what="the hundredth look")
    with pytest.raises(NotReady, match="never: not within 10 s"):
        wait_until(lambda: False, timeout_s=10, what="never")
