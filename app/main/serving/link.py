"""What an extender and its front tell each other, as the extender has it.

An answer may take a place away from a pod that the front knows it of, and kube-scheduler may come
for that one as soon as it has the answer: so changes go ahead of the answer that they come from.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final, cast

from app.api.extender import Call
from app.api.framed import Framed
from app.front import doors
from app.service.calls.front_reservations import FrontReservations
from app.wire.front import Frames, MessageType, Told, change_frame, decode_told

log = logging.getLogger(__name__)

_TAKEN_AT_ONCE: Final = 64


class Link(asyncio.Protocol):
    """What one front and we tell each other; ``entrance`` is where connections come from."""

    def __init__(
        self,
        entrance: socket.socket,
        *,
        places: FrontReservations,
        calls: Mapping[str, Call],
        adopt: Callable[[socket.socket, bytes], None],
        told: Callable[[Told], None],
    ) -> None:
        self.ended = asyncio.Event()
        self.framed = Framed(calls, send=self._answer)
        self._entrance: socket.socket | None = entrance
        self._places = places
        self._adopt = adopt
        self._told = told
        self._is_due = False
        """Whether there may be other places than it was told."""
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The front listens."""
        self._transport = cast("asyncio.Transport", transport)
        if self._entrance is not None:
            self._places.take()  # all that is so is told at once, and from then on what changes
            self._say(change_frame(self._places.known()))
            asyncio.get_running_loop().add_reader(self._entrance, self._come_in)

    def data_received(self, data: bytes) -> None:
        """The front answered calls, or hands some on."""
        for frame in self._frames.feed(data):
            match frame.kind:
                case MessageType.TOLD:
                    self._told(decode_told(frame.body))
                case MessageType.CALL:
                    self.framed.begin(frame)
                case MessageType.GONE:
                    self.framed.give_up(frame.number)

    def connection_lost(self, _error: Exception | None) -> None:
        """The front is gone, and with it all connections that waited for answers."""
        self._transport = None
        self.framed.give_up_all()
        self.close_doors()
        self.ended.set()

    def news(self) -> None:
        """There may be other places: it is told in the loop's next turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(lambda: self._say(self._changes()))

    def close(self) -> None:
        """Let the front end."""
        self.close_doors()
        if self._transport is not None:
            self._transport.close()

    def close_doors(self) -> None:
        """Take no more connections."""
        entrance, self._entrance = self._entrance, None
        if entrance is not None:
            asyncio.get_running_loop().remove_reader(entrance)
            entrance.close()

    def _answer(self, frame: bytes) -> None:
        self._say(self._changes() + frame)

    def _changes(self) -> bytes:
        """The places that the front was not told so far, if it is to answer with them."""
        if not self._is_due:
            return b""
        self._is_due = False
        change = self._places.take()
        return b"" if change is None or self._entrance is None else change_frame(change)

    def _say(self, frames: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frames)

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
