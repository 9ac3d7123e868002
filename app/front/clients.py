"""All connections of clients."""

import asyncio
from contextlib import suppress

from app.front.connection import Client, Extender, GiveAway


class Clients:
    """Those that there are."""

    def __init__(self, extender: Extender, *, give_away: GiveAway) -> None:
        self._extender = extender
        self._give_away = give_away
        self._connected: set[Client] = set()
        self._nobody = asyncio.Event()
        self._nobody.set()

    def connect(self) -> Client:
        """One more."""
        client = Client(self._extender, give_away=self._give_away, over=self._over)
        self._connected.add(client)
        self._nobody.clear()
        return client

    def _over(self, client: Client) -> None:
        self._connected.discard(client)
        if not self._connected:
            self._nobody.set()

    def end_idle(self) -> None:
        """End those that nobody uses any more."""
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
