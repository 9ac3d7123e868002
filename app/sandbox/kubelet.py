"""The nodes' side of the cluster: what is bound runs, what is deleted stops.

The loop lists and watches pods through ``KubeletApi`` and gives every bound pod that has not ended
a ``PodLife`` of its own, by UID. It serves all nodes at once. A pod that vanishes takes its life
with it; a watch that ends or expires is followed by a new list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from app.sandbox.clock import Clock
from app.sandbox.documents import Document, is_terminal, name_of, section, uid_of
from app.sandbox.pod_life import PodLife
from app.sandbox.ports import KubeletApi, PodEvent, PodMissing, WatchExpired

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


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
    ) -> None:
        self._api = api
        self._clock = clock
        self._serves = serves
        self._start_seconds = start_seconds
        self._workers: dict[str, _Worker] = {}
        self._addresses = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            while True:
                await self._serve_once()
        finally:
            tasks = [worker.task for worker in self._workers.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_once(self) -> None:
        try:
            pods, revision = await self._api.list_pods()
            self._forget_absent({uid_of(pod) for pod in pods})
            for pod in pods:
                self._observe(pod)
            async with aclosing(self._watch(revision)) as events:
                async for event in events:
                    self._handle(event)
        except WatchExpired:
            logger.info("pod watch expired, listing again")
        except OSError as error:
            logger.warning("API server not reached", extra={"error": str(error)})
            await self._clock.sleep(_RETRY_S)

    def _watch(self, revision: str) -> AsyncGenerator[PodEvent]:
        return cast("AsyncGenerator[PodEvent]", self._api.watch_pods(revision))

    def _handle(self, event: PodEvent) -> None:
        if event.kind == "DELETED":
            self._cancel(uid_of(event.pod))
        else:
            self._observe(event.pod)

    def _observe(self, pod: Document) -> None:
        node = section(pod, "spec").get("nodeName")
        if not node or not self._serves(node):
            return
        worker = self._workers.get(uid_of(pod))
        if worker is None:
            worker = self._start(pod)
        worker.life.observe(pod)
        if pod["metadata"].get("deletionTimestamp"):
            worker.life.stop(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))

    def _start(self, pod: Document) -> _Worker:
        self._addresses += 1
        address = f"10.244.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        life = PodLife(pod, api=self._api, clock=self._clock, ip=address)
        worker = _Worker(life, asyncio.create_task(self._live(pod, life)))
        self._workers[uid_of(pod)] = worker
        return worker

    async def _live(self, pod: Document, life: PodLife) -> None:
        try:
            await life.run(start_seconds=self._start_seconds, is_over=is_terminal(pod))
        except PodMissing:
            logger.debug("pod is gone", extra={"pod": str(name_of(pod))})

    def _forget_absent(self, present: set[str]) -> None:
        for uid in set(self._workers) - present:
            self._cancel(uid)

    def _cancel(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None:
            worker.task.cancel()
