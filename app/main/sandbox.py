"""``pumice sandbox``: the embedded cluster, its kubelets and schedulers, and our extender.

Everything runs in one process and one event loop, but talks as it would apart: the extender reads
and writes through the HTTP API, the scheduling loop calls the extender over HTTP.
"""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from app.main.extender import SWITCH_INTERVAL_S, ExtenderProcess, open_client
from app.main.server import Bind, listen, server
from app.sandbox.apiserver.admission import AdmissionRequest
from app.sandbox.assembly import Form, Sandbox, build_sandbox, kubeconfig
from app.sandbox.clock import WallClock
from app.sandbox.documents import Document
from app.sandbox.nodes import NodeSpec
from app.sandbox.ports import ExtenderUnreachable
from app.settings import ExtenderSettings
from app.webhooks.gate import gated
from app.wire.manifests import crd_documents

log = logging.getLogger(__name__)

HTTP_TIMEOUT_S = 30.0
SCHEDULERS = frozenset({"volcano"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """What the cluster is made of, and where it listens (port 0: any free one)."""

    nodes: NodeSpec
    folder: Path
    port: int = 0
    extender_port: int = 0
    form: Form = Form.SECOND_SCHEDULER
    gate: bool = True
    scheduler_conf: Path | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A sandbox that answers."""

    sandbox: Sandbox
    kubeconfig: Path
    api_url: str
    extender_url: str
    extender: ExtenderProcess


class HttpExtender:
    """The scheduling loop's way to the extender: one POST per call, as kube-scheduler does it."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Status and body; ExtenderUnreachable when there is no answer in time."""
        try:
            async with self._session.post(f"{self._url}/{verb}", data=body) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ExtenderUnreachable(str(error) or "timeout") from error


def gate_admission(request: AdmissionRequest) -> Document | None:
    """The gate policy of ``manifests/policy`` as an admission function."""
    if request.resource != "pods" or request.subresource or request.operation != "CREATE":
        return None
    if request.object is None:
        return None
    return gated(request.object, schedulers=SCHEDULERS)


@asynccontextmanager
async def running(options: SandboxOptions) -> AsyncIterator[Running]:
    """Start everything, hand it over once it is ready, and end all of it."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    listener = listen(Bind(host="127.0.0.1", port=options.extender_port))
    extender_url = _url(listener)
    timeout = aiohttp.ClientTimeout(total=HTTP_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=timeout, connector=connector)
        )
        sandbox = _cluster(options, HttpExtender(session, extender_url))
        api_url = await stack.enter_async_context(_served(sandbox, options.port))
        config = options.folder / "kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(api_url)))
        await stack.enter_async_context(_moving(sandbox))
        settings = ExtenderSettings(
            kubeconfig=config, leader_elect=False, scheduler_conf=options.scheduler_conf
        )
        process = await stack.enter_async_context(_deciding(settings, listener))
        yield Running(sandbox, config, api_url, extender_url, process)


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _cluster(options: SandboxOptions, extender: HttpExtender) -> Sandbox:
    return build_sandbox(
        clock=WallClock(),
        crds=crd_documents(),
        nodes=options.nodes,
        admission=(gate_admission,) if options.gate else (),
        extender=extender,
        form=options.form,
    )


@asynccontextmanager
async def _served(sandbox: Sandbox, port: int) -> AsyncIterator[str]:
    """The API server on a socket; hands over its URL."""
    listener = listen(Bind(host="127.0.0.1", port=port))
    web = server(sandbox.app, Bind(host="127.0.0.1", port=port))
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield _url(listener)
    finally:
        sandbox.close()
        web.should_exit = True
        await serving


@asynccontextmanager
async def _moving(sandbox: Sandbox) -> AsyncIterator[None]:
    """Kubelets and schedulers."""
    moving = asyncio.create_task(sandbox.run())
    try:
        yield
    finally:
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)


@asynccontextmanager
async def _deciding(
    settings: ExtenderSettings, listener: socket.socket
) -> AsyncIterator[ExtenderProcess]:
    """The extender, ready."""
    stopping = asyncio.Event()
    async with open_client(settings) as client:
        process = ExtenderProcess(settings, client)
        bind = Bind(host="127.0.0.1", port=0)
        deciding = asyncio.create_task(process.run(listener, bind, stopping))
        try:
            await process.ready()
            yield process
        finally:
            stopping.set()
            await deciding


async def serve(options: SandboxOptions, *, say: Callable[[str], None]) -> None:
    """Run a sandbox until SIGINT or SIGTERM; ``say`` is told where everything is."""
    stopping = asyncio.Event()
    async with running(options) as cluster:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        say(f"kubeconfig: {cluster.kubeconfig}")
        say(f"API server: {cluster.api_url}")
        say(f"extender:   {cluster.extender_url}  (/docs, /explain, /debug, /metrics)")
        say(f"try:        kubectl --kubeconfig {cluster.kubeconfig} get nodes")
        say("Ctrl-C ends it; nothing is kept.")
        await stopping.wait()
