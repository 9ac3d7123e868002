"""All connections of clients, and no more of them than there may be.

When there is no room for another one, some end on which no call is awaited. Where more than a
quarter of all have asked nothing yet, they are the oldest of these; else they are those that have
been idle longest. Several end at once, as looking for them takes time that Filter calls wait for.
Where all wait for answers, the new connection ends.

Where unfinished calls take too much memory together, the connection ends whose call began first.
"""

import asyncio
import resource
from contextlib import suppress
from heapq import nsmallest
from typing import Final

from app.front.connection import Client, Extender, GiveAway
from app.kit.holdings import Holdings

MOST: Final = 10_000
"""Each member of a gang holds one until the last has come to Bind."""

BODIES: Final = 2**26
"""Bytes of unfinished calls that are kept in all; those of kube-scheduler come in one moment."""

ENDED_AT_ONCE: Final = 64

_SHARE_OF_NEW: Final = 4
"""One of so many connections may be one that has asked nothing yet."""

_KEPT: Final = 64
"""Descriptors for all that is no connection of a client."""


def most() -> int:
    """How many connections there may be in this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(MOST, max(soft - _KEPT, _KEPT))


class Clients:
    """The connections of clients, ``limit`` at most."""

    def __init__(self, extender: Extender, *, give_away: GiveAway, limit: int = MOST) -> None:
        self._limit = limit
        self._extender = extender
        self._give_away = give_away
        self._connected: set[Client] = set()
        self._unfinished: Holdings[Client] = Holdings(most=BODIES)
        self._nobody = asyncio.Event()
        self._nobody.set()

    def connect(self) -> Client:
        """One more."""
        client = Client(
            self._extender, give_away=self._give_away, holds=self._holds, over=self._over
        )
        if not self._make_room():
            client.end()
        self._connected.add(client)
        self._nobody.clear()
        return client

    def _make_room(self) -> bool:
        """Whether there is room for one more, once others may have ended for it."""
        if len(self._connected) < self._limit:
            return True
        can_end = [each for each in self._connected if each.can_end]
        new = sum(not each.has_asked for each in can_end)
        many = new * _SHARE_OF_NEW > self._limit
        count = min(ENDED_AT_ONCE, -(-self._limit // (2 * _SHARE_OF_NEW)))
        ended = nsmallest(count, can_end, key=lambda it: (it.has_asked is many, it.since))
        for each in ended:
            each.end_now()
            self._connected.discard(each)
        return bool(ended)

    def _holds(self, client: Client, size: int) -> None:
        self._unfinished.hold(client, size)
        while self._unfinished.is_too_much:
            late = next((each for each in self._unfinished if each.can_end), client)
            self._unfinished.hold(late, 0)
            late.end_now()

    def _over(self, client: Client) -> None:
        self._connected.discard(client)
        self._unfinished.hold(client, 0)
        if not self._connected:
            self._nobody.set()

    def end_idle(self) -> None:
        """End connections that are not used any more."""
        for each in list(self._connected):
            each.end_if_idle()

    def end_soon(self) -> None:
        """End each, after the answer if one is awaited."""
        for each in list(self._connected):
            each.end_soon()

    async def end(self, within_s: float) -> None:
        """End all; return when they have what there is for them, at the latest then."""
        for each in list(self._connected):
            each.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._nobody.wait()
