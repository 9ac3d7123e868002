"""The extender's side of its front: it starts that process, tells it places, takes connections.

Should the front end by itself it is started anew: clients wait in the socket that both have open.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Final, cast

from app.main.server import Server
from app.main.wiring import Parts
from app.service.limits import Limits
from app.service.places import Places
from app.telemetry import metrics
from app.wire.front import Change, Lines, Told, decode_told, line_of

log = logging.getLogger(__name__)

AGAIN_S: Final = 0.2
"""From the end of one to the start of the next."""

KEEP_ALIVE_S: Final = 24 * 3600
"""Of connections that the front hands over: it ends those of clients that say nothing."""

_TAKEN_AT_ONCE: Final = 64
_ENDS_WITHIN_S: Final = 2.0


class Front:
    """The front of one extender: where its clients come to."""

    def __init__(
        self, listener: socket.socket, *, server: Server, parts: Parts, limits: Limits, urgency: int
    ) -> None:
        self._listener = listener
        self._server = server
        self._parts = parts
        self._urgency = urgency
        self._places = Places(
            cache=parts.cache, planning=parts.planning, limits=limits, news=self._news
        )
        self._link: _Link | None = None
        self._draining = False
        self._adopting: set[asyncio.Task[None]] = set()
        self._is_due = False
        self._seconds = metrics.CALLS.labels("filter")
        self._answers = metrics.ANSWERS.labels("filter", "chosen")

    async def run(self) -> None:
        """Have one until cancelled."""
        with self._listener:
            while True:
                code = await self._one()
                log.error("the front ended by itself and is started anew", extra={"code": code})
                await asyncio.sleep(AGAIN_S)

    def drain(self) -> None:
        """Take no more connections: then the front accepts none, and answers nothing by itself."""
        self._draining = True
        if self._link is not None:
            self._link.close_doors()

    async def _one(self) -> int:
        """From the start of a front to its end; returns its exit code."""
        process, control, doors = start(self._listener, urgency=self._urgency)
        metrics.FRONT_STARTS.inc()
        link = self._link = _Link(doors, take=self._take, told=self._told)
        try:
            await asyncio.get_running_loop().create_connection(lambda: link, sock=control)
            if self._draining:
                link.close_doors()
            link.tell(Change(given=self._places.known()))
            await link.ended.wait()
        finally:
            self._link = None
            link.close()
            code = await asyncio.to_thread(_reap, process)
        return code

    def _news(self) -> None:
        """There may be other places: the front is told in the loop's next turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_due = False
        given, lost = self._places.take()
        if self._link is not None and (given or lost):
            self._link.tell(Change(given, lost))

    def _told(self, told: Told) -> None:
        self._seconds.observe(told.seconds)
        self._answers.inc()
        metrics.FRONT_ANSWERS.inc()
        self._parts.planning.follow_lead()
        self._parts.filtering.was_told(told.uid, told.node)

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        adopting = asyncio.get_running_loop().create_task(self._server.adopt(connection))
        self._adopting.add(adopting)
        adopting.add_done_callback(self._adopting.discard)


class _Link(asyncio.Protocol):
    """What one front and we tell each other; ``doors`` is where connections come from."""

    def __init__(
        self,
        doors: socket.socket,
        *,
        take: Callable[[socket.socket], None],
        told: Callable[[Told], None],
    ) -> None:
        self.ended = asyncio.Event()
        self._doors: socket.socket | None = doors
        self._take = take
        self._told = told
        self._lines = Lines()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It listens."""
        self._transport = cast("asyncio.Transport", transport)
        if self._doors is not None:
            asyncio.get_running_loop().add_reader(self._doors, self._come_in)

    def data_received(self, data: bytes) -> None:
        """It answered calls."""
        for line in self._lines.feed(data):
            self._told(decode_told(line))

    def connection_lost(self, _error: Exception | None) -> None:
        """It is gone."""
        self.close_doors()
        self.ended.set()

    def tell(self, change: Change) -> None:
        """Let it know."""
        if self._transport is not None:
            self._transport.write(line_of(change))

    def close(self) -> None:
        """Let it end."""
        self.close_doors()
        if self._transport is not None:
            self._transport.close()

    def close_doors(self) -> None:
        """Take no more connections."""
        doors, self._doors = self._doors, None
        if doors is not None:
            asyncio.get_running_loop().remove_reader(doors)
            doors.close()

    def _come_in(self) -> None:
        for _ in range(_TAKEN_AT_ONCE):
            if self._doors is None:
                return
            try:
                _, ends, _, _ = socket.recv_fds(self._doors, 1, 1)
            except BlockingIOError:
                return
            if not ends:  # it is gone
                self.close_doors()
            for end in ends:
                self._take(socket.socket(fileno=end))


def start(
    listener: socket.socket, *, urgency: int
) -> tuple["subprocess.Popen[bytes]", socket.socket, socket.socket]:
    """A front that accepts from ``listener``; our ends of what it tells, and of its connections."""
    control, its_control = socket.socketpair()
    doors, its_doors = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its_control, its_doors:
        numbers = [each.fileno() for each in (listener, its_control, its_doors)]
        words = [*map(str, numbers), str(os.getpid()), str(urgency)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.front", *words],
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
        )
    for each in (control, doors):
        each.setblocking(False)
    return process, control, doors


def _reap(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of one that ends, or is ended."""
    try:
        return process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
