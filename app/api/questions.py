"""What keeps a question about the planner, or about decisions, from its answer, over HTTP."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from app.api.body import BadRequest
from app.api.imagined import CannotImagine
from app.cache.gangs.imagined import UnknownResource
from app.kit.turns import TooMany
from app.model.viewer import Viewer
from app.service.cycle.simulations import UnknownNode
from app.service.ports import TakesTooLong

MOST_OF_TENANT: Final = 4
"""Questions to the planner about one namespace that its tenants may have under way at a time."""
MOST_IN_TURN: Final = 32
"""As many of those that are answered in one go, one after the other."""
SHARE: Final = 10
"""After one of these the event loop is left to others so many times as long as it took."""


class Questions:
    """The questions of tenants that are under way, which leave room for those of others."""

    def __init__(self) -> None:
        self._under_way: Counter[tuple[str, int]] = Counter()
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._due: dict[str, float] = {}
        """When the next one may be answered in one go, by the clock of the loop."""

    @contextmanager
    def of(self, viewer: Viewer, *, most: int = MOST_OF_TENANT) -> Iterator[None]:
        """Inside, a question of the reader is answered; `BadRequest` 429 if it is one too many."""
        namespace = viewer.namespace
        if namespace is None:
            yield
            return
        if self._under_way[namespace, most] >= most:
            why = f"{most} questions about namespace {namespace} are being answered"
            raise BadRequest(f"{why}; ask again later", status=429)
        self._under_way[namespace, most] += 1
        try:
            yield
        finally:
            self._under_way[namespace, most] -= 1

    @asynccontextmanager
    async def in_turn(self, viewer: Viewer) -> AsyncIterator[None]:
        """Inside, a question of the reader is answered in one go; `BadRequest` as for `of`."""
        namespace = viewer.namespace
        if namespace is None:
            yield
            return
        loop = asyncio.get_running_loop()
        with self.of(viewer, most=MOST_IN_TURN):
            async with self._turn[namespace]:
                await asyncio.sleep(max(self._due.get(namespace, 0.0) - loop.time(), 0.0))
                began = loop.time()
                try:
                    yield
                finally:
                    now = loop.time()
                    self._due[namespace] = now + SHARE * (now - began)


@contextmanager
def refusing() -> Iterator[None]:
    """Inside, what a question fails by is a `BadRequest`, with the status that belongs to it."""
    try:
        yield
    except CannotImagine as error:
        raise BadRequest(str(error), status=error.status) from None
    except UnknownResource as error:
        raise BadRequest(f"{error}: a pod that asks for it never runs", status=404) from None
    except UnknownNode as error:
        raise BadRequest(f"drain: {error}", status=404) from None
    except TooMany as error:
        raise BadRequest(str(error), status=429) from None
    except TakesTooLong as error:
        raise BadRequest(str(error), status=503) from None
