"""``pumice webhooks``: informers -> facts -> rules -> AdmissionReviews over HTTPS.

Start: the socket opens first, so that requests wait there; then a certificate is found or made;
then the server, and when every kind has been listed the webhooks are registered. Any number of
processes serve; where certificates are ours the holder of the Lease keeps them and registers.
Stop (SIGTERM, SIGINT): requests under way are answered, the process ends with 0. The registration
stays, for the others and for the next start.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

import uvloop

from app.api.webhooks import WebhookServices, create_webhooks_app
from app.kube import config
from app.kube.client import ApiClient
from app.kube.unusable import why
from app.main.adapters.object_api import ObjectApi
from app.main.admission.certificate import KeptCertificate
from app.main.admission.cluster import StoredQueues, informers
from app.main.admission.registration import Registrar, registration_of
from app.main.clock import steady_clock
from app.main.conf_file import Stamp, follow, stamp, text_of
from app.main.connecting import open_client
from app.main.election import lead
from app.main.serving.server import REVIEW_CONNECTIONS, Bind, Server, server
from app.main.serving.serving_tls import CertificateFiles, follow_files
from app.main.signals import stop_asked
from app.main.start_error import StartError
from app.settings.webhooks import WebhookSettings
from app.telemetry.metrics import REGISTRY
from app.webhooks import admission_conf
from app.webhooks.admission import UnknownPath, Webhook, chosen
from app.webhooks.cluster_facts import ClusterFacts
from app.webhooks.judging import Judge
from app.webhooks.resource_groups import ResourceGroup
from app.webhooks.world import Options
from app.wire.unstructured import Key

log = logging.getLogger(__name__)


def run(settings: WebhookSettings, listener: socket.socket, bind: Bind) -> int:
    """Run until a signal, on a ``listener`` that is open; returns the exit code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, listener, bind))


async def _serve(settings: WebhookSettings, listener: socket.socket, bind: Bind) -> int:
    try:
        connected = open_client(settings)
    except config.ConfigError as error:
        raise StartError(str(error)) from error
    async with connected as client:
        process = WebhookProcess(settings, client)
        with stop_asked() as stopping:
            await process.run(listener, bind, stopping)
    return 0 if stopping.is_set() else 1


