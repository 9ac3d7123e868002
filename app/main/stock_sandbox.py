"""``pumice sandbox --control-plane real``: the stock programs, simulated kubelets, our extender.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are child processes, started before
the event loop and ended after it; kubelets, extender, controllers and webhooks run in the loop.
kube-scheduler is configured by what `pumice scheduler-config` prints for the form. In form A a
second one, with its defaults, serves the pods that are not ours.

The extender's socket is open before kube-scheduler starts, so a pod that is created early waits
for the extender instead of failing.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.kube import config, errors
from app.kube.client import ApiClient
from app.main.adapters.kubelet_api import HttpKubeletApi, watching
from app.main.admission.stock import judged
from app.main.sandbox import (
    HOME,
    SandboxFailed,
    SandboxOptions,
    Say,
    controlled,
    extended,
    introduce,
    opened,
    url_of,
    wait_for_ever,
)
from app.main.signals import interruptible, until_signal
from app.sandbox.chips import health_documents, with_chips
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.plane import ControlPlane
from app.sandbox.controlplane.processes import NotReady, Process
from app.sandbox.kubelet import STOP_S, Kubelet
from app.sandbox.nodes import node_documents
from app.sandbox.racks import rack_documents
from app.settings.extender import ExtenderSettings
from app.wire import manifests
from app.wire.documents import Document, condition
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES
from app.wire.objects.containers import MARKER
from app.wire.objects.npu_cores import HEALTH_NAMESPACE

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
INSTALL_S = 60.0
LOOK_EVERY_S = 0.1
WATCH_EVERY_S = 0.5
COLLECTIONS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
PROBE: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "none"}]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The stock programs, and what tells kube-scheduler about the extender."""

    folder: Path
    scheduler_config: Callable[[str, str], str]
    """Extender URL and kubeconfig -> a KubeSchedulerConfiguration."""


def serve(options: SandboxOptions, programs: Programs, *, say: Say) -> None:
    """Run the cluster until SIGINT or SIGTERM; ``say`` is told where everything is."""
    if options.port:
        opened(options.port).close()
    with (
        interruptible(),
        opened(options.extender_port) as listener,
        _plane(options, programs, say=say) as plane,
    ):
        config_file = options.folder / "scheduler.yaml"
        config_file.write_text(
            programs.scheduler_config(f"{url_of(listener)}/v1", plane.kubeconfig)
        )
        plane.start_scheduler(config_file, name=f"kube-scheduler-form-{options.form}")
        if options.form == "a":
            plane.start_scheduler()
        asyncio.run(_serve(plane, options, listener=listener, say=say))


@contextmanager
def _plane(options: SandboxOptions, programs: Programs, *, say: Say) -> Iterator[ControlPlane]:
    """etcd, API server and controllers."""
    say("starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler ...")
    plane = ControlPlane(
        options.folder / "control-plane", programs=programs.folder, port=options.port or None
    )
    try:
        with plane:
            plane.start_controllers()
            yield plane
    except NotReady as error:
        raise SandboxFailed(str(error)) from error


async def _serve(
    plane: ControlPlane, options: SandboxOptions, *, listener: socket.socket, say: Say
) -> None:
    kubeconfig = Path(plane.kubeconfig)
    settings = ExtenderSettings(
        kubeconfig=kubeconfig,
        leader_elect=False,
        namespace=HOME,
        scheduler_conf=options.scheduler_conf,
        bind_foreign_pods=options.form == "c",
        front=False,  # all of a sandbox is one process
    )
    connection = config.load(kubeconfig)
    async with until_signal(), AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient(connection))
        try:
            await _install(client, options)
        except (errors.KubeError, TimeoutError) as error:
            raise SandboxFailed(f"the cluster cannot be set up: {error}") from error
        session = await stack.enter_async_context(watching())
        api = HttpKubeletApi(client, connection=connection, session=session)
        kubelet = Kubelet(
            api,
            clock=WallClock(),
            stop_seconds=STOP_S,
            numa=options.nodes.numa,
            tells_load=options.nodes.tells_load,
        )
        parts = [
            await stack.enter_async_context(_part(kubelet.run(), "the simulated kubelets")),
            await stack.enter_async_context(_part(_all_run(plane.processes), "the control plane")),
        ]
        if options.webhooks:
            parts.append(await stack.enter_async_context(judged(kubeconfig, client)))
        parts += [
            await stack.enter_async_context(extended(settings, listener)),
            await stack.enter_async_context(controlled(kubeconfig, url_of(listener))),
        ]
        introduce(
            say,
            kubeconfig=kubeconfig,
            api_url=plane.url,
            extender_url=url_of(listener),
            logs=plane.folder / "logs",
        )
        await wait_for_ever(parts)


@asynccontextmanager
async def _part(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _all_run(processes: Iterable[Process]) -> None:
    """Until one of the programs has ended."""
    while True:
        for process in processes:
            if not process.running:
                raise SandboxFailed(
                    f"{process.name} ended with {process.returncode}\n{process.log_tail()}"
                )
        await asyncio.sleep(WATCH_EVERY_S)


# What the cluster is given ------------------------------------------------------------------------


async def _install(client: ApiClient, options: SandboxOptions) -> None:
    """Kinds, policies and nodes; done when the API server serves and enforces them."""
    async with asyncio.timeout(INSTALL_S):
        for crd in manifests.crd_documents():
            await client.create(CRDS, crd)
        for policy in manifests.policy_documents(options.form):
            await client.create(f"{POLICIES}/{COLLECTIONS[policy['kind']]}", policy)
        nodes = with_chips(node_documents(options.nodes, now=WallClock().now()), options.nodes)
        await asyncio.gather(*(client.create(NODES, node) for node in nodes))
        await _until(lambda: _kinds_are_served(client))
        for rack in rack_documents(options.nodes):
            await client.create(HYPER_NODES.path(), rack)
        for chips in health_documents(options.nodes):
            await client.create(CONFIG_MAPS.path(namespace=HEALTH_NAMESPACE), chips)
        await _until(lambda: _pods_are_prepared(client, options.form))


async def _until(reached: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await reached():
            return
        await asyncio.sleep(LOOK_EVERY_S)


async def _kinds_are_served(client: ApiClient) -> bool:
    crds: list[Document] = msgspec.json.decode(await client.get(CRDS))["items"]
    established = [condition(crd, "Established") for crd in crds]
    return all(one is not None and one["status"] == "True" for one in established)


async def _pods_are_prepared(client: ApiClient, form: manifests.Form) -> bool:
    """The API server takes some seconds to enforce new policies, one after the other."""
    try:
        answer = await client.create(PODS, PROBE, params={"dryRun": "All"})
    except errors.NotFound:
        # The namespace is made by the API server itself, a moment after it is ready.
        return False
    except errors.Forbidden:
        # The policy that refuses pods without the mark is there before the one that marks them.
        return False
    spec = msgspec.json.decode(answer)["spec"]
    marked = MARKER in spec["containers"][0]["resources"].get("limits", {})
    return bool(spec.get("schedulingGates")) and (marked or form != "b")
