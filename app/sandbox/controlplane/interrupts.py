"""Signals that must not come between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep SIGINT and SIGTERM until the block is over, where a handler may raise.

    Signals are handled in the main thread, so nothing comes between the steps of another one. A
    blocked signal would stay blocked in children that are started meanwhile; this one does not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def put_off(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    replaced = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in replaced:
        signal.signal(number, put_off)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