class WebhookProcess:
    """One running process: its parts, tasks and readiness."""

    def __init__(self, settings: WebhookSettings, client: ApiClient) -> None:
        self._settings = settings
        self._client = client
        self._api = ObjectApi(client)
        self._clock = steady_clock()
        self._webhooks = _enabled(settings)
        self._conf_seen: Stamp = None
        self._notices: list[str] = []
        groups = self._first_groups()
        facts = ClusterFacts()
        self._judge = Judge(facts, StoredQueues(client), _options(settings, groups))
        self._informers = informers(facts, config.load(settings.kubeconfig))
        self._registrar = Registrar(
            self._api,
            registration_of(settings, self._webhooks, groups),
            self._informers.synced,
        )
        self._kept: KeptCertificate | None = None
        if settings.tls_cert_file is None:
            self._kept = KeptCertificate(
                self._api,
                Key(settings.webhook_namespace, settings.certificate_secret),
                names=settings.server_names(),
                now=self._now,
            )

    async def run(self, listener: socket.socket, bind: Bind, stopping: asyncio.Event) -> None:
        """Serve until ``stopping`` is set, then drain."""
        self._informers.start()
        draining = asyncio.Event()
        stopped = asyncio.create_task(stopping.wait())
        serving = asyncio.create_task(self._serving(listener, bind, draining))
        tasks = [asyncio.create_task(task) for task in self._certificate_tasks()]
        waited: set[asyncio.Task[Any]] = {stopped, serving, *tasks}
        try:
            done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.set()
            for task in (stopped, *tasks):
                task.cancel()
            await asyncio.gather(*waited, self._informers.stop(), return_exceptions=True)
            if self._kept is not None:
                self._kept.close()
        for task in done - {stopped}:
            task.result()

    async def _serving(self, listener: socket.socket, bind: Bind, draining: asyncio.Event) -> None:
        """The server, from the moment there is a certificate until it is asked to stop."""
        files = await self._certificate(draining)
        if files is None:
            return
        web = _server(self._services(), bind, files)
        work = [asyncio.create_task(task) for task in self._server_tasks(web, files, draining)]
        try:
            await web.serve(sockets=[listener])
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _certificate(self, draining: asyncio.Event) -> CertificateFiles | None:
        settings, kept = self._settings, self._kept
        if kept is None:
            assert settings.tls_cert_file is not None
            assert settings.tls_private_key_file is not None
            return CertificateFiles(settings.tls_cert_file, settings.tls_private_key_file)
        waiting = [asyncio.create_task(event.wait()) for event in (kept.present, draining)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return None if draining.is_set() else kept.files

    def _certificate_tasks(self) -> list[Coroutine[Any, Any, None]]:
        kept = self._kept
        if kept is None:
            if not self._settings.register_webhooks:
                return []
            return [self._registrar.follow_file(self._settings.ca_cert_file)]
        return [kept.follow(), self._lead(kept)]

    def _server_tasks(
        self, web: Server, files: CertificateFiles, draining: asyncio.Event
    ) -> list[Coroutine[Any, Any, None]]:
        context = web.config.ssl
        assert isinstance(context, ssl.SSLContext)
        tasks = [follow_files(files, context), _exit_when(draining, web)]
        if self._settings.admission_conf is not None:
            path = self._settings.admission_conf
            tasks.append(follow(path, self._reload, seen=self._conf_seen))
        return tasks

    async def _lead(self, kept: KeptCertificate) -> None:
        """Keep certificates and registration while holding the Lease."""

        async def work() -> None:
            await kept.keep(self._registrar.register)

        await lead(self._settings, self._client, work=work, clock=self._clock)

    def _first_groups(self) -> tuple[ResourceGroup, ...] | None:
        path = self._settings.admission_conf
        if path is None:
            return None
        self._conf_seen = stamp(path)
        try:
            return admission_conf.parse(text_of(path))
        except (OSError, admission_conf.ConfError) as error:
            raise StartError(f"--admission-conf: {error}") from error

    def _reload(self, text: str) -> None:
        """Take a changed configuration; a bad one is told, and the old one stays."""
        try:
            groups = admission_conf.parse(text)
        except admission_conf.ConfError as error:
            self._notices[:] = [f"the admission configuration is refused: {error}"]
            log.warning("admission configuration refused", extra={"why": str(error)})
            return
        self._notices.clear()
        self._judge.use_groups(groups)
        log.info("admission configuration taken", extra={"groups": len(groups)})

    def _services(self) -> WebhookServices:
        return WebhookServices(
            webhooks=self._webhooks,
            judge=self._judge,
            synced=self._informers.synced,
            unready=self._unready,
            notices=lambda: self._notices,
            metrics=REGISTRY,
        )

    def _unready(self) -> Sequence[str]:
        return [f"the first listing of {kind}" for kind in self._informers.unsynced()]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _enabled(settings: WebhookSettings) -> tuple[Webhook, ...]:
    try:
        return chosen(settings.paths())
    except UnknownPath as error:
        raise StartError(f"--enabled-admission: {error}") from error


def _options(settings: WebhookSettings, groups: tuple[ResourceGroup, ...] | None) -> Options:
    return Options(
        schedulers=settings.schedulers(),
        max_queue_depth=settings.max_queue_depth,
        protect_root=settings.enable_root_queue_protection,
        check_allocated=settings.enable_queue_allocated_pods_check,
        loose_volumes=settings.loose_volumes,
        gate_pods=settings.gate_pods,
        queue_gates=settings.queue_gates(),
        resource_groups=groups or (),
    )


def _server(services: WebhookServices, bind: Bind, files: CertificateFiles) -> Server:
    secured = Bind(host=bind.host, port=bind.port, cert_file=files.certificate, key_file=files.key)
    try:
        return server(create_webhooks_app(services), secured, most=REVIEW_CONNECTIONS)
    except OSError as error:
        raise StartError(f"the certificate or its key cannot be used: {why(error)}") from error


async def _exit_when(draining: asyncio.Event, web: Server) -> None:
    await draining.wait()
    web.should_exit = True
