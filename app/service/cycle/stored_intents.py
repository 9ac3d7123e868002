"""Asks once, when this replica begins to lead, which eviction plans are under way."""

import logging
from dataclasses import dataclass

from app.service.cycle.evictions import Evictions
from app.service.cycle.leadership import Leadership
from app.service.ports import Clock, IntentStore, Reaction, WriteError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StoredIntents:
    """Until intents are known nothing may be planned."""

    evictions: Evictions
    store: IntentStore
    leadership: Leadership
    clock: Clock

    async def are_taken_up(self) -> bool:
        """Whether this replica knows them, or need not."""
        if self.evictions.loaded or not self.leadership.leads:
            return True
        try:
            stored = await self.store.list_intents()
        except WriteError as error:
            if error.reaction is not Reaction.REFUSED:
                log.warning("intents of evictions not listed", extra={"error": str(error)})
                return False
            # Then none can be stored either, and so no pod be evicted.
            log.error("intents of evictions may not be listed", extra={"error": str(error)})
            stored = {}
        if self.leadership.leads and not self.evictions.loaded:
            self.evictions.take_up(stored, now=self.clock())
        return True
