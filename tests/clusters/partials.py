"""Watches gangs while a test does harm: for how long was a gang bound in part?

A thread follows the pods of one namespace. A gang is *partial* while some, but fewer than its
minimum, of its members are bound; what counts is when the API server told it, and a server that is
away is asked again until it is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import httpx2

from tests.clusters import workloads
from tests.clusters.client import ApiClient, ApiError, Event, Object
from tests.clusters.processes import wait_until
from tests.clusters.resources import PODS

_RETRY_S = 0.1


class Partials:
    """Follows the gangs of a namespace whose minimums are given; `with` starts and ends it."""

    def __init__(self, api: ApiClient, namespace: str, minimums: Mapping[str, int]) -> None:
        self._api = api
        self._namespace = namespace
        self._minimums = minimums
        self._bound: dict[str, set[str]] = {group: set() for group in minimums}
        self._uids: dict[str, set[str]] = {}
        self._since: dict[str, float] = {}
        self._longest: dict[str, float] = {}
        self._trigger: tuple[int, Callable[[], object]] | None = None
        self._fired = threading.Event()
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

    def bound(self, group: str | None = None) -> int:
        """How many pods are bound, of all gangs or of one."""
        with self._lock:
            sets = self._bound.values() if group is None else [self._bound[group]]
            return sum(map(len, sets))

    def made_twice(self) -> list[str]:
        """The pods that were seen under more than one UID."""
        with self._lock:
            return sorted(name for name, uids in self._uids.items() if len(uids) > 1)

    def partial(self) -> list[str]:
        """The gangs that are bound in part right now."""
        with self._lock:
            return sorted(self._since)

    def longest_s(self) -> float:
        """The longest time that any gang was partial, those that still are included."""
        now = time.monotonic()
        with self._lock:
            running = [now - since for since in self._since.values()]
            return max([*self._longest.values(), *running], default=0.0)

    def wait_bound(self, count: int, *, timeout_s: float) -> None:
        """Wait until that many pods are bound in all."""
        wait_until(lambda: self.bound() >= count, timeout_s=timeout_s, what=f"{count} pods bound")

    def fire_at(self, count: int, act: Callable[[], object], *, timeout_s: float) -> None:
        """Call `act` the moment that many pods are bound, and wait until that is over.

        It is called by the thread that watches, so a gang that is just being bound stays in part.
        """
        with self._lock:
            self._trigger = (count, act)
        assert self._fired.wait(timeout_s), f"{count} pods bound: not within {timeout_s:g} s"

    def wait_whole(self, *, timeout_s: float) -> None:
        """Wait until every gang has its minimum."""
        wait_until(
            lambda: all(self.bound(g) >= least for g, least in self._minimums.items()),
            timeout_s=timeout_s,
            what=f"all of {', '.join(self._minimums)} whole",
        )

    def _follow(self) -> None:
        while not self._ending.is_set():
            try:
                self._list_and_watch()
            except (httpx2.TransportError, ApiError):
                self._ending.wait(_RETRY_S)

    def _list_and_watch(self) -> None:
        listed, version = self._api.list_with_version(PODS, namespace=self._namespace)
        with self._lock:
            for members in self._bound.values():
                members.clear()
            for pod in listed:
                self._take(Event("ADDED", pod))
            self._judge()
        changes = self._api.watch(
            PODS, namespace=self._namespace, resource_version=version, timeout_s=5
        )
        for event in changes:
            if event.kind == "ERROR" or self._ending.is_set():
                return
            with self._lock:
                self._take(event)
                self._judge()
                self._fire()

    def _fire(self) -> None:
        if self._trigger is None or sum(map(len, self._bound.values())) < self._trigger[0]:
            return
        act, self._trigger = self._trigger[1], None
        act()
        self._fired.set()

    def _take(self, event: Event) -> None:
        members = self._bound.get(_group_of(event.object))
        if members is None:
            return
        name = event.object["metadata"]["name"]
        self._uids.setdefault(name, set()).add(event.object["metadata"]["uid"])
        if event.kind != "DELETED" and workloads.node_of(event.object):
            members.add(name)
        else:
            members.discard(name)

    def _judge(self) -> None:
        now = time.monotonic()
        for group, least in self._minimums.items():
            if 0 < len(self._bound[group]) < least:
                self._since.setdefault(group, now)
            elif group in self._since:
                lasted = now - self._since.pop(group)
                self._longest[group] = max(lasted, self._longest.get(group, 0.0))


def _group_of(pod: Object) -> str:
    name: str = pod["metadata"].get("annotations", {}).get(workloads.GROUP, "")
    return name
