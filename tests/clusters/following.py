"""A thread that follows the objects of one kind in a namespace while a test does harm.

What counts is when the API server told it. A server that is away is asked again until it is back,
and what a watch missed then is found by the next listing.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx2

from tests.clusters.client import ApiClient, ApiError, Event, Object
from tests.clusters.resources import PODS, Resource

_RETRY_S = 0.1


class Follower(ABC):
    """Follows pods, or another kind; `with` starts and ends it.

    Both methods that subclasses give are called by the thread, with ``lock`` held.
    """

    def __init__(self, api: ApiClient, namespace: str, resource: Resource = PODS) -> None:
        self._api = api
        self._resource = resource
        self._namespace = namespace
        self.lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    @abstractmethod
    def listed(self, items: Sequence[Object]) -> None:
        """These are all there are."""

    @abstractmethod
    def changed(self, event: Event) -> None:
        """One was added, modified or deleted."""

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

    def _follow(self) -> None:
        while not self._ending.is_set():
            try:
                self._list_and_watch()
            except (httpx2.TransportError, ApiError):
                self._ending.wait(_RETRY_S)

    def _list_and_watch(self) -> None:
        listed, version = self._api.list_with_version(self._resource, namespace=self._namespace)
        with self.lock:
            self.listed(listed)
        while True:  # a watch goes on from the last one, so that nothing is missed between them
            changes = self._api.watch(
                self._resource, namespace=self._namespace, resource_version=version, timeout_s=5
            )
            for event in changes:
                if event.kind == "ERROR" or self._ending.is_set():
                    return
                version = event.object["metadata"]["resourceVersion"]
                with self.lock:
                    self.changed(event)
            if self._ending.is_set():
                return
