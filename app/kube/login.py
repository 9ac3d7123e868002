"""Who we are by a bearer token, which whoever gave it may replace at any time.

It is asked for again when it was kept long enough, and after the API server refused it. Asking may
run a plugin, so one thread asks while the others wait for its answer; saying that a token was
refused, which the event loop does, waits for nobody.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubernetes.config import ConfigException

from app.kube.errors import ConfigError
from app.kube.limiter import Clock

Headers = dict[str, str]

HEADER: Final = "authorization"
REST_S: Final = 5.0
"""How long a refused token is kept when there is no other: asking for one at every 401 would run
as many plugins as there are requests."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and how long it may be kept."""

    text: str
    keep_s: float


class Login:
    """The header with the token of now; for any thread."""

    def __init__(
        self, ask: Callable[[], Token], *, first: Token, clock: Clock = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._refused = ""
        self._take(first)

    def headers(self) -> Headers:
        """The header; may ask for a token first, and raises `ConfigError` when there is none."""
        with self._lock:
            if self._clock() >= self._ask_at():
                self._take(self._asked())
            return {HEADER: self._value}

    def refused(self, headers: Mapping[str, str]) -> None:
        """The API server answered 401 to these headers."""
        self._refused = headers.get(HEADER, "")

    def _ask_at(self) -> float:
        if self._refused == self._value:
            return min(self._keep_until, self._rest_until)
        return self._keep_until

    def _asked(self) -> Token:
        try:
            return self._ask()
        except (ConfigException, OSError, ValueError) as error:
            raise ConfigError(f"the credentials cannot be renewed: {error}") from error

    def _take(self, token: Token) -> None:
        now = self._clock()
        self._value = f"Bearer {token.text}"
        self._keep_until = now + token.keep_s
        self._rest_until = now + REST_S if self._value == self._refused else now
