"""Calls of the HTTP extender: counted, timed, and none for a while where the last ones failed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from app.kit.workqueue import Backoff
from app.model.http_extender import HttpExtenderConf, Verb
from app.service.ports import Clock, HttpExtender, HttpExtenderError
from app.telemetry import metrics
from app.wire.errors import DecodeError

T = TypeVar("T")

PAUSES: Final = Backoff(base_s=1.0, max_s=30.0)


@dataclass(frozen=True, slots=True)
class Failing:
    """A verb that is not called before ``until`` (seconds since the epoch)."""

    why: str
    failures: int
    until: float


class Calls:
    """One server; a verb that fails pauses by itself."""

    def __init__(self, server: HttpExtender, *, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self.failing: dict[Verb, Failing] = {}

    def begin_anew(self) -> None:
        """Another server is asked, or the same in another way."""
        self.failing.clear()

    def pauses_until(self, verb: Verb) -> float:
        """When the verb may be called again; 0: now."""
        failing = self.failing.get(verb)
        return failing.until if failing is not None and failing.until > self._clock() else 0.0

    async def ask(
        self, conf: HttpExtenderConf, verb: Verb, body: bytes, read: Callable[[bytes], T]
    ) -> T:
        """What ``read`` makes of the answer; raises HttpExtenderError.

        A verb that pauses is not called: the error is the last one.
        """
        if self.pauses_until(verb):
            raise HttpExtenderError(self.failing[verb].why)
        began = self._clock()
        try:
            answer = await self._server.ask(conf.address(verb), body, timeout_s=conf.timeout_s)
            found = read(answer)
        except (HttpExtenderError, DecodeError) as error:
            self._note(conf, verb, str(error))
            raise HttpExtenderError(str(error)) from error
        finally:
            metrics.HTTP_EXTENDER_SECONDS.labels(verb).observe(max(self._clock() - began, 0.0))
        self.failing.pop(verb, None)
        metrics.HTTP_EXTENDER_CALLS.labels(verb, "answered").inc()
        return found

    async def manifest_of(self, namespace: str, name: str) -> bytes | None:
        """The pod as stored; None where that is not known."""
        return await self._server.read_manifest(namespace, name)

    def _note(self, conf: HttpExtenderConf, verb: Verb, why: str) -> None:
        """Several calls that fail at the same time are one failure."""
        metrics.HTTP_EXTENDER_CALLS.labels(verb, "ignored" if conf.ignorable else "failed").inc()
        before = self.failing.get(verb)
        if before is not None and before.until > self._clock():
            return
        failures = 1 if before is None else before.failures + 1
        self.failing[verb] = Failing(why, failures, self._clock() + PAUSES.pause(failures))
