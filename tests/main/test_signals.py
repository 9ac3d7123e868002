"""Being asked to end, wherever the signal comes and however often.

Python drops exceptions that are raised in the callback of a weak reference; importing has them.
"""

import subprocess
import sys

import pytest

_IN_A_CALLBACK = """
import signal, sys, time, weakref
from app.main.signals import interruptible

class Lock: pass

with interruptible():
    lock = Lock()
    watched = weakref.ref(lock, lambda _: signal.raise_signal(getattr(signal, sys.argv[1])))
    del lock
    time.sleep(50)
    raise SystemExit(3)
"""

_OVER_BY_THEN = """
import signal, time, weakref
from app.main.signals import interruptible

class Lock: pass

with interruptible():
    lock = Lock()
    watched = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGTERM))
    del lock
time.sleep(0.1)
raise SystemExit(3)
"""

_OTHERS = """
import weakref
from app.main.signals import interruptible

class Lock: pass

def fail(_):
    raise ValueError("dropped")

with interruptible():
    lock = Lock()
    watched = weakref.ref(lock, fail)
    del lock
"""

_DRAINED = """
import asyncio, signal, sys
import uvloop
from app.main.signals import stop_asked

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where `nohup` starts the tests
number = getattr(signal, sys.argv[1])

async def drain():
    with stop_asked() as stopping:
        signal.raise_signal(number)
        await stopping.wait()

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(drain())
signal.raise_signal(number)
raise SystemExit(3)
"""


_GOES_ON = """
import asyncio, signal, sys
import uvloop
from app.main.signals import stop_asked

async def go_on():
    with stop_asked() as stopping:
        signal.raise_signal(getattr(signal, sys.argv[1]))
        await asyncio.sleep(0.1)
        assert not stopping.is_set()

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(go_on())
raise SystemExit(3)
"""

_WITHOUT_TERMINAL = f"""
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.argv.append("SIGHUP")
{_GOES_ON}
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_that_was_dropped_comes_again(name: str) -> None:
    done = _run(_IN_A_CALLBACK, name)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_process_that_has_drained_ends_as_it_would_however_often_it_is_asked(name: str) -> None:
    done = _run(_DRAINED, name)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_a_signal_at_which_volcano_dumps_its_state_ends_nothing(name: str) -> None:
    done = _run(_GOES_ON, name)
    assert done.returncode == 3
    assert "nothing is dumped at a signal" in done.stderr


def test_a_hangup_that_is_ignored_stays_so() -> None:
    assert _run(_WITHOUT_TERMINAL).returncode == 3


def test_it_does_not_come_to_a_program_that_is_over_by_then() -> None:
    assert _run(_OVER_BY_THEN).returncode == 3


def test_what_else_is_dropped_is_told_as_ever() -> None:
    done = _run(_OTHERS)
    assert done.returncode == 0
    assert "ValueError: dropped" in done.stderr


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", script, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=40)
