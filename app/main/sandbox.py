"""``pumice sandbox``: the embedded cluster, its kubelets and schedulers, and all of ours.

Everything runs in one process and one event loop, but talks as it would apart: the extender reads
and writes through the HTTP API, the scheduling loop calls the extender over HTTP.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from app.main.adapters.stock_types import stock_type
from app.main.admission.embedded import EmbeddedWebhooks
from app.main.connecting import open_client
from app.main.controllers import open_controllers
from app.main.extender import SWITCH_INTERVAL_S, ExtenderProcess
from app.main.serving.server import CALL_CONNECTIONS, Bind, listen, server
from app.main.signals import interruptible, until_signal
from app.sandbox.apiserver.admission import AdmissionRequest
from app.sandbox.assembly import Form, Sandbox, build_sandbox, kubeconfig
from app.sandbox.clock import WallClock
from app.sandbox.kubelet import STOP_S
from app.sandbox.nodes import NodeSpec
from app.sandbox.ports import ExtenderUnreachable
from app.settings.controllers import ControllersSettings
from app.settings.extender import ExtenderSettings
from app.webhooks.gate import gated
from app.webhooks.world import Options
from app.wire import manifests
from app.wire.documents import Document

LOOPBACK = "127.0.0.1"
HOME = "kube-system"
"""Where evictions are noted: a sandbox has no namespace of an installation."""
SCHEDULERS = frozenset({"volcano"})

Say = Callable[[str], None]


class SandboxFailed(Exception):
    """The cluster could not start, or a part of it ended by itself; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """What the cluster is made of, and where it listens (port 0: any free one)."""

    nodes: NodeSpec
    folder: Path
    port: int = 0
    extender_port: int = 0
    form: manifests.Form = "a"
    scheduler_conf: Path | None = None
    webhooks: bool = True
    """Whether objects are completed and judged as by our webhooks; pods are gated either way."""


@dataclass(frozen=True, slots=True)
class Running:
    """A sandbox that answers."""

    kubeconfig: Path
    api_url: str
    extender_url: str
    parts: tuple[asyncio.Task[None], ...]
    """What must not end by itself."""


class HttpExtender:
    """The scheduling loop's way to the extender: one POST per call, as kube-scheduler does it."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Status and body; ExtenderUnreachable when there is no answer."""
        try:
            async with self._session.post(f"{self.url}/{verb}", data=body) as answer:
                return answer.status, await answer.read()
        except aiohttp.ServerDisconnectedError as error:
            raise ExtenderUnreachable("EOF") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ExtenderUnreachable(str(error)) from error


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
    # How long a call may take is the scheduling loop's business.
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(opened(options.extender_port))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=timeout, connector=connector)
        )
        sandbox = _cluster(options, HttpExtender(session, url_of(listener)))
        api_url = await stack.enter_async_context(_served(sandbox, options.port))
        config = options.folder / "kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(api_url)))
        moving = await stack.enter_async_context(_moving(sandbox))
        settings = ExtenderSettings(
            kubeconfig=config,
            leader_elect=False,
            namespace=HOME,
            scheduler_conf=options.scheduler_conf,
            bind_foreign_pods=options.form == "c",
            front=False,  # all of a sandbox is one process
        )
        extending = await stack.enter_async_context(extended(settings, listener))
        controlling = await stack.enter_async_context(controlled(config, url_of(listener)))
        parts = (moving, extending, controlling)
        yield Running(config, api_url, url_of(listener), parts)


def opened(port: int) -> socket.socket:
    """A listening socket on the loopback address; SandboxFailed when the port is taken."""
    try:
        return listen(Bind(host=LOOPBACK, port=port))
    except OSError as error:
        raise SandboxFailed(f"port {port} on {LOOPBACK}: {error.strerror}") from error


def url_of(listener: socket.socket) -> str:
    """Where a listening socket is reached over plain HTTP."""
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}"


def _cluster(options: SandboxOptions, extender: HttpExtender) -> Sandbox:
    # An installation refuses such volumes; a job of the demo has two, as Volcano's guides had.
    webhooks = EmbeddedWebhooks(Options(gate_pods=True, loose_volumes=True))
    sandbox = build_sandbox(
        clock=WallClock(),
        crds=manifests.crd_documents(),
        nodes=options.nodes,
        admission=(webhooks if options.webhooks else gate_admission,),
        extender=extender,
        form=Form(options.form),
        stock_types=stock_type,
        stop_seconds=STOP_S,
    )
    webhooks.follow(sandbox.store)
    return sandbox


