"""kube-scheduler's calls where a front hands them on: frames instead of requests.

A connection, a parser and a server's work for each of them would cost as much as the calls do.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from app.api.body import BadRequest, line
from app.api.extender import Call
from app.wire.front import Frame, MessageType
from app.wire.paths import VERBS

log = logging.getLogger(__name__)


class _UnderWay(NamedTuple):
    """A call under way: ``gone`` is set when its caller has stopped waiting for the answer."""

    task: asyncio.Task[None]
    gone: asyncio.Event


class Framed:
    """The calls that are under way for one front; ``send`` takes what it is told."""

    def __init__(self, calls: Mapping[str, Call], *, send: Callable[[bytes], None]) -> None:
        self._calls = [calls[verb] for verb in VERBS]
        self._send = send
        self._under_way: dict[int, _UnderWay] = {}
        """By the number of the call."""

    def begin(self, frame: Frame) -> None:
        """Answer that call."""
        gone = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._serve(frame, gone))
        self._under_way[frame.number] = _UnderWay(task, gone)

    def give_up(self, number: int) -> None:
        """The caller has stopped waiting for the answer to call ``number``."""
        call = self._under_way.get(number)
        if call is not None:
            call.gone.set()

    def give_up_all(self) -> None:
        """The callers have stopped waiting for all answers."""
        for call in self._under_way.values():
            call.gone.set()

    async def finish(self, within_s: float) -> None:
        """Return when all are answered, at the latest after so many seconds."""
        tasks = [call.task for call in self._under_way.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)

    async def _serve(self, frame: Frame, gone: asyncio.Event) -> None:
        try:
            status, said = await self._answer(frame, gone)
        finally:
            del self._under_way[frame.number]
        self._send(Frame(MessageType.ANSWER, said, frame.number, status).encode())

    async def _answer(self, frame: Frame, gone: asyncio.Event) -> tuple[int, bytes]:
        try:
            return HTTPStatus.OK, await self._calls[frame.detail](frame.body, gone.wait)
        except BadRequest as error:
            return error.status, line(str(error))
        except Exception:
            log.exception("a call failed", extra={"verb": VERBS[frame.detail]})
            failed = HTTPStatus.INTERNAL_SERVER_ERROR
            return failed, line(failed.phrase)
