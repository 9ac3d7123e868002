"""The nodes' side of the cluster: what is bound runs, what is deleted stops.

The loop lists and watches nodes and pods through ``KubeletApi`` and gives every pod that is bound
to a node that exists a ``PodLife`` of its own, by UID. It serves all nodes at once. A pod that
vanishes takes its life with it, and so does a node: no kubelet is left there to report anything or
to confirm a deletion. A node that comes back begins its pods anew. A pod that does not fit on its
node fails there. A watch that ends or expires is followed by a new list. Where machines have NUMA
nodes their agents are played too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, cast

from app.model.load import NODE_LOAD
from app.sandbox.clock import Clock, timestamp
from app.sandbox.node_usage import NodeUsage, has_begun
from app.sandbox.nodes import NumaSpec
from app.sandbox.pod_life import PodLife
from app.sandbox.pod_status import Verdict
from app.sandbox.ports import KubeletApi, PodMissing, Watched, WatchEvent, WatchExpired
from app.wire.documents import Document, is_terminal, name_of, section, uid_of

logger = logging.getLogger(__name__)

_RETRY_S = 1.0
_AGENT_S = 1.0
_LOAD_S = 5.0

STOP_S: Final = 0.5
"""How long pods take to stop on a cluster that people look at.

kubectl asks after a pod that it has deleted. Where another one has its name by then, it waits for
the end of that one.
"""


@dataclass(frozen=True, slots=True)
class _Worker:
    life: PodLife
    task: asyncio.Task[None]


def _every_node(_: str) -> bool:
    return True


class Kubelet:
    """Plays the kubelets of the nodes for which ``serves`` is true."""

    def __init__(
        self,
        api: KubeletApi,
        *,
        clock: Clock,
        serves: Callable[[str], bool] = _every_node,
        start_seconds: float = 0.0,
        stop_seconds: float = 0.0,
        numa: NumaSpec | None = None,
        tells_load: bool = False,
    ) -> None:
        self._api = api
        self._clock = clock
        self._serves = serves
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._nodes: set[str] = set()
        self._node_usage = NodeUsage(numa)
        self._has_numa = numa is not None
        self._tells_load = tells_load
        self._homes: dict[str, str] = {}
        self._bound: defaultdict[str, dict[str, Document]] = defaultdict(dict)
        self._workers: dict[str, _Worker] = {}
        self._addresses = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for what in Watched:
                    group.create_task(self._follow(what))
                if self._has_numa:
                    group.create_task(self._tell_topologies())
                if self._tells_load:
                    group.create_task(self._tell_loads())
        finally:
            tasks = [worker.task for worker in self._workers.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, what: Watched) -> None:
        while True:
            try:
                await self._follow_once(what)
            except WatchExpired:
                logger.info("watch expired, listing again", extra={"of": what.value})
            except OSError as error:
                logger.warning("API server not reached", extra={"error": str(error)})
                await self._clock.sleep(_RETRY_S)

    async def _follow_once(self, what: Watched) -> None:
        documents, revision = await self._api.list_all(what)
        if what is Watched.NODES:
            self._set_nodes(documents)
        else:
            self._set_pods(documents)
        handle = self._node_event if what is Watched.NODES else self._pod_event
        async with aclosing(self._watch(what, revision)) as events:
            async for event in events:
                handle(event)

    def _watch(self, what: Watched, revision: str) -> AsyncGenerator[WatchEvent]:
        return cast("AsyncGenerator[WatchEvent]", self._api.watch(what, revision))

    # Nodes

    def _set_nodes(self, nodes: list[Document]) -> None:
        for name in self._nodes - {name_of(node).name for node in nodes}:
            self._node_gone(name)
        for node in nodes:
            self._node_there(node)

    def _node_event(self, event: WatchEvent) -> None:
        if event.kind == "DELETED":
            self._node_gone(name_of(event.document).name)
        else:
            self._node_there(event.document)

    def _node_there(self, node: Document) -> None:
        name = name_of(node).name
        self._node_usage.set_node(node)
        if name in self._nodes:
            return
        self._nodes.add(name)
        for pod in self._bound[name].values():
            self._serve(pod)

    def _node_gone(self, name: str) -> None:
        self._nodes.discard(name)
        self._node_usage.drop_node(name)
        for uid in self._bound[name]:
            self._cancel(uid)

    # Pods

    def _set_pods(self, pods: list[Document]) -> None:
        for uid in set(self._homes) - {uid_of(pod) for pod in pods}:
            self._forget(uid)
        for pod in sorted(pods, key=lambda pod: not has_begun(pod)):
            self._observe(pod)

    def _pod_event(self, event: WatchEvent) -> None:
        if event.kind == "DELETED":
            self._forget(uid_of(event.document))
        else:
            self._observe(event.document)

    def _observe(self, pod: Document) -> None:
        node = section(pod, "spec").get("nodeName")
        if not node or not self._serves(node):
            return
        self._homes[uid_of(pod)] = node
        self._bound[node][uid_of(pod)] = pod
        if node in self._nodes:
            self._serve(pod)

    def _forget(self, uid: str) -> None:
        node = self._homes.pop(uid, None)
        if node is not None:
            del self._bound[node][uid]
            self._node_usage.free(uid)
            self._cancel(uid)

    async def _tell_topologies(self) -> None:
        """Play the agents: write what is free, once a second."""
        unwritten: dict[str, Document] = {}
        while True:
            for topology in self._node_usage.new_topologies():
                unwritten[name_of(topology).name] = topology
            try:
                for name in list(unwritten):
                    await self._api.put_topology(unwritten[name])
                    del unwritten[name]
            except OSError as error:
                logger.warning("API server not reached", extra={"error": str(error)})
            await self._clock.sleep(_AGENT_S)

    async def _tell_loads(self) -> None:
        """Play what measures nodes: write how busy they are."""
        while True:
            at = timestamp(self._clock.now())
            try:
                for name, (cpu, memory) in self._node_usage.loads().items():
                    load = {"cpu": cpu, "memory": memory, "time": at, "window": 0}
                    await self._api.annotate_node(name, {NODE_LOAD: json.dumps(load)})
            except OSError as error:
                logger.warning("API server not reached", extra={"error": str(error)})
            await self._clock.sleep(_LOAD_S)

    # What runs

    def _serve(self, pod: Document) -> None:
        worker = self._workers.get(uid_of(pod))
        if worker is None:
            worker = self._start(pod)
        if is_terminal(pod):
            self._node_usage.free(uid_of(pod))
        worker.life.observe(pod)
        if pod["metadata"].get("deletionTimestamp"):
            worker.life.stop(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))

    def _start(self, pod: Document) -> _Worker:
        address = section(pod, "status").get("podIP") or self._next_address()
        life = PodLife(pod, api=self._api, clock=self._clock, ip=address)
        refusal = self._node_usage.take(pod)
        work = self._live(pod, life) if refusal is None else self._live_if_taken(pod, life)
        worker = _Worker(life, asyncio.create_task(work))
        self._workers[uid_of(pod)] = worker
        return worker

    def _next_address(self) -> str:
        self._addresses += 1
        return f"10.244.{self._addresses >> 8 & 255}.{self._addresses & 255}"

    async def _live_if_taken(self, pod: Document, life: PodLife) -> None:
        """The node may have grown, and its watch be behind that of the pods."""
        refusal = await self._look_again(pod)
        if refusal is None:
            await self._live(pod, life)
            return
        with contextlib.suppress(PodMissing):
            await life.refuse(refusal)

    async def _look_again(self, pod: Document) -> Verdict | None:
        while True:
            try:
                nodes, _ = await self._api.list_all(Watched.NODES)
            except OSError as error:
                logger.warning("API server not reached", extra={"error": str(error)})
                await self._clock.sleep(_RETRY_S)
            else:
                self._set_nodes(nodes)
                return self._node_usage.take(pod)

    async def _live(self, pod: Document, life: PodLife) -> None:
        """Live the pod's life, and confirm its deletion whatever happens."""
        with contextlib.suppress(PodMissing):
            try:
                await life.run(
                    start_seconds=self._start_seconds,
                    stop_seconds=self._stop_seconds,
                    is_over=is_terminal(pod),
                )
            except PodMissing:
                raise
            except Exception as error:
                if await self._has_ended(uid_of(pod)):
                    await life.run(start_seconds=0.0, stop_seconds=0.0, is_over=True)
                    return
                logger.exception("pod given up", extra={"pod": str(name_of(pod))})
                await life.give_up(error)

    async def _has_ended(self, uid: str) -> bool:
        """Whether the pod had ended before it was begun anew, which the watch was late to show."""
        try:
            pods, _ = await self._api.list_all(Watched.PODS)
        except OSError:
            return False
        return any(is_terminal(pod) for pod in pods if uid_of(pod) == uid)

    def _cancel(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None:
            worker.task.cancel()
