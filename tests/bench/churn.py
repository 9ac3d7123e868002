"""What happens in a busy cluster, as lines of watches: made beforehand, in the order of a day.

Pods are created (ours in gangs, others one by one), bound a second later, run a second later and
are deleted in the end; kubelets report on pods that run, and on their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.bench import crowd
from tests.bench.crowd import Crowd, Place

NODES, GROUPS, OURS, OTHERS = "nodes", "podgroups", "pods of ours", "pods of others"
"""Streams. Of the pods of others only those that take room on a node are said."""

CPU = "20m"
BORN_OURS = 3 * crowd.GANG
BORN_OTHERS = 40
BORN = BORN_OURS + BORN_OTHERS
"""Pods created in a second, and bound, and begun to run, and deleted in a later one."""
HEARTBEATS = 50
GONE_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Said:
    """A line of a watch."""

    stream: str
    line: bytes


def probe_group(second: int) -> str:
    """The group that a probe of that second names, which nobody else does."""
    return f"probe-{second}"


def said(stream: str, change: str, obj: bytes) -> Said:
    return Said(stream, b'{"type":"%s","object":%s}\n' % (change.encode(), obj))


def probe(second: int) -> Said:
    """A pod that changes nothing, and can be asked for by its group."""
    name = probe_group(second)
    return said(OURS, "ADDED", crowd.pod(Place(f"{name}-0", gang=name, gate="bench.io/probe")))


class Churn:
    """``rate`` lines a second, second by second; ask for the seconds in order."""

    def __init__(self, population: Crowd, *, rate: int) -> None:
        self._crowd = population
        self._running = list(population.places())[: population.running]
        self._version = 1_000_000
        self._rate = rate
        self._reported_so_far = 0

    def second(self, now: int) -> list[Said]:
        """All that happens in that second, mixed."""
        parts = [
            list(self._created(now)),
            list(self._bound(now - 1)),
            list(self._begun(now - 2)),
            list(self._deleted(now - GONE_AFTER_S)),
            list(self._heartbeats(now)),
        ]
        parts.append(list(self._reported(self._rate - sum(map(len, parts)))))
        # Each part spread evenly over the second, in its own order.
        placed = [((i + 0.5) / len(part), one) for part in parts for i, one in enumerate(part)]
        return [one for _, one in sorted(placed, key=lambda pair: pair[0])]

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _born(self, second: int) -> Iterator[Place]:
        if second < 0:
            return
        for n in range(BORN):
            gang = f"churn-{second:04d}-{n // crowd.GANG}" if n < BORN_OURS else ""
            owner = gang or f"job-{second:04d}-{n}"
            yield Place(f"{owner}-{n % crowd.GANG}", gang=gang, cpu=CPU)

    def _created(self, second: int) -> Iterator[Said]:
        gangs = set()
        for place in self._born(second):
            if place.gang and place.gang not in gangs:
                gangs.add(place.gang)
                yield said(GROUPS, "ADDED", crowd.group(place.gang, running=0, phase="Inqueue"))
            if place.gang:
                yield said(OURS, "ADDED", crowd.pod(self._versioned(place)))

    def _bound(self, second: int) -> Iterator[Said]:
        for place in self._there(second, "Pending"):
            yield self._of_pod("MODIFIED" if place.gang else "ADDED", place)

    def _begun(self, second: int) -> Iterator[Said]:
        for place in self._there(second, "Running"):
            yield self._of_pod("MODIFIED", place)

    def _deleted(self, second: int) -> Iterator[Said]:
        gangs = set()
        for place in self._there(second, "Running"):
            gangs.add(place.gang)
            yield self._of_pod("DELETED", place)
        for gang in sorted(gangs - {""}):
            yield said(GROUPS, "DELETED", crowd.group(gang, running=crowd.GANG))

    def _there(self, second: int, phase: str) -> Iterator[Place]:
        """The pods of that second on their nodes."""
        for n, place in enumerate(self._born(second)):
            yield replace(place, node=self._crowd.node_of(second * BORN + n), phase=phase)

    def _of_pod(self, change: str, place: Place, *, restarts: int = 0) -> Said:
        obj = crowd.pod(self._versioned(place), restarts=restarts)
        return said(OURS if place.gang else OTHERS, change, obj)

    def _reported(self, count: int) -> Iterator[Said]:
        for _ in range(count):
            turn, index = divmod(self._reported_so_far, len(self._running))
            self._reported_so_far += 1
            yield self._of_pod("MODIFIED", self._running[index], restarts=turn + 1)

    def _heartbeats(self, second: int) -> Iterator[Said]:
        for n in range(HEARTBEATS):
            index = (second * HEARTBEATS + n) % self._crowd.nodes
            yield said(NODES, "MODIFIED", crowd.node(index, version=self._next_version()))

    def _versioned(self, place: Place) -> Place:
        return replace(place, version=self._next_version())
