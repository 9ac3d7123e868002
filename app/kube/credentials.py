"""Authorization headers for the event loop: fetched in a thread, kept for a short while.

Fetching may run an exec plugin, so it never happens on the loop; while it goes on, all callers wait
for the same answer, and for so long at most. A 401 makes the next call fetch again, unless that was
done since. A process that ends does not wait for the thread, as a plugin may hang.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from app.kube.errors import ConfigError, Unauthorized
from app.kube.limiter import Clock
from app.kube.login import HEADER, Headers

KEEP_S: Final = 20.0
"""Shorter than the minute by which a service-account token is read from its file again."""
PATIENCE_S: Final = 30.0
"""A plugin that takes longer for an answer may never give one."""

_Fetched = Headers | Exception


class Credentials:
    """The headers that carry our credentials."""

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
        self._fetching: asyncio.Future[_Fetched] | None = None

    def refused(self, sent: Mapping[str, str]) -> None:
        """A 401 answered ``sent``: have the next call fetch them anew, if they are the same."""
        self._tell_refused(sent)
        if sent.get(HEADER) == self._headers.get(HEADER):
            self._fresh_until = self._clock()

    async def current(self) -> Mapping[str, str]:
        """Headers that were fetched a short while ago at most; raises `Unauthorized`."""
        if self._clock() < self._fresh_until:
            return self._headers
        if self._fetching is None:
            self._fetching = self._begin()
        done, _ = await asyncio.wait({self._fetching}, timeout=PATIENCE_S)
        if not done:
            raise Unauthorized(f"no credentials within {PATIENCE_S:.0f} s")
        match done.pop().result():
            case ConfigError() as error:
                raise Unauthorized(str(error)) from error
            case Exception() as error:
                raise error
            case headers:
                return headers

    def _begin(self) -> asyncio.Future[_Fetched]:
        loop = asyncio.get_running_loop()
        fetching: asyncio.Future[_Fetched] = loop.create_future()

        def fetch() -> None:
            try:
                found: _Fetched = self._fetch()
            except Exception as error:  # for the callers that wait
                found = error
            with suppress(RuntimeError):  # the loop is closed: no caller waits any more
                loop.call_soon_threadsafe(self._end, fetching, found)

        threading.Thread(target=fetch, name="credentials", daemon=True).start()
        return fetching

    def _end(self, fetching: asyncio.Future[_Fetched], found: _Fetched) -> None:
        self._fetching = None
        if not isinstance(found, Exception):
            self._headers = found
            self._fresh_until = self._clock() + KEEP_S
        fetching.set_result(found)
