"""Events that are not written again go after an hour, as with kube-apiserver's ``--event-ttl``.

In a cluster that stands for days, with a CronJob in it, they would fill the memory otherwise.
"""

from __future__ import annotations

from app.sandbox.apiserver.store import Store
from app.sandbox.clock import Clock
from app.wire.documents import ObjectName, name_of

KEPT_S = 3600.0
PERIOD_S = 300.0
_EVENTS = "/events"


class OldEvents:
    """Looks every five minutes for events that are still as they were an hour ago."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[ObjectName, tuple[str, float]] = {}
        """The version of each, and since when it is known to have that."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._look()
            await self._clock.sleep(PERIOD_S)

    def _look(self) -> None:
        now, before = self._clock.now(), self._seen
        self._seen = {}
        for event in list(self._store.values(_EVENTS)):
            name, version = name_of(event), str(event["metadata"]["resourceVersion"])
            known, since = before.get(name, ("", now))
            self._seen[name] = (version, since if known == version else now)
        for name, (_, since) in self._seen.items():
            if now - since >= KEPT_S:
                self._store.remove(_EVENTS, name)
