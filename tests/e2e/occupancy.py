"""Watches nodes while a test does harm: was more bound to one than it has room for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.clusters import workloads
from tests.clusters.client import ApiClient, Event, Object
from tests.clusters.following import Follower

_OVER = frozenset({"Succeeded", "Failed"})


class Occupancy(Follower):
    """Follows how many pods of a namespace run on each node; `with` starts and ends it."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        super().__init__(api, namespace)
        self._pods: dict[str, Object] = {}
        self._most: Counter[str] = Counter()

    def most(self) -> int:
        """The most pods that any node had at a time."""
        with self.lock:
            return max(self._most.values(), default=0)

    def listed(self, items: Sequence[Object]) -> None:
        self._pods = {pod["metadata"]["uid"]: pod for pod in items}
        self._count()

    def changed(self, event: Event) -> None:
        if event.kind == "DELETED":
            self._pods.pop(event.object["metadata"]["uid"], None)
        else:
            self._pods[event.object["metadata"]["uid"]] = event.object
        self._count()

    def _count(self) -> None:
        running = [p for p in self._pods.values() if p["status"].get("phase") not in _OVER]
        self._most |= Counter(map(workloads.node_of, workloads.bound(running)))
