"""The extender's side of its front: it starts that process, tells it places, serves what it brings.

Should the front end by itself it is started anew: clients wait in the socket that both have open.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from app.api.extender import Call
from app.front import doors
from app.main.serving.link import Link
from app.main.serving.server import DRAIN_S, Server
from app.main.wiring import Parts
from app.service.calls.front_reservations import FrontReservations
from app.settings.extender import ExtenderSettings
from app.telemetry import metrics
from app.wire.front import Told

log = logging.getLogger(__name__)

AGAIN_S: Final = 0.2
"""From the end of one to the start of the next."""

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
        self._places = FrontReservations(
            cache=parts.cache,
            cycle=parts.planning.cycle,
            leadership=parts.planning.leadership,
            limits=settings.limits(),
            news=self._news,
        )
        self._link: Link | None = None
        self._draining = False
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

        Returns when that is done, or its time is over. New connections are refused: in the socket
        they would get no answer.
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
        link = self._link = Link(
            entrance,
            places=self._places,
            calls=self._calls,
            adopt=self._adopt,
            told=self._told,
        )
        try:
            await asyncio.get_running_loop().create_connection(lambda: link, sock=control)
            await link.ended.wait()
        finally:
            self._link = None
            link.close()
            code = await asyncio.to_thread(_reap, process)
        return code

    def _news(self) -> None:
        if self._link is not None:
            self._link.news()

    def _told(self, told: Told) -> None:
        self._seconds.observe(told.seconds)
        self._answers.inc()
        metrics.FRONT_ANSWERS.inc()
        self._parts.planning.leadership.follow()
        self._places.was_told(told)
        self._parts.filtering.was_told(told.uid, told.node, other=told.other)

    def _adopt(self, connection: socket.socket, begun: bytes) -> None:
        connection.setblocking(False)
        self._server.adopt(connection, begun)


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
