"""The extender's slots over HTTP; a missing extender is an answer, not an error."""

from types import TracebackType
from typing import Self

import aiohttp
import msgspec

from app.controllers.job.slots import Slots

_TIMEOUT_S = 2.0
_TRIES = 4


class _Answer(msgspec.Struct):
    generation: int
    slots: dict[str, list[str]]
    bearable: dict[str, int] | None = None


_decode = msgspec.json.Decoder(_Answer).decode


class SlotClient:
    """``GET /plan/{namespace}/{podgroup}``; an async context manager. No ``url``: no extender."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        if self._url:
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
            self._session = aiohttp.ClientSession(timeout=timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """The slots of one PodGroup; None when the extender cannot be asked."""
        for _ in range(_TRIES if self._session is not None else 0):
            try:
                found = await self._ask(f"{self._url}/plan/{namespace}/{podgroup}")
            except (TimeoutError, aiohttp.ClientError, msgspec.DecodeError):
                return None
            if found is not None:
                return found
        return None

    async def _ask(self, url: str) -> Slots | None:
        """One answer; None from a replica that does not lead (behind a Service one of them is)."""
        assert self._session is not None
        async with self._session.get(url) as answer:
            if answer.status == 404:
                return Slots(0, {})
            if answer.status != 200:
                answer.close()
                return None
            told = _decode(await answer.read())
        nodes = {role: tuple(places) for role, places in told.slots.items()}
        return Slots(told.generation, nodes, told.bearable)
