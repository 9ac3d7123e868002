"""Answers that leave in one write.

uvicorn writes the head of an answer and then its body, and uvloop sends either at once. That wakes
the client twice for one answer; kube-scheduler, whose loop stands still until Filter is answered,
falls asleep again in between. On a busy machine this costs every process more than the answer does.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_END_OF_HEAD = b"\r\n\r\n"


class OneWrite(HttpToolsProtocol):
    """uvicorn's protocol over a transport that sends a head together with what follows it."""

    def connection_made(  # type: ignore[override]  # as in the class above
        self, transport: asyncio.Transport
    ) -> None:
        """Serve a new connection."""
        super().connection_made(_HeadWithBody(transport, self.loop))


class _HeadWithBody(asyncio.Transport):
    """``inner``, where a head waits for the next write, and at most for the loop's next turn."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._head = b""

    def write(self, data: Any) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._inner.writelines((head, data))
        elif data.endswith(_END_OF_HEAD):
            self._head = data
            self._loop.call_soon(self._send_head)
        else:
            self._inner.write(data)

    def close(self) -> None:
        self._send_head()
        self._inner.close()

    def abort(self) -> None:
        self._head = b""
        self._inner.abort()

    def _send_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._inner.write(head)

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()
