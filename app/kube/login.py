"""Our credentials by a bearer token or a certificate, which may be replaced at any time.

They are asked for again when they were kept long enough, and after the API server refused them.
Asking may run a plugin, so one thread asks while the others wait for its answer. Saying that the
credentials were refused, which the event loop does, waits for no thread.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kubernetes.config import ConfigException

from app.kube.errors import ConfigError
from app.kube.limiter import Clock
from app.kube.unusable import why

Headers = dict[str, str]

HEADER: Final = "authorization"
REST_S: Final = 5.0
"""How long what was refused is kept when there is nothing else: asking for it at every 401 would
run as many plugins as there are requests."""


class Certificate(NamedTuple):
    """A client certificate with its key, both as PEM."""

    text: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A token, a certificate, or both, and how long they may be kept."""

    token: str = ""
    certificate: Certificate | None = None
    keep_s: float = math.inf


class Login:
    """What was given last; for any thread."""

    def __init__(
        self, ask: Callable[[], Given], *, first: Given, clock: Clock = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._given = first
        self._refused: str | None = None
        self._rest_until = -math.inf
        self._keep_until = clock() + first.keep_s

    @property
    def certificate(self) -> Certificate | None:
        """The client certificate, where there is one; asks for nothing."""
        return self._given.certificate

    def headers(self) -> Headers:
        """The header, if the login has one; may ask anew first, raises `ConfigError` in vain."""
        with self._lock:
            if self._clock() >= self._ask_at():
                self._take(self._asked())
            value = self._value
            return {HEADER: value} if value else {}

    def refused(self, headers: Mapping[str, str]) -> None:
        """The API server answered 401 to these headers."""
        self._refused = headers.get(HEADER, "")

    @property
    def _value(self) -> str:
        return f"Bearer {self._given.token}" if self._given.token else ""

    def _ask_at(self) -> float:
        if self._refused == self._value:
            return min(self._keep_until, self._rest_until)
        return self._keep_until

    def _asked(self) -> Given:
        try:
            return self._ask()
        except (ConfigException, OSError, ValueError) as error:
            raise ConfigError(f"the credentials cannot be renewed: {why(error)}") from error

    def _take(self, given: Given) -> None:
        now = self._clock()
        before, self._given = self._given, given
        is_same = (before.token, before.certificate) == (given.token, given.certificate)
        self._keep_until = now + given.keep_s
        self._rest_until = now + REST_S if is_same else now
        # Headers do not tell certificates apart: a 401 from now on is about this one.
        self._refused = None
