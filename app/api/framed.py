"""kube-scheduler's calls where a front hands them on: frames instead of requests.

A connection, a parser and a server's work for each of them would cost as much as the calls do.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus

from app.api.body import BadRequest, line
from app.api.extender import Call
from app.wire.front import Frame, Kind
from app.wire.paths import VERBS

log = logging.getLogger(__name__)


class Framed:
    """The calls that are under way for one front; ``send`` takes what it is told."""

    def __init__(self, calls: Mapping[str, Call], *, send: Callable[[bytes], None]) -> None:
        self._calls = [calls[verb] for verb in VERBS]
        self._send = send
        self._gone: dict[int, asyncio.Event] = {}
        """Of each, by its number: set when nobody waits for the answer."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, frame: Frame) -> None:
        """Answer that call."""
        self._gone[frame.number] = gone = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._serve(frame, gone))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def give_up(self, number: int) -> None:
        """Nobody waits for that one any more."""
        gone = self._gone.get(number)
        if gone is not None:
            gone.set()

    def give_up_all(self) -> None:
        """Nobody waits for any."""
        for gone in self._gone.values():
            gone.set()

    async def finish(self, within_s: float) -> None:
        """Return when all are answered, at the latest after so many seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)

    async def _serve(self, frame: Frame, gone: asyncio.Event) -> None:
        try:
            status, said = await self._answer(frame, gone)
        finally:
            del self._gone[frame.number]
        self._send(Frame(Kind.ANSWER, said, frame.number, status).encode())

    async def _answer(self, frame: Frame, gone: asyncio.Event) -> tuple[int, bytes]:
        try:
            return HTTPStatus.OK, await self._calls[frame.detail](frame.body, gone.wait)
        except BadRequest as error:
            return error.status, line(str(error))
        except Exception:
            log.exception("a call failed", extra={"verb": VERBS[frame.detail]})
            failed = HTTPStatus.INTERNAL_SERVER_ERROR
            return failed, line(failed.phrase)
