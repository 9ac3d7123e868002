"""Controllers on the tests' API server, in virtual time; everybody else is played by hand."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from app.controllers.ports import Api, Clock, Events
from app.controllers.runtime import Controller, Runtime
from app.controllers.store import Index, Store
from app.kit.workqueue import Backoff
from app.wire.kinds import (
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    QUEUES,
    Resource,
)
from app.wire.unstructured import Key, Object, name
from tests.controllers.fake_api import FakeApi, FakeEvents, Watch
from tests.service import virtual_time

Stores = Mapping[Resource, Store]
Build = Callable[["Play"], Iterable[Controller]]

WITH_STATUS = (JOBS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, QUEUES, HYPER_NODES)


class Play:
    """One API server, and controllers that can be ended and started anew."""

    def __init__(self, follows: Mapping[Resource, Mapping[str, Index]], build: Build) -> None:
        self.fake = FakeApi(virtual_time.clock, with_status=WITH_STATUS)
        self.told = FakeEvents()
        self.stores: dict[Resource, Store] = {}
        self._follows = follows
        self._build = build
        self._task: asyncio.Task[None] | None = None
        self._watch: Watch | None = None
        self._runtime: Runtime | None = None

    @property
    def api(self) -> Api:
        """As controllers see it."""
        return self.fake

    @property
    def events(self) -> Events:
        """As controllers see them."""
        return self.told

    @property
    def clock(self) -> Clock:
        """The virtual clock."""
        return virtual_time.clock

    async def start(self) -> None:
        """Start controllers that know only what the API server has, and let them do it."""
        self.stores = {kind: Store(indexes) for kind, indexes in self._follows.items()}
        controllers = dict.fromkeys(self._build(self), 2)
        self._runtime = Runtime(self.stores, controllers, backoff=Backoff())
        self._watch = self.fake.watch(self)
        self._task = asyncio.create_task(self._runtime.run())
        await self.settle()

    async def kill(self) -> None:
        """End them in the middle of whatever they do."""
        assert self._task is not None
        assert self._watch is not None
        self.fake.unwatch(self._watch)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def settle(self) -> None:
        """Until nobody has anything to do now."""
        quiet = 0
        while quiet < 4:
            moved = self.fake.deliver()
            if self._runtime is not None:
                await self._runtime.settled()
            for _ in range(3):
                await asyncio.sleep(0)
            quiet = 0 if moved else quiet + 1

    async def later(self, seconds: float) -> None:
        """Let time pass; what happens then is delivered once it has."""
        await self.settle()
        await asyncio.sleep(seconds)
        await self.settle()

    async def until(self, at: float) -> None:
        """Let time pass until a moment, a tenth of a minute at a time."""
        while virtual_time.clock() < at:
            await self.later(min(6.0, at - virtual_time.clock()))

    def put(self, resource: Resource, item: Object) -> None:
        """Passes on the kinds that somebody follows."""
        if resource in self.stores:
            assert self._runtime is not None
            self._runtime.put(resource, item)

    def drop(self, resource: Resource, key: Key) -> None:
        """Passes on the kinds that somebody follows."""
        if resource in self.stores:
            assert self._runtime is not None
            self._runtime.drop(resource, key)

    def stored(self, resource: Resource, key: Key) -> Object:
        """An object that is there."""
        found = self.fake.find(resource, key)
        assert found is not None, key
        return found

    def names(self, resource: Resource) -> list[str]:
        """The names of all objects of a kind."""
        return sorted(name(item) for item in self.fake.all(resource))

    def reasons(self) -> list[str]:
        """The reasons of all events."""
        return [reason for _, reason, _ in self.told.told]


def run(
    scenario: Callable[[Play], Awaitable[None]],
    *,
    follows: Mapping[Resource, Mapping[str, Index]],
    build: Build,
) -> Play:
    """Play a scenario."""

    async def whole() -> Play:
        play = Play(follows, build)
        await scenario(play)
        return play

    return virtual_time.run(whole())


def item(resource: Resource, item_name: str, *, namespace: str = "ns", **parts: Any) -> Object:
    """An object as a client writes it."""
    metadata: dict[str, Any] = {"name": item_name, **parts.pop("metadata", {})}
    if resource.namespaced:
        metadata["namespace"] = namespace
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **parts,
    }
