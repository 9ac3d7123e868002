"""Authorization headers for the event loop: fetched in a thread, kept for a short while.

Fetching may run an exec plugin, so it never happens on the loop; while one caller fetches, the
others wait for the same answer. A 401 makes the next call fetch again, unless that was done since.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from app.kube.errors import ConfigError, Unauthorized
from app.kube.limiter import Clock
from app.kube.login import HEADER, Headers

KEEP_S: Final = 20.0
"""Shorter than the minute by which a service-account token is read from its file again."""


class Credentials:
    """The headers that prove who we are."""

    def __init__(
        self,
        fetch: Callable[[], Headers],
        *,
        clock: Clock,
        refused: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._fetch = fetch
        self._tell_refused = refused
        self._clock = clock
        self._headers: Mapping[str, str] = {}
        self._fresh_until = clock()
        self._fetching = asyncio.Lock()

    def refused(self, sent: Mapping[str, str]) -> None:
        """A 401 answered these: have the next call fetch them anew, if they still are the same."""
        self._tell_refused(sent)
        if sent.get(HEADER) == self._headers.get(HEADER):
            self._fresh_until = self._clock()

    async def current(self) -> Mapping[str, str]:
        """Headers that were fetched a short while ago at most; raises `Unauthorized`."""
        if self._clock() < self._fresh_until:
            return self._headers
        async with self._fetching:
            if self._clock() >= self._fresh_until:
                try:
                    self._headers = await asyncio.to_thread(self._fetch)
                except ConfigError as error:
                    raise Unauthorized(str(error)) from error
                self._fresh_until = self._clock() + KEEP_S
        return self._headers
