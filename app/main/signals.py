"""SIGINT and SIGTERM end what runs, once: later ones do not disturb the cleaning up.

Before and after an event loop the first signal is a KeyboardInterrupt; inside one it cancels the
task that asked for it, so that every context manager on the way out still runs. Processes that
drain are told by an event instead (:func:`stop_asked`). Volcano dumps its state at SIGUSR1 and
SIGUSR2, so these end no process.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OF_DUMPS = (signal.SIGUSR1, signal.SIGUSR2)
_AGAIN_S = 0.01
"""Until an interrupt that Python has dropped is raised once more."""


@contextmanager
def stop_asked() -> Iterator[asyncio.Event]:
    """Set by the first signal, for a process that drains; in a running loop.

    SIGHUP is one too, unless it is ignored, as it is for a program that ``nohup`` starts.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in _OF_DUMPS:
        loop.add_signal_handler(number, _tell_where_it_is_told)
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    if hangs_up:
        loop.add_signal_handler(signal.SIGHUP, stopping.set)
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield stopping
    finally:
        _ignore_from_now_on(loop)
        for number in (*_OF_DUMPS, *((signal.SIGHUP,) if hangs_up else ())):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """A program's whole life; being asked to end is not a failure.

    Python drops an exception that is raised in a callback of its own, as there are while modules
    load, after telling ``sys.unraisablehook``: the interrupt is raised again a moment later then.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        _ignore()
        raise KeyboardInterrupt

    def raise_again(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook(dropped)

    hook, sys.unraisablehook = sys.unraisablehook, raise_again
    before = {number: signal.signal(number, interrupt) for number in (*_SIGNALS, signal.SIGALRM)}
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)  # it would end a process that does not handle it
        for number, handler in before.items():
            signal.signal(number, handler)


@asynccontextmanager
async def until_signal() -> AsyncIterator[None]:
    """The part of it inside an event loop: cancelled by the first signal."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asked = False

    def stop() -> None:
        nonlocal asked
        if not asked:
            asked = True
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    except asyncio.CancelledError:
        if not asked:
            raise
        task.uncancel()
    finally:
        _ignore_from_now_on(loop)


def _tell_where_it_is_told() -> None:
    log.warning("nothing is dumped at a signal: the extender tells its state at /debug")


def _ignore_from_now_on(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore signals also once the loop is closed, when they would end the process."""
    for number in _SIGNALS:
        loop.remove_signal_handler(number)
    _ignore()


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
