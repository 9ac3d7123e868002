"""Watches nodes while a test does harm: was more bound to one than it has room for?

A thread follows the pods of one namespace. Whatever a watch misses is found by the next listing.
"""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType
from typing import Self

import httpx2

from tests.clusters import workloads
from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.resources import PODS

_RETRY_S = 0.1
_OVER = frozenset({"Succeeded", "Failed"})


class Occupancy:
    """Follows how many pods run on each node; `with` starts and ends it."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._pods: dict[str, Object] = {}
        self._most: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()

    def most(self) -> int:
        """The most pods that any node had at a time."""
        with self._lock:
            return max(self._most.values(), default=0)

    def _follow(self) -> None:
        while not self._ending.is_set():
            try:
                self._list_and_watch()
            except (httpx2.TransportError, ApiError):
                self._ending.wait(_RETRY_S)

    def _list_and_watch(self) -> None:
        listed, version = self._api.list_with_version(PODS, namespace=self._namespace)
        with self._lock:
            self._pods = {pod["metadata"]["uid"]: pod for pod in listed}
            self._count()
        changes = self._api.watch(
            PODS, namespace=self._namespace, resource_version=version, timeout_s=5
        )
        for event in changes:
            if event.kind == "ERROR" or self._ending.is_set():
                return
            with self._lock:
                if event.kind == "DELETED":
                    self._pods.pop(event.object["metadata"]["uid"], None)
                else:
                    self._pods[event.object["metadata"]["uid"]] = event.object
                self._count()

    def _count(self) -> None:
        running = [p for p in self._pods.values() if p["status"].get("phase") not in _OVER]
        self._most |= Counter(map(workloads.node_of, workloads.bound(running)))
