"""The front's program: ``python -m app.front LISTENER CONTROL DOORS PARENT URGENCY``.

The first three are open sockets. It lives as long as the extender does, whatever becomes of that:
signals are the extender's business, and its end is seen at the control socket, or by the kernel.
"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, cast
from weakref import WeakSet

import uvloop

from app.front.connection import Client
from app.front.inner import Inners
from app.front.places import Places
from app.front.priority import end_with, go_first
from app.wire.front import Lines, Told, decode_change, line_of

_LOOK_EVERY_S: Final = 15.0
"""For connections that nobody uses any more."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """Where clients come, where the extender is told and tells, and where it gets connections."""

    listener: socket.socket
    control: socket.socket
    doors: socket.socket


class Control(asyncio.Protocol):
    """The extender's end of what it tells; ``ended`` is set when there is no extender."""

    def __init__(self) -> None:
        self.places = Places(self._tell)
        self.ended = asyncio.Event()
        self._lines = Lines()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Places changed."""
        for line in self._lines.feed(data):
            self.places.learn(decode_change(line))

    def connection_lost(self, _error: Exception | None) -> None:
        """It is gone."""
        self.ended.set()

    def _tell(self, told: Told) -> None:
        self._transport.write(line_of(told))


async def serve(sockets: Sockets) -> None:
    """Until the extender ends."""
    loop = asyncio.get_running_loop()
    control = Control()
    await loop.create_connection(lambda: control, sock=sockets.control)
    inners = Inners(partial(_hand_over, sockets.doors))
    clients: WeakSet[Client] = WeakSet()

    def client() -> Client:
        made = Client(control.places, inners)
        clients.add(made)
        return made

    server = await loop.create_server(client, sock=sockets.listener)

    def extender_drains() -> None:
        loop.remove_reader(sockets.doors)
        server.close()
        control.places.forget()

    loop.add_reader(sockets.doors, extender_drains)  # nothing is sent there but its end
    while not control.ended.is_set():
        for each in list(clients):
            each.end_if_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await control.ended.wait()


def _hand_over(doors: socket.socket, end: socket.socket) -> bool:
    try:
        socket.send_fds(doors, [b"+"], [end.fileno()])
    except BlockingIOError:
        return False
    return True


def main() -> None:
    """Serve with what the command line names."""
    listener, control, doors, parent, urgency = map(int, sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with(parent)
    go_first(urgency)
    opened = Sockets(*(socket.socket(fileno=number) for number in (listener, control, doors)))
    for each in (opened.listener, opened.control, opened.doors):
        each.setblocking(False)
    uvloop.run(serve(opened))


if __name__ == "__main__":
    main()
