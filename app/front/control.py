"""The extender as the front sees it: it tells places, and answers the calls that are handed on."""

import asyncio
from typing import Final, Protocol, cast

from app.front.places import Places
from app.wire.front import Frame, Frames, MessageType, Told, decode_change, told_frame

TOLD_S: Final = 0.02
"""How long an answer may wait until the extender is told of it, unless something else is said.

As a rule the pod's Bind call comes before that. An answer told alone would wake the extender once
more.
"""


class Asker(Protocol):
    """What waits for an answer of the extender."""

    def answered(self, status: int, body: bytes) -> None:
        """Take the answer."""


class Control(asyncio.Protocol):
    """What both tell each other; ``ended`` is set when there is no extender any more."""

    def __init__(self) -> None:
        self.places = Places(self._tell)
        self.ended = asyncio.Event()
        self._frames = Frames()
        self._unsent = bytearray()
        self._is_due = False
        """Whether that is sent soon in any case."""
        self._askers: dict[int, Asker] = {}
        self._last = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The extender's connection is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Places changed, or calls are answered."""
        for frame in self._frames.feed(data):
            match frame.kind:
                case MessageType.ANSWER:
                    asker = self._askers.pop(frame.number, None)
                    if asker is not None:
                        asker.answered(frame.detail, frame.body)
                case MessageType.CHANGE:
                    self.places.learn(decode_change(frame.body))

    def connection_lost(self, _error: Exception | None) -> None:
        """The extender's connection is gone."""
        self.ended.set()
        self.places.forget()

    def ask(self, asker: Asker, verb: int, body: bytes) -> int:
        """Hand a call on for ``asker``; returns its number."""
        self._last += 1
        self._askers[self._last] = asker
        self._send(Frame(MessageType.CALL, body, self._last, verb).encode())
        return self._last

    def give_up(self, number: int) -> None:
        """The caller has stopped waiting for the answer to call ``number``."""
        if self._askers.pop(number, None) is not None:
            self._send(Frame(MessageType.GONE, number=number).encode())

    def _tell(self, told: Told) -> None:
        self._unsent += told_frame(told)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(TOLD_S, self._send_told)

    def _send_told(self) -> None:
        self._is_due = False
        self._send(b"")

    def _send(self, frame: bytes) -> None:
        """Send the frame, behind all that was told before."""
        frames = bytes(self._unsent) + frame
        self._unsent.clear()
        if frames and not self.ended.is_set():
            self._transport.write(frames)
