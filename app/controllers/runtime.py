"""Reconciling by key: changes in, keys to look at, one worker per key at a time.

A controller says which kinds it follows, which keys a change concerns, and what to do for a key;
what it does must bring the world nearer to what is wanted however often and late it is done, and
read what it needs from the stores when its turn comes.

Only the holder of the Lease works. The other processes keep their stores up to date, but no list of
what has changed: a process that begins to work, or does so again, looks at all there is, as after
its start. What was being worked on or put off when the work ended is among that.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Protocol

from app.controllers.ports import ApiError
from app.controllers.store import Store
from app.kit.workqueue import Backoff, WorkQueue
from app.telemetry import metrics
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, key_of

log = logging.getLogger(__name__)

LOOKED_AT_IN_A_TURN: Final = 100
"""Objects, when the work begins: a few milliseconds."""

Stores = Mapping[Resource, Store]


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What happened to one object: ``old`` None: it is new; ``new`` None: it is gone."""

    resource: Resource
    old: Object | None
    new: Object | None

    @property
    def item(self) -> Object:
        """The object as last seen."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


class Controller(Protocol):
    """One controller. :meth:`reconcile` may raise ``Again`` to be called later."""

    @property
    def name(self) -> str:
        """As in ``--controllers`` and in metrics."""

    @property
    def kinds(self) -> Sequence[Resource]:
        """The kinds that the controller follows."""

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """What to reconcile because of a change."""

    async def reconcile(self, key: Key) -> None:
        """Bring what ``key`` stands for nearer to what is wanted."""


class Runtime:
    """Feeds stores, and runs controllers on what changed."""

    def __init__(
        self, stores: Stores, controllers: Mapping[Controller, int], *, backoff: Backoff
    ) -> None:
        """``controllers`` and how many workers each has."""
        self._stores = stores
        self._controllers = dict(controllers)
        self._queues = {
            controller: WorkQueue(
                controller.reconcile,
                backoff=backoff,
                failed=_failed(controller),
                lane_of=attrgetter("namespace"),
            )
            for controller in controllers
        }
        self._working = False

    async def run(self) -> None:
        """Work for ever; cancel to stop, and run it again to go on."""
        self._working = True
        try:
            async with asyncio.TaskGroup() as group:
                for controller, workers in self._controllers.items():
                    group.create_task(self._queues[controller].run(workers))
                group.create_task(self._look_at_all())
        finally:
            self._working = False

    async def _look_at_all(self) -> None:
        for resource, store in self._stores.items():
            for number, key in enumerate(map(key_of, store.all())):
                item = store.get(key)
                if item is not None:
                    self._tell(ObjectChange(resource, None, item))
                if number % LOOKED_AT_IN_A_TURN == 0:
                    await asyncio.sleep(0)

    async def settled(self) -> None:
        """Wait until no key is queued or being worked on."""
        while any(len(queue) for queue in self._queues.values()):
            for queue in self._queues.values():
                await queue.settled()

    def put(self, resource: Resource, item: Object) -> None:
        """An object was added, modified or listed."""
        old = self._stores[resource].put(item)
        self._tell(ObjectChange(resource, old, item))

    def drop(self, resource: Resource, key: Key) -> None:
        """An object is gone."""
        old = self._stores[resource].drop(key)
        if old is not None:
            self._tell(ObjectChange(resource, old, None))

    def _tell(self, change: ObjectChange) -> None:
        for controller, queue in self._queues.items():
            if change.resource in controller.kinds:
                for key in controller.keys(change):  # asked for in any case: it notes what it sees
                    if self._working:
                        queue.add(key)


def _failed(controller: Controller) -> Callable[[Key, Exception], None]:
    failures = metrics.RECONCILE_FAILURES.labels(controller.name)

    def failed(key: Key, error: Exception) -> None:
        failures.inc()
        if isinstance(error, ApiError):
            log.warning(
                "request refused, tried again",
                extra={"controller": controller.name, "key": str(key), "error": str(error)},
            )
            return
        log.error(
            "reconcile failed",
            extra={"controller": controller.name, "key": str(key)},
            exc_info=error,
        )

    return failed
