"""A server that does nothing: what a client waits on this machine whoever it asks.

Run as `python -m tests.bench.bare`: prints its port, answers every request with one node at once,
and ends with SIGTERM. It is as urgent as the extender: asked beside it, it tells how much of a
client's time is the machine's (a core to run on, for any server) and not the extender's.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import cast

import uvloop

from app.main.urgency import be_urgent
from app.settings.extender import ExtenderSettings

_BODY = b'{"NodeNames":["bare"]}'
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


class _Connection(asyncio.Protocol):
    """One client, whose requests come one at a time and each end with a brace."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self._transport.write(_ANSWER)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(_Connection, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await ended.wait()


if __name__ == "__main__":
    be_urgent(ExtenderSettings.model_fields["urgency"].default)
    uvloop.run(_serve())
