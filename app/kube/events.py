"""Events for the user, the same fact counted instead of repeated.

The first occurrence creates an event, later ones raise its ``count``. Remembered are the most
recent facts only; what fell out of memory, or expired in the API server, starts an event anew.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.kube import bodies, paths
from app.kube.bodies import EventFact, ObjectRef
from app.kube.client import ApiClient
from app.kube.errors import NotFound
from app.model.names import LONGEST_SUBDOMAIN

REMEMBERED: Final = 4096


@dataclass(slots=True)
class _Written:
    name: str
    count: int


class EventRecorder:
    """Writes events in the name of ``component``."""

    def __init__(
        self,
        client: ApiClient,
        *,
        component: str,
        now: Callable[[], datetime],
        suffix: Callable[[], str],
    ) -> None:
        self._client = client
        self._component = component
        self._now = now
        self._suffix = suffix
        """Makes names unique among the events of one object, across restarts."""
        self._written: OrderedDict[EventFact, _Written] = OrderedDict()

    async def record(self, fact: EventFact) -> None:
        """Tell the user, or tell again."""
        known = self._written.get(fact)
        if known is not None:
            try:
                await self._count(fact, known)
                return
            except NotFound:
                self._written.pop(fact, None)
        await self._create(fact)

    async def _count(self, fact: EventFact, known: _Written) -> None:
        self._written.move_to_end(fact)
        known.count += 1
        await self._client.patch(
            paths.event(fact.about.event_namespace, known.name),
            bodies.event_again(count=known.count, at=self._now()),
        )

    async def _create(self, fact: EventFact) -> None:
        name = self._name_about(fact.about)
        body = bodies.event(fact, name=name, component=self._component, at=self._now())
        await self._client.create(paths.events(fact.about.event_namespace), body)
        self._written[fact] = _Written(name=name, count=1)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _name_about(self, about: ObjectRef) -> str:
        suffix = self._suffix()
        name = f"{about.name}.{suffix}"
        # Objects may have names as long as the API server takes for the event.
        return name if len(name) <= LONGEST_SUBDOMAIN else suffix
