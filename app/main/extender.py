"""``pumice extender``: informers -> cache -> planning -> kube-scheduler's four calls.

Start: the socket opens first, before most of the code is loaded, so that kube-scheduler's calls
wait there (a refused one would send its pod up the back-off ladder) and probes get answers while
caches fill; then the informers, then the planner once every kind is listed. Stop (SIGTERM, SIGINT):
no more decisions, held Bind calls are answered with an error, the server drains, the process ends
with 0.
"""

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import uvloop

from app.api.access import Access
from app.api.app import create_app, create_reading_app
from app.api.extender import Call, extender_calls
from app.api.services import ExtenderServices
from app.kube import config
from app.kube.client import ApiClient
from app.kube.events import EventRecorder
from app.kube.unusable import why
from app.kube.writer import ClusterWriter
from app.main.adapters.audit_keeper import AuditKeeper
from app.main.adapters.http_extender import HttpExtenderClient
from app.main.adapters.learned_file import LearnedKeeper
from app.main.adapters.load_reader import LoadReaders
from app.main.adapters.reviews import ClusterReviews
from app.main.adapters.slots_here import SlotsHere
from app.main.clock import steady_clock
from app.main.collector import collect_seldom, spare_what_is_there
from app.main.conf_file import Stamp, follow, stamp, text_of
from app.main.connecting import open_client
from app.main.front import Front
from app.main.informers import KINDS, Informers, device_kinds, lease_kind, pod_kinds, waiting_pods
from app.main.serving.server import CALL_CONNECTIONS, Bind, Server, opened, server
from app.main.serving.serving_tls import CertificateFiles, follow_files
from app.main.serving.translation import ClusterPorts, Home
from app.main.signals import stop_asked
from app.main.start_error import StartError
from app.main.urgency import be_urgent
from app.main.wiring import Parts, assemble
from app.model.ids import QueueName
from app.service.effects.needed_queues import ensure_queues
from app.service.intake.http_extender.events import HttpExtenderEvents
from app.service.intake.http_extender.follower import HttpExtenderFollower
from app.service.intake.loads import LoadFollower
from app.service.ports import Clock, WriteError
from app.service.telling.view.history import HistoryKeeper
from app.service.telling.view.state import Sources
from app.service.telling.view.views import Views
from app.settings.extender import ExtenderSettings
from app.settings.process import address_of
from app.telemetry.metrics import REGISTRY

log = logging.getLogger(__name__)

MIB = 1024 * 1024
AUDIT_EVERY_S = 300.0
OWNERS_ASKED_AT_ONCE = 4
SWITCH_INTERVAL_S = 0.001
"""How long an informer thread may keep the event loop waiting while it decodes."""


def run(settings: ExtenderSettings, listener: socket.socket, bind: Bind) -> int:
    """Run until a signal, on a ``listener`` that is open; returns the exit code.

    It is 0 after a signal, 1 when the work ended by itself. Raises StartError.
    """
    be_urgent(settings.urgency)
    collect_seldom()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, listener, bind))


async def _serve(settings: ExtenderSettings, listener: socket.socket, bind: Bind) -> int:
    try:
        connected = open_client(settings)
    except config.ConfigError as error:
        raise StartError(str(error)) from error
    async with connected as client:
        process = ExtenderProcess(settings, client)
        # Not sooner: logging in may run a plugin, and the loop, which takes it, stands still then.
        with stop_asked() as stopping:
            await process.run(listener, bind, stopping)
    return 0 if stopping.is_set() else 1


