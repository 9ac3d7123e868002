"""Looking at objects again whenever one of them changed, as a controller does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.store import Store, StoreChange

logger = logging.getLogger(__name__)


class Relooking:
    """Calls ``look`` at first, and after changes that ``concern`` it.

    ``kept`` is what it keeps up.
    """

    def __init__(
        self,
        store: Store,
        *,
        concern: Callable[[StoreChange], bool],
        look: Callable[[], None],
        kept: str,
    ) -> None:
        self._concern, self._look, self._kept = concern, look, kept
        self._changed = asyncio.Event()
        store.on_change(self._note)

    async def run(self) -> None:
        """Look until cancelled."""
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                self._look()
            except ApiError as error:  # it changed meanwhile, and is looked at again
                logger.info("%s not kept up", self._kept, extra={"error": str(error)})

    def _note(self, change: StoreChange) -> None:
        if self._concern(change):
            self._changed.set()
