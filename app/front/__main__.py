"""The front's program.

It is ``python -m app.front LISTENER CONTROL DOORS PARENT URGENCY LEVEL FORMAT``: the first three
are open sockets, the last two say what is logged, and how. It lives as long as the extender does,
whatever becomes of that: signals are the extender's business, and its end is seen at the control
socket, or by the kernel.
"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

import uvloop

from app.front import doors
from app.front.clients import Clients, most
from app.front.control import Control
from app.front.priority import end_with, go_first
from app.telemetry import logging

_LOOK_EVERY_S: Final = 15.0
"""How often the front looks for connections that are not used any more."""

_LAST_ANSWERS_S: Final = 1.0
"""How long clients have to take what there is for them."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """Where clients come, where the extender is told and tells, and where it gets connections."""

    listener: socket.socket
    control: socket.socket
    doors: socket.socket


async def serve(sockets: Sockets) -> None:
    """Until the extender ends."""
    loop = asyncio.get_running_loop()
    control = Control()
    clients = Clients(control, give_away=partial(doors.give, sockets.doors), limit=most())
    await loop.create_connection(lambda: control, sock=sockets.control)
    server = await loop.create_server(clients.connect, sock=sockets.listener)

    def drain() -> None:
        loop.remove_reader(sockets.doors)
        server.close()
        control.places.forget()
        clients.end_soon()

    loop.add_reader(sockets.doors, drain)  # nothing is sent there but its end
    while not control.ended.is_set():
        clients.end_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await control.ended.wait()
    server.close()  # a new client waits for the next front, if there is one
    await clients.end(_LAST_ANSWERS_S)


def main() -> None:
    """Serve with what the command line names."""
    *numbers, parent, urgency = map(int, sys.argv[1:-2])
    level, form = sys.argv[-2:]
    logging.configure(level, cast("logging.Format", form))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with(parent)
    go_first(urgency)
    opened = Sockets(*(socket.socket(fileno=number) for number in numbers))
    for each in (opened.listener, opened.control, opened.doors):
        each.setblocking(False)
    uvloop.run(serve(opened))


if __name__ == "__main__":
    main()