class ExtenderProcess:
    """One running process: its parts, tasks and readiness."""

    def __init__(self, settings: ExtenderSettings, client: ApiClient) -> None:
        self._settings = settings
        self._conf_seen: Stamp = None
        self._queues_tried = asyncio.Event()
        clock = steady_clock()
        recorder = EventRecorder(
            client,
            component=sorted(settings.schedulers())[0],
            now=lambda: datetime.fromtimestamp(clock(), UTC),
            suffix=lambda: uuid4().hex[:16],
        )
        home = Home(settings.namespace, settings.schedulers()[0])
        self._ports = ClusterPorts(client, ClusterWriter(client, events=recorder), home=home)
        self._parts: Parts = assemble(
            ports=self._ports,
            clock=clock,
            limits=settings.limits(),
            schedulers=frozenset(settings.schedulers()),
            activity=settings.activity(clock, host=socket.gethostname()),
            default_queue=QueueName(settings.default_queue),
        )
        cache = self._parts.cache
        asks = not settings.anonymous_reads
        audiences = [settings.token_audience] if settings.token_audience else []
        reviews = ClusterReviews(client, audiences=audiences) if asks else None
        self._access = Access(reviews, clock=clock)
        self._keeper = AuditKeeper(
            settings.audit_dir,
            size=settings.audit_size * MIB,
            days=settings.audit_days,
            clock=clock,
        )
        cache.decisions.trail.keeper = self._keeper.keep
        self._learned = LearnedKeeper(
            self._parts.planning.etas, settings.audit_dir, self._keeper.has_folder
        )
        self._parts.planning.cycle.input.ring.size = settings.record_size * MIB
        self._loads = LoadFollower(
            cache,
            reader=LoadReaders(client, lambda: cache.node_usage.nodes),
            configuration=self._parts.configuration,
            clock=clock,
        )
        self._http_extender = HttpExtenderClient(client)
        self._answers, self._told = self._asking(self._http_extender, clock)
        kinds = [*KINDS, *pod_kinds(settings.schedulers())]
        if settings.leader_elect:
            kinds.append(lease_kind(settings.leader_elect_resource_namespace))
        sources = Sources(
            cache=cache,
            planning=self._parts.planning,
            reasons=self._parts.reasons,
            held=self._parts.barrier.held,
            notices=self._notices,
            clock=clock,
        )
        self._history = HistoryKeeper(sources)
        self._views = Views(sources, slice_s=settings.limits().slice_s)
        self._informers = Informers(
            kinds,
            connection=config.load(settings.kubeconfig),
            feed=self._parts.feed,
            listed=self._parts.feed.note_listed,
        )

    def _asking(
        self, server: HttpExtenderClient, clock: Clock
    ) -> tuple[HttpExtenderFollower, HttpExtenderEvents]:
        """What asks the HTTP extender, and what tells it of events."""
        parts = self._parts
        follower = HttpExtenderFollower(
            parts.cache,
            server=server,
            configuration=parts.configuration,
            activity=parts.activity,
            victims=parts.asked_victims,
            refusals=lambda: parts.planning.last_plan.refusals,
            clock=clock,
        )
        events = HttpExtenderEvents(
            parts.cache, server=server, configuration=parts.configuration, clock=clock
        )
        follower.told.append(parts.planning.pace.notice)
        parts.planning.cycle.after += [follower.after_cycle, events.after_cycle]
        parts.planning.publisher.told.append(events.placed)
        return follower, events

    async def run(self, listener: socket.socket, bind: Bind, stopping: asyncio.Event) -> None:
        """Serve until ``stopping`` is set, then drain."""
        parts = self._parts
        self._load_configuration()
        for kind in device_kinds(parts.configuration):
            self._informers.add(kind)
        services = self._services()
        calls = extender_calls(services)
        webs = self._webs(listener, bind, services=services, calls=calls)
        serving = [asyncio.create_task(web.serve(sockets=sockets)) for web, sockets in webs]
        self._keeper.start()
        self._informers.start()
        self._follow_what_evictions_ask()
        work = asyncio.create_task(self._work())
        following = asyncio.create_task(_follow_certificate(webs[0][0], bind))
        front = self._front(listener, webs[0][0], calls=calls)
        fronting = {asyncio.create_task(front.run())} if front is not None else set()
        stopped = asyncio.create_task(stopping.wait())
        ends = {*serving, *fronting, work, stopped}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        parts.barrier.drain()
        self._views.stopping.set()
        for task in (work, following):
            task.cancel()
        for web, _ in webs:
            web.should_exit = True
        draining = [front.drain()] if front is not None else []
        await asyncio.gather(*serving, *draining, self._informers.stop())
        for task in (work, following, *fronting):  # the front last: answers leave through it
            task.cancel()
            await _ended(task)
        stopped.cancel()
        await asyncio.to_thread(self._keeper.stop)

    def _webs(
        self,
        listener: socket.socket,
        bind: Bind,
        *,
        services: ExtenderServices,
        calls: Mapping[str, Call],
    ) -> list[tuple[Server, list[socket.socket]]]:
        """The servers, and the sockets they listen on: none where a front listens."""
        where = self._settings.listen_address
        try:
            first = server(create_app(services, calls), bind, most=CALL_CONNECTIONS)
        except OSError as error:
            raise StartError(f"the certificate or its key cannot be used: {why(error)}") from error
        webs = [(first, [] if self._settings.has_front else [listener])]
        if where:
            host, port = address_of(where)
            second = Bind(host=host, port=port)
            webs.append((server(create_reading_app(services), second), [opened(second)]))
        return webs

    def _front(
        self, listener: socket.socket, web: Server, *, calls: Mapping[str, Call]
    ) -> Front | None:
        """What listens instead of ``web``, if something does."""
        if not self._settings.has_front:
            return None
        return Front(listener, server=web, calls=calls, parts=self._parts, settings=self._settings)

    def slots(self) -> SlotsHere:
        """Where room is kept, for controllers in the same process."""
        return SlotsHere(self._parts)

    async def ready(self) -> None:
        """Wait until the first planning cycle has run, and the queues that must exist do."""
        await self._parts.planning.leadership.first_cycle.wait()
        await self._queues_tried.wait()

    def _load_configuration(self) -> None:
        path = self._settings.scheduler_conf
        if path is None:
            return
        self._conf_seen = stamp(path)
        try:
            self._parts.configuration.load(text_of(path))
        except OSError as error:
            raise StartError(f"--scheduler-conf: {error}") from error
        self._follow_nodes()

    async def _work(self) -> None:
        """Plan and act for ever, once everything is listed."""
        await self._informers.synced.wait()
        spare_what_is_there()
        async with self._http_extender, asyncio.TaskGroup() as group:
            for task in self._tasks():
                group.create_task(task)

    def _tasks(self) -> list[Coroutine[Any, Any, None]]:
        parts, settings = self._parts, self._settings
        tasks = [
            parts.planning.loop.run(),
            parts.actuator.run(),
            parts.evicting.run(),
            parts.owners.run(OWNERS_ASKED_AT_ONCE),
            self._audit(),
            self._loads.run(),
            self._answers.run(),
            self._told.run(),
            self._history.run(),
            self._learned.run(),
            ensure_queues(parts.cache, self._ports, tried=self._queues_tried),
        ]
        if settings.scheduler_conf is not None:
            tasks.append(follow(settings.scheduler_conf, self._reload, seen=self._conf_seen))
        return tasks

    async def _audit(self) -> None:
        """Now and then, compare what is counted with what the API server has (a metric tells)."""
        while True:
            await asyncio.sleep(AUDIT_EVERY_S)
            try:
                outcome = await self._parts.audit()
            except WriteError as error:
                log.info("ledger not compared", extra={"error": str(error)})
                continue
            if outcome.drifts:
                log.error("ledger differs from the cluster", extra={"pods": len(outcome.drifts)})

    def _reload(self, text: str) -> None:
        if self._parts.configuration.load(text):
            self._parts.cache.signals.note_dirty()
            self._parts.planning.pace.notice()
            self._follow_nodes()
            for kind in device_kinds(self._parts.configuration):
                self._informers.follow(kind)
            self._follow_what_evictions_ask()

    def _follow_nodes(self) -> None:
        """Let the cache look at nodes as the plugins ask for it."""
        cache, configuration = self._parts.cache, self._parts.configuration
        cache.set_network_labels(configuration.network_labels)
        cache.use_device_config("/".join(configuration.device_config_map or ()))
        cache.set_device_setting(configuration.devices)
        cache.set_counted_claims(configuration.counted_claims)
        cache.numa.heeded = configuration.heeds_numa
        cache.bind_timeout_s = configuration.bind_timeout_s

    def _follow_what_evictions_ask(self) -> None:
        if self._parts.configuration.evicts:
            self._informers.follow(waiting_pods(self._settings.schedulers()))

    def _services(self) -> ExtenderServices:
        parts = self._parts
        return ExtenderServices(
            cache=parts.cache,
            planning=parts.planning,
            reasons=parts.reasons,
            filtering=parts.filtering,
            barrier=parts.barrier,
            binding=parts.binding,
            preemption=parts.preemption,
            feed=parts.feed,
            audit=parts.audit,
            trail=self._keeper.reader(),
            views=self._views,
            history=self._history,
            unready=self._unready,
            notices=self._notices,
            metrics=REGISTRY,
            access=self._access,
        )

    def _notices(self) -> tuple[str, ...]:
        parts = self._parts
        return (
            *parts.configuration.notices(),
            *parts.planning.cycle.input.faulty.notices(),
            *parts.activity.notices,
            *self._loads.notices(),
            *self._keeper.notices(),
            *self._answers.notices(),
        )

    def _unready(self) -> list[str]:
        waits = [f"the first listing of {kind}" for kind in self._informers.unsynced()]
        if not self._parts.planning.leadership.first_cycle.is_set():
            waits.append("the first planning cycle")
        if not self._queues_tried.is_set():
            waits.append("the queues that must exist")
        return waits


async def _follow_certificate(web: Server, bind: Bind) -> None:
    """Serve with what is in the files of ``bind``, if there are any."""
    if bind.cert_file is None or bind.key_file is None:
        return
    assert isinstance(web.config.ssl, ssl.SSLContext)
    files = CertificateFiles(bind.cert_file, bind.key_file, bind.client_ca_file)
    await follow_files(files, web.config.ssl)


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait for a cancelled task; a failure of its own is worth a line."""
    try:
        await task
    except asyncio.CancelledError:
        return
    except Exception:
        log.exception("work ended with an error")
