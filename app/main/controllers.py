"""``pumice controllers``: informers -> stores -> controllers, one process of several at work.

The informers of every replica run, so that the one that takes over has all there is to know at
once; its controllers work while it holds the Lease. On SIGTERM what is under way is cancelled
between two requests, the Lease is given back, and the process ends with 0. Nothing is lost by that
or by a kill: all that controllers know is worked out again from the API server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import uuid4

import uvloop

from app.api.health import create_probes
from app.controllers.intake import Intake
from app.controllers.job.slots import SlotSource
from app.controllers.runtime import Runtime
from app.controllers.store import Store
from app.kit.workqueue import Backoff
from app.kube import config
from app.kube.client import ApiClient
from app.kube.events import EventRecorder
from app.main.adapters.object_api import ObjectApi
from app.main.adapters.object_events import ObjectEvents
from app.main.adapters.slot_client import SlotClient
from app.main.adapters.web_client import WebClient
from app.main.clock import steady_clock
from app.main.collector import collect_seldom, spare_what_is_there
from app.main.connecting import open_client
from app.main.controller_list import Means, chosen, discovery_conf, indexes
from app.main.election import lead
from app.main.informers import Informers
from app.main.object_kinds import sources_of
from app.main.serving.server import Bind, Server, opened, server
from app.main.signals import stop_asked
from app.settings.controllers import ControllersSettings
from app.settings.process import address_of
from app.telemetry.metrics import REGISTRY

COMPONENT = "pumice-controllers"

Before = Callable[[], Awaitable[object]]
"""What has to be over before something begins."""


async def _at_once() -> None:
    """Nothing has to be."""


def run(settings: ControllersSettings) -> int:
    """Run until a signal; returns the exit code.

    Raises StartError, ConfigError, and ValueError where unknown controllers are asked for.
    """
    chosen(settings.controllers)
    collect_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: ControllersSettings) -> int:
    async with open_controllers(settings) as process:
        with stop_asked() as stopping:
            await process.run(stopping)
    return 0


@asynccontextmanager
async def open_controllers(
    settings: ControllersSettings, slots: SlotSource | None = None
) -> AsyncIterator["ControllersProcess"]:
    """A process with its connections; without ``slots`` they are asked for over HTTP."""
    async with (
        open_client(settings) as client,
        SlotClient(settings.extender_url) as afar,
    ):
        yield ControllersProcess(settings, client, slots or afar)


class ControllersProcess:
    """One running process."""

    def __init__(self, settings: ControllersSettings, client: ApiClient, slots: SlotSource) -> None:
        self._settings = settings
        self._client = client
        self._clock = steady_clock()
        offers = chosen(settings.controllers)
        found = indexes(offers)
        stores = {resource: Store(by) for resource, by in found.items()}
        means = Means(
            stores=stores,
            api=ObjectApi(client),
            events=ObjectEvents(self._recorder()),
            slots=slots,
            clock=self._clock,
            web=WebClient(),
            settings=settings,
        )
        controllers = {
            controller: offer.workers(settings)
            for offer in offers.values()
            for controller in offer.build(means)
        }
        self._runtime = Runtime(stores, controllers, backoff=Backoff())
        names = settings.schedulers()
        sources = {
            source.name: (source, resource)
            for resource in found
            for source in sources_of(resource, names, discovery_conf(settings))
        }
        self._informers = Informers(
            [source for source, _ in sources.values()],
            connection=config.load(settings.kubeconfig),
            feed=Intake(self._runtime, {name: resource for name, (_, resource) in sources.items()}),
        )

    async def run(self, stopping: asyncio.Event, *, after: Before = _at_once) -> None:
        """Work until ``stopping`` is set; what there is is listed only ``after`` that."""
        webs = self._servers()
        serving = [asyncio.create_task(web.serve(sockets=[opened(bind)])) for web, bind in webs]
        work = asyncio.create_task(self._work(after))
        stopped = asyncio.create_task(stopping.wait())
        try:
            done, _ = await asyncio.wait(
                {work, stopped, *serving}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopped.cancel()
            work.cancel()
            for web, _ in webs:
                web.should_exit = True
            await asyncio.gather(work, *serving, self._informers.stop(), return_exceptions=True)
        for task in done - {stopped}:
            task.result()

    async def ready(self) -> None:
        """Wait until everything is listed."""
        await self._informers.synced.wait()

    async def _work(self, after: Before) -> None:
        await after()
        self._informers.start()
        await self._informers.synced.wait()
        spare_what_is_there()
        await lead(self._settings, self._client, work=self._runtime.run, clock=self._clock)

    def _servers(self) -> list[tuple[Server, Bind]]:
        addresses = [self._settings.healthz_address, self._settings.listen_address]
        app = create_probes("Pumice controllers", self._unready, REGISTRY)
        binds = [
            Bind(host=host, port=port)
            for host, port in (address_of(text) for text in dict.fromkeys(addresses) if text)
        ]
        return [(server(app, bind), bind) for bind in binds]

    def _unready(self) -> Sequence[str]:
        return [f"the first listing of {source}" for source in self._informers.unsynced()]

    def _recorder(self) -> EventRecorder:
        return EventRecorder(
            self._client, component=COMPONENT, now=self._now, suffix=lambda: uuid4().hex[:16]
        )

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
