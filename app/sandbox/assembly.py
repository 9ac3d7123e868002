"""The whole sandbox in one value: API server, kubelets, schedulers and what clears up after nodes.

Form A is the default: one scheduler for the profile ``volcano`` that calls the extender, another
for ``default-scheduler`` that does not. In form C one scheduler serves both profiles and the
extender sees every pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from app.sandbox.apiserver.admission import Admission
from app.sandbox.apiserver.http import HttpApi
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.apiserver.stock_fields import TypeOf, nothing_known
from app.sandbox.apiserver.store import Store
from app.sandbox.chips import health_documents, with_chips
from app.sandbox.clock import Clock
from app.sandbox.device_claims import ClaimController
from app.sandbox.kubelet import Kubelet
from app.sandbox.nodes import NodeSpec, node_documents
from app.sandbox.old_events import OldEvents
from app.sandbox.orphans import OrphanCollector
from app.sandbox.ports import ExtenderClient
from app.sandbox.racks import rack_documents
from app.sandbox.scheduler.loop import LoopConfig, SchedulerLoop
from app.sandbox.store_kubelet_api import StoreKubeletApi
from app.sandbox.volumes import VolumeController
from app.wire.documents import Document

OURS = "volcano"
STOCK = "default-scheduler"
MARK = "pumice.sh/gang"
"""No node has this resource; schedulers that know the extender are told not to look for it."""


class Form(Enum):
    """How the extender is wired to the stock scheduler."""

    SECOND_SCHEDULER = "a"
    ALL_PODS = "c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """``app`` is the API server for an ASGI server; ``run`` makes the cluster move."""

    server: ApiServer
    kubelet: Kubelet
    orphans: OrphanCollector
    old_events: OldEvents
    device_claims: ClaimController
    volumes: VolumeController
    loops: tuple[SchedulerLoop, ...]

    @property
    def app(self) -> HttpApi:
        """The ASGI application of the API server."""
        return self.server.app

    @property
    def store(self) -> Store:
        """The documents of the API server, read and written without any of its rules."""
        return self.server.store

    async def run(self) -> None:
        """Run kubelets, schedulers and the collectors until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.kubelet.run())
            group.create_task(self.orphans.run())
            group.create_task(self.old_events.run())
            group.create_task(self.device_claims.run())
            group.create_task(self.volumes.run())
            for loop in self.loops:
                group.create_task(loop.run())

    def close(self) -> None:
        """End all watches, so that the HTTP server can stop."""
        self.server.close()


def build_sandbox(
    *,
    clock: Clock,
    crds: Sequence[Document] = (),
    nodes: NodeSpec | None = None,
    admission: Sequence[Admission] = (),
    extender: ExtenderClient | None = None,
    form: Form = Form.SECOND_SCHEDULER,
    tuning: LoopConfig | None = None,
    stock_types: TypeOf = nothing_known,
    start_seconds: float = 0.0,
    stop_seconds: float = 0.0,
    seed: int | None = None,
) -> Sandbox:
    """A cluster with its nodes; nothing moves before ``run``.

    ``tuning`` is a pattern for the schedulers; names and profiles come from ``form``.
    ``stock_types`` tells which fields pods and other stock kinds have.
    """
    server = ApiServer(
        clock=clock, crds=crds, admission=admission, stock_types=stock_types, seed=seed
    )
    spec = nodes or NodeSpec()
    machines = with_chips(node_documents(spec, now=clock.now()), spec)
    for document in (*machines, *rack_documents(spec), *health_documents(spec)):
        server.create(document)
    kubelet = Kubelet(
        StoreKubeletApi(server),
        clock=clock,
        start_seconds=start_seconds,
        stop_seconds=stop_seconds,
        numa=spec.numa,
        tells_load=spec.tells_load,
    )
    pattern = tuning or LoopConfig(name="", profiles=frozenset())

    def loop(name: str, profiles: set[str], client: ExtenderClient | None) -> SchedulerLoop:
        config = replace(
            pattern,
            name=name,
            profiles=frozenset(profiles),
            ignored_resources=frozenset({MARK}) if client is not None else frozenset(),
        )
        return SchedulerLoop(server, config, clock=clock, extender=client, random=Random(seed))

    if form is Form.ALL_PODS:
        loops: tuple[SchedulerLoop, ...] = (loop(STOCK, {STOCK, OURS}, extender),)
    else:
        loops = (loop(OURS, {OURS}, extender), loop(STOCK, {STOCK}, None))
    orphans = OrphanCollector(server, clock=clock)
    old_events = OldEvents(server.store, clock=clock)
    return Sandbox(
        server=server,
        kubelet=kubelet,
        orphans=orphans,
        old_events=old_events,
        device_claims=ClaimController(server),
        volumes=VolumeController(server),
        loops=loops,
    )


def kubeconfig(url: str) -> Document:
    """A kubeconfig with one context, ``pumice-sandbox``, without credentials."""
    name = "pumice-sandbox"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