@asynccontextmanager
async def _served(sandbox: Sandbox, port: int) -> AsyncIterator[str]:
    """The API server on a socket; hands over its URL."""
    with opened(port) as listener:
        web = server(sandbox.app, Bind(host=LOOPBACK, port=port), most=CALL_CONNECTIONS)
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        try:
            yield url_of(listener)
        finally:
            sandbox.close()
            web.should_exit = True
            await serving


@asynccontextmanager
async def _moving(sandbox: Sandbox) -> AsyncIterator[asyncio.Task[None]]:
    """Kubelets and schedulers."""
    moving = asyncio.create_task(sandbox.run(), name="the simulated kubelets and schedulers")
    try:
        yield moving
    finally:
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)


@asynccontextmanager
async def part(
    name: str,
    work: Coroutine[Any, Any, None],
    *,
    ready: Coroutine[Any, Any, None],
    stopping: asyncio.Event,
) -> AsyncIterator[asyncio.Task[None]]:
    """``work``, handed over once ``ready`` has ended; SandboxFailed when it ends before that."""
    working, starting = asyncio.create_task(work, name=name), asyncio.create_task(ready)
    try:
        await asyncio.wait({starting, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            raise ended(working)
        starting.result()
        yield working
    finally:
        starting.cancel()
        stopping.set()
        await asyncio.gather(working, return_exceptions=True)


@asynccontextmanager
async def extended(
    settings: ExtenderSettings, listener: socket.socket
) -> AsyncIterator[asyncio.Task[None]]:
    """The extender, ready."""
    stopping = asyncio.Event()
    async with open_client(settings) as client:
        process = ExtenderProcess(settings, client)
        work = process.run(listener, Bind(host=LOOPBACK, port=0), stopping)
        async with part("the extender", work, ready=process.ready(), stopping=stopping) as task:
            yield task


@asynccontextmanager
async def controlled(kubeconfig: Path, extender_url: str) -> AsyncIterator[asyncio.Task[None]]:
    """The controllers, ready."""
    settings = ControllersSettings(
        kubeconfig=kubeconfig, extender_url=extender_url, leader_elect=False, healthz_address=""
    )
    stopping = asyncio.Event()
    async with open_controllers(settings) as process:
        work = process.run(stopping)
        async with part("the controllers", work, ready=process.ready(), stopping=stopping) as task:
            yield task


def ended(part: asyncio.Task[None]) -> SandboxFailed:
    """What became of a part that ended by itself."""
    error = None if part.cancelled() else part.exception()
    return SandboxFailed(f"{part.get_name()} ended: {error or 'it was not asked to'}")


async def wait_for_ever(parts: Iterable[asyncio.Task[None]]) -> None:
    """Until cancelled; SandboxFailed when a part ends."""
    done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    raise ended(done.pop())


def serve(options: SandboxOptions, *, say: Say) -> None:
    """Run a sandbox until SIGINT or SIGTERM; ``say`` is told where everything is."""
    with interruptible():
        asyncio.run(_serve(options, say=say))


async def _serve(options: SandboxOptions, *, say: Say) -> None:
    async with until_signal(), running(options) as cluster:
        introduce(
            say,
            kubeconfig=cluster.kubeconfig,
            api_url=cluster.api_url,
            extender_url=cluster.extender_url,
        )
        await wait_for_ever(cluster.parts)


def introduce(
    say: Say, *, kubeconfig: Path, api_url: str, extender_url: str, logs: Path | None = None
) -> None:
    """Say where everything is."""
    say(f"kubeconfig: {kubeconfig}")
    say(f"API server: {api_url}")
    say(f"extender:   {extender_url}  (/docs, /explain, /debug, /metrics)")
    say(f"page:       {extender_url}/ui")
    if logs is not None:
        say(f"logs:       {logs}")
    say(f"try:        kubectl --kubeconfig {kubeconfig} get nodes")
    say("Ctrl-C ends it; nothing is kept.")
