"""Connections of one port: how many there may be, and which one ends when there are too many.

A connection counts from the moment it is accepted, before its TLS handshake is over. When there is
no room for another one, a connection ends on which no request is being answered. Where more than a
quarter of all have asked nothing yet, it is the oldest of these; else it is the one that has been
idle longest since its last answer. So neither kind can take all the room of the other. Where
requests are being answered on all of them, the new connection is closed.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from app.main.serving.bounded import Bounded

log = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0

AGAIN_S: Final = 0.5
"""Until connections are accepted again when the system had no room for another one."""

_SHARE_OF_NEW: Final = 4
"""One of so many connections may be one that has asked nothing yet."""

_AT_ONCE: Final = 64
"""Connections accepted in one turn of the loop."""


@dataclass(frozen=True, slots=True)
class _Arriving:
    """A connection that is accepted and not established yet."""

    protocol: Bounded
    socket: socket.socket
    has_asked: bool = False

    @property
    def since(self) -> float:
        """When the connection was accepted."""
        return self.protocol.since

    def end(self) -> None:
        """End the connection.

        Not by a cancellation of the task: that leaves the socket open in some of its states.
        """
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Connections:
    """Connections of one port: ``established`` are the server's; there may be ``most`` in all."""

    def __init__(self, established: Collection[Bounded], *, most: int) -> None:
        self._established = established
        self._most = most
        self._arriving: dict[asyncio.Task[object], _Arriving] = {}

    def make_room(self) -> bool:
        """Whether there is room for one more, once another one may have ended for it."""
        if len(self._arriving) + len(self._established) < self._most:
            return True
        for task, each in list(self._arriving.items()):
            if each.protocol.is_established:  # its task is about to end
                self._arriving.pop(task)
        if len(self._arriving) + len(self._established) < self._most:
            return True
        can_end: list[_Arriving | Bounded] = [*self._arriving.values()]
        can_end += (each for each in self._established if not each.is_waited_for)
        new = [each for each in can_end if not each.has_asked]
        many = len(new) * _SHARE_OF_NEW > self._most
        found = min(can_end, key=lambda it: (it.has_asked is many, it.since), default=None)
        if found is None:
            return False
        found.end()
        if isinstance(found, _Arriving):
            self._arriving = {
                task: each for task, each in self._arriving.items() if each is not found
            }
        return True

    def arrive(
        self,
        connection: socket.socket,
        protocol: Bounded,
        context: ssl.SSLContext | None,
    ) -> None:
        """Serve a connection that was just accepted, after the handshake where there is one."""
        loop = asyncio.get_running_loop()
        task: asyncio.Task[object] = loop.create_task(
            loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_S,
            )
        )

        def over(_task: asyncio.Task[object]) -> None:
            self._arriving.pop(task, None)
            if task.cancelled() or task.exception() is not None:
                connection.close()

        self._arriving[task] = _Arriving(protocol, connection)
        task.add_done_callback(over)

    def end_overdue(self) -> None:
        """End those whose clients had time enough."""
        now = asyncio.get_running_loop().time()
        for each in list(self._established):
            if each.is_overdue(now):
                each.end()

    def end_arriving(self) -> None:
        """End those that are not established yet."""
        for each in list(self._arriving.values()):
            each.end()


class Acceptor:
    """Accepts connections at ``listener`` until it is closed."""

    def __init__(self, listener: socket.socket, accepted: Callable[[socket.socket], None]) -> None:
        self._listener = listener
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._listen()

    def close(self) -> None:
        """Accept no more."""
        self._is_open = False
        self._loop.remove_reader(self._listener)

    def _listen(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no connection accepted", extra={"why": str(error)})
                self._loop.remove_reader(self._listener)
                self._loop.call_later(AGAIN_S, self._listen)
                return
            connection.setblocking(False)
            self._accepted(connection)
