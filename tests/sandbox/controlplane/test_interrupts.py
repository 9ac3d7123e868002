"""A child is known to who must end it, whenever the interrupt comes."""

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from app.sandbox.controlplane.interrupts import uninterrupted


class Interrupted(Exception):
    """What the handler of a program raises."""


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal whose handler raises."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(request.param, interrupt)
    yield request.param
    signal.signal(request.param, before)


def test_an_interrupt_waits_for_the_end_of_the_block_and_comes_then(number: int) -> None:
    known: list[str] = []

    def start() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            known.append("child")

    with pytest.raises(Interrupted):
        start()
    assert known == ["child"]
    with pytest.raises(Interrupted):
        signal.raise_signal(number)


def test_an_error_in_the_block_leaves_the_handlers_as_they_were(number: int) -> None:
    with pytest.raises(OSError, match="no such program"), uninterrupted():
        raise OSError("no such program")
    with pytest.raises(Interrupted):
        signal.raise_signal(number)


def test_a_thread_of_its_own_is_not_in_the_way_of_signals(number: int) -> None:
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with uninterrupted():
            inside.set()
            over.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(Interrupted):
            signal.raise_signal(number)
    finally:
        over.set()
        thread.join()
