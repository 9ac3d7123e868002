"""The extender's side of its front: it starts that process, tells it places, serves what it brings.

Should the front end by itself it is started anew: clients wait in the socket that both have open.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Final, cast

from app.api.extender import Call
from app.api.framed import Framed
from app.front import doors
from app.main.server import DRAIN_S, Server
from app.main.wiring import Parts
from app.service.places import Places
from app.settings import ExtenderSettings
from app.telemetry import metrics
from app.wire.front import Frames, Kind, Told, change_frame, decode_told

log = logging.getLogger(__name__)

AGAIN_S: Final = 0.2
"""From the end of one to the start of the next."""

_TAKEN_AT_ONCE: Final = 64
_ENDS_WITHIN_S: Final = 2.0


class Front:
    """The front of one extender: where its clients come to."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        server: Server,
        calls: Mapping[str, Call],
        parts: Parts,
        settings: ExtenderSettings,
    ) -> None:
        self._listener = listener
        self._server = server
        self._calls = calls
        self._parts = parts
        self._settings = settings
        self._places = Places(
            cache=parts.cache, planning=parts.planning, limits=settings.limits(), news=self._news
        )
        self._link: _Link | None = None
        self._draining = False
        self._adopting: set[asyncio.Task[None]] = set()
        self._is_due = False
        self._seconds = metrics.CALLS.labels("filter")
        self._answers = metrics.ANSWERS.labels("filter", "chosen")

    async def run(self) -> None:
        """Have one until cancelled, but start none any more when this drains."""
        with self._listener:
            while not self._draining:
                code = await self._one()
                log.error("the front ended by itself", extra={"code": code})
                await asyncio.sleep(AGAIN_S)

    async def drain(self) -> None:
        """Have the front accept nothing more, and answer nothing by itself; then answer the rest.

        Returns when that is done, or its time is over. Who comes now is refused: in the socket
        nobody would answer.
        """
        self._draining = True
        self._listener.close()
        if self._link is not None:
            self._link.close_doors()
            await self._link.framed.finish(DRAIN_S)

    async def _one(self) -> int:
        """From the start of a front to its end; returns its exit code."""
        process, control, entrance = start(self._listener, self._settings)
        metrics.FRONT_STARTS.inc()
        link = self._link = _Link(entrance, calls=self._calls, adopt=self._adopt, told=self._told)
        try:
            await asyncio.get_running_loop().create_connection(lambda: link, sock=control)
            if not self._draining:
                link.tell(change_frame(self._places.known()))
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
        change = self._places.take()
        if self._link is not None and not self._draining and change is not None:
            self._link.tell(change_frame(change))

    def _told(self, told: Told) -> None:
        self._seconds.observe(told.seconds)
        self._answers.inc()
        metrics.FRONT_ANSWERS.inc()
        self._parts.planning.follow_lead()
        self._places.was_told(told)
        self._parts.filtering.was_told(told.uid, told.node, other=told.other)

    def _adopt(self, connection: socket.socket, begun: bytes) -> None:
        connection.setblocking(False)
        adopting = asyncio.get_running_loop().create_task(self._server.adopt(connection, begun))
        self._adopting.add(adopting)
        adopting.add_done_callback(self._adopting.discard)


class _Link(asyncio.Protocol):
    """What one front and we tell each other; ``entrance`` is where connections come from."""

    def __init__(
        self,
        entrance: socket.socket,
        *,
        calls: Mapping[str, Call],
        adopt: Callable[[socket.socket, bytes], None],
        told: Callable[[Told], None],
    ) -> None:
        self.ended = asyncio.Event()
        self.framed = Framed(calls, send=self.tell)
        self._entrance: socket.socket | None = entrance
        self._adopt = adopt
        self._told = told
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It listens."""
        self._transport = cast("asyncio.Transport", transport)
        if self._entrance is not None:
            asyncio.get_running_loop().add_reader(self._entrance, self._come_in)

    def data_received(self, data: bytes) -> None:
        """It answered calls, or hands some on."""
        for frame in self._frames.feed(data):
            match frame.kind:
                case Kind.TOLD:
                    self._told(decode_told(frame.body))
                case Kind.CALL:
                    self.framed.begin(frame)
                case Kind.GONE:
                    self.framed.give_up(frame.number)

    def connection_lost(self, _error: Exception | None) -> None:
        """It is gone, and with it all that waited for answers."""
        self._transport = None
        self.framed.give_up_all()
        self.close_doors()
        self.ended.set()

    def tell(self, frame: bytes) -> None:
        """Let it know, if it is there."""
        if self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        """Let it end."""
        self.close_doors()
        if self._transport is not None:
            self._transport.close()

    def close_doors(self) -> None:
        """Take no more connections."""
        entrance, self._entrance = self._entrance, None
        if entrance is not None:
            asyncio.get_running_loop().remove_reader(entrance)
            entrance.close()

    def _come_in(self) -> None:
        for _ in range(_TAKEN_AT_ONCE):
            if self._entrance is None:
                return
            try:
                came = doors.take(self._entrance)
            except BlockingIOError:
                return
            except doors.NoDescriptors:
                log.error("no file descriptors left, a connection is ended")
                continue
            if came is None:  # it is gone
                self.close_doors()
            else:
                self._adopt(*came)


def start(
    listener: socket.socket, settings: ExtenderSettings
) -> tuple["subprocess.Popen[bytes]", socket.socket, socket.socket]:
    """A front that accepts from ``listener``; our ends of what it tells, and of its connections."""
    control, its_control = socket.socketpair()
    control.setblocking(False)
    entrance, its_entrance = doors.pair()
    with its_control, its_entrance:
        numbers = [each.fileno() for each in (listener, its_control, its_entrance)]
        words = map(str, (*numbers, os.getpid(), settings.urgency))
        logs = (settings.log_level, settings.log_format)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.front", *words, *logs],
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
        )
    return process, control, entrance


def _reap(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of one that ends, or is ended."""
    try:
        return process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
