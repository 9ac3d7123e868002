"""Connections to the extender: one for each call that is under way, used again after its answer.

kube-scheduler keeps two idle connections and dials the others anew for each call; so the extender,
which has more to do, does not see most of that.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Protocol, cast

from app.front.messages import Answers

HandOver = Callable[[socket.socket], bool]
"""Gives the extender one end of a connection; False when it takes no more for the moment.

OSError when it takes no more at all.
"""

AGAIN_S: Final = 0.002

KEPT: Final = 32
"""Free ones at most."""


class Outer(Protocol):
    """Whom the extender answers."""

    def answered(self, data: bytes) -> None:
        """It says so much."""

    def left(self) -> None:
        """It ended the connection."""

    def slow_down(self) -> None:
        """It does not take what it is sent."""

    def go_on(self) -> None:
        """It does again."""


class Inners:
    """Those that are free, and new ones."""

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._free: list[Inner] = []

    def take(self, outer: Outer) -> "Inner":
        """One for ``outer``."""
        inner = self._free.pop() if self._free else Inner(self)
        inner.outer = outer
        return inner

    def give_back(self, inner: "Inner") -> None:
        """Its answer is there, and it can have another call."""
        inner.outer = None
        inner.go_on()
        if len(self._free) < KEPT:
            self._free.append(inner)
        else:
            inner.close()

    def lose(self, inner: "Inner") -> None:
        """The extender ended one that may be free."""
        if inner in self._free:
            self._free.remove(inner)

    def opened(self) -> socket.socket | None:
        """One end of a connection whose other end the extender has; None when it has to wait.

        Raises OSError.
        """
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        with theirs, ExitStack() as stack:
            stack.enter_context(mine)
            if not self._hand_over(theirs):
                return None
            stack.pop_all()
            return mine


class Inner(asyncio.Protocol):
    """One connection to the extender."""

    def __init__(self, inners: Inners) -> None:
        self.outer: Outer | None = None
        self._inners = inners
        self._answers = Answers()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Have a connection, as soon as the extender takes one."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        try:
            mine = self._inners.opened()
        except OSError:
            loop.call_soon(self.connection_lost, None)
            return
        if mine is None:
            loop.call_later(AGAIN_S, self._open)
        else:
            self._opening = loop.create_task(loop.create_connection(lambda: self, sock=mine))

    @property
    def is_over(self) -> bool:
        """Whether it ends with the answer that came last."""
        return self._answers.is_last

    def ends_answer(self, data: bytes) -> bool:
        """Whether an answer ends with ``data``; to be asked of all that comes."""
        return self._answers.feed(data)

    def write(self, data: bytes) -> None:
        """Send it, now or when there is a connection."""
        if self._transport is None:
            self._unsent.append(data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Nobody wants its answer."""
        self.outer, self._closed = None, True
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what has waited."""
        self._transport = cast("asyncio.Transport", transport)
        if self._closed:
            self._transport.close()
            return
        self._transport.writelines(self._unsent)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        """It answers, or says what nobody asked for."""
        if self.outer is not None:
            self.outer.answered(data)
        else:
            self._inners.lose(self)
            self.close()

    def connection_lost(self, _error: Exception | None) -> None:
        """It, or we, ended this."""
        self._closed = True
        self._inners.lose(self)
        outer, self.outer = self.outer, None
        if outer is not None:
            outer.left()

    def pause_writing(self) -> None:
        """The extender does not take what there is for it."""
        if self.outer is not None:
            self.outer.slow_down()

    def resume_writing(self) -> None:
        """It does again."""
        if self.outer is not None:
            self.outer.go_on()

    def slow_down(self) -> None:
        """The client does not take what the extender says."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """It does again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
