"""The scheduling queue, with the stock back-off and the wake-ups that were measured on it.

::

    gated --(last gate removed)--> active --pop--> in flight --bound--> (gone)
                                     ^                |  refused            error |
            back-off over / popped early when idle    v                          v
                                  backoff <--wake-- parked                  error backoff
                                                                     (left by time alone)

* A pod that the extender refused is woken by *any* event but those of ResourceSlices: a bound pod
  added, changed or deleted, a node changed or deleted, a claim made, a write on the pod itself. One
  that only plugins refused is woken by the events that could help those plugins.
* A woken pod whose back-off runs waits in ``backoff``, and is popped early when nothing is active.
* An error is left by the ladder only: 1, 2, 4, 8, 10, 10 ... seconds. Every back-off ends at a
  full second of the queue's life.
* What was parked for five minutes is tried again whatever happened, or did not.
* Events that happen while a pod is in flight count when it comes back.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from dataclasses import dataclass, field
from enum import Enum

from app.sandbox.clock import Clock
from app.wire.documents import Document, items, labels_of, section, uid_of

EXTENDER = "Extender"
_LONGEST_PARKED_S = 300.0


class Wake(Enum):
    """Events that may make a refused pod schedulable."""

    BOUND_POD_ADDED = "AssignedPodAdd"
    BOUND_POD_CHANGED = "AssignedPodUpdate"
    BOUND_POD_DELETED = "AssignedPodDelete"
    NODE_CHANGED = "NodeUpdate"
    NODE_DELETED = "NodeDelete"
    CLAIM_CHANGED = "PvcAdd"
    VOLUMES_CHANGED = "PvAdd"
    DEVICES_CHANGED = "ResourceClaimAdd"
    SLICES_CHANGED = "ResourceSliceAdd"
    POD_CHANGED = "UnschedulablePodUpdate"
    POD_RULES_CHANGED = "UnschedulablePodRulesUpdate"


class QueuePart(Enum):
    """Where a pod is in the queue."""

    GATED = "gated"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR = "error"
    PARKED = "unschedulable"
    IN_FLIGHT = "in flight"


_ROOM = frozenset({Wake.BOUND_POD_DELETED, Wake.NODE_CHANGED})
_NODE = frozenset({Wake.NODE_CHANGED, Wake.POD_RULES_CHANGED})
_OF_CLAIMS = frozenset(
    {Wake.CLAIM_CHANGED, Wake.VOLUMES_CHANGED, Wake.DEVICES_CHANGED, Wake.SLICES_CHANGED}
)
_NEIGHBOURS = frozenset(Wake) - {Wake.POD_CHANGED, Wake.NODE_DELETED} - _OF_CLAIMS
_HELPS: dict[str, frozenset[Wake]] = {
    EXTENDER: frozenset(Wake) - {Wake.SLICES_CHANGED},
    "NodeUnschedulable": _NODE,
    "TaintToleration": _NODE,
    "NodeAffinity": _NODE,
    "NodePorts": _ROOM,
    "NodeResourcesFit": _ROOM,
    "PodTopologySpread": _NEIGHBOURS | {Wake.NODE_DELETED},
    "InterPodAffinity": _NEIGHBOURS,
    "DynamicResources": frozenset(
        {Wake.DEVICES_CHANGED, Wake.SLICES_CHANGED, Wake.NODE_CHANGED, Wake.POD_CHANGED}
    ),
    "VolumeRestrictions": frozenset({Wake.CLAIM_CHANGED, Wake.NODE_CHANGED}),
    "VolumeBinding": frozenset({Wake.CLAIM_CHANGED, Wake.VOLUMES_CHANGED, Wake.NODE_CHANGED}),
}


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod in the queue and what happened to it so far."""

    pod: Document
    arrived: int
    place: QueuePart = QueuePart.ACTIVE
    refusals: int = 0
    errors: int = 0
    not_before: float = 0.0
    parked_since: float = 0.0
    rejectors: frozenset[str] = frozenset()
    missed: set[Wake] = field(default_factory=set)

    @property
    def uid(self) -> str:
        """The pod's UID, by which the queue knows the pod."""
        return uid_of(self.pod)

    @property
    def priority(self) -> int:
        """The number in the pod's spec; 0 where the spec has none."""
        return int(section(self.pod, "spec").get("priority") or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffConfig:
    """``podInitialBackoffSeconds``, ``podMaxBackoffSeconds`` and ``SchedulerPopFromBackoffQ``."""

    initial_s: float = 1.0
    max_s: float = 10.0
    pops_early: bool = True

    def step(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row: doubled each time, up to ``max_s``."""
        return min(self.max_s, self.initial_s * 2.0 ** max(0, min(failures, 30) - 1))


class PodQueue:
    """Pods that wait for a place. One consumer."""

    def __init__(self, *, clock: Clock, backoff: BackoffConfig) -> None:
        self._clock = clock
        self._backoff = backoff
        self._began = clock.now()
        self._arrivals = 0
        self._pods: dict[str, QueuedPod] = {}
        self._places: dict[QueuePart, dict[str, QueuedPod]] = {place: {} for place in QueuePart}
        self._urgent: list[tuple[int, int, int, QueuedPod]] = []
        self._pushes = 0
        self._something = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """The queued pod with that UID; None where the queue has no such pod."""
        return self._pods.get(uid)

    def at(self, place: QueuePart) -> list[QueuedPod]:
        """The pods in one part of the queue, in the order in which they came there."""
        return list(self._places[place].values())

    def set(self, pod: Document) -> None:
        """A pod without a node, as the API server has it now."""
        queued = self._pods.get(uid_of(pod))
        if queued is None:
            self._arrivals += 1
            queued = self._pods[uid_of(pod)] = QueuedPod(pod, self._arrivals)
            self._move(queued, _first_place(pod))
            return
        before, queued.pod = queued.pod, pod
        if queued.place is QueuePart.GATED:
            self._move(queued, _first_place(pod))
        elif queued.place in {QueuePart.PARKED, QueuePart.IN_FLIGHT}:
            self._wake_one(queued, _own_change(before, pod))

    def remove(self, uid: str) -> None:
        """Forget a pod, wherever in the queue it is; an unknown UID is no error."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            del self._places[queued.place][uid]

    def wake(self, event: Wake) -> None:
        """Something happened in the cluster."""
        for queued in self.at(QueuePart.IN_FLIGHT):
            queued.missed.add(event)
        for queued in self.at(QueuePart.PARKED):
            self._wake_one(queued, event)

    async def pop(self) -> QueuedPod:
        """The most urgent pod, when there is one."""
        while True:
            self._flush()
            queued = self._most_urgent()
            if queued is not None:
                queued.missed.clear()
                self._move(queued, QueuePart.IN_FLIGHT)
                return queued
            await self._wait()

    def refused(self, queued: QueuedPod, rejectors: frozenset[str]) -> None:
        """Back from a cycle in which nothing could take the pod."""
        if queued.uid not in self._pods:
            return
        queued.refusals += 1
        queued.errors = 0
        queued.rejectors = rejectors
        queued.not_before = self._due(queued.refusals)
        queued.parked_since = self._clock.now()
        self._move(queued, QueuePart.PARKED)
        for event in list(queued.missed):
            self._wake_one(queued, event)

    def failed(self, queued: QueuedPod) -> None:
        """Back from a cycle (or a binding) that ended in an error."""
        if queued.uid not in self._pods:
            return
        queued.errors += 1
        queued.not_before = self._due(queued.errors)
        self._move(queued, QueuePart.ERROR)

    def _due(self, failures: int) -> float:
        """When the back-off after that many failures is over."""
        due = self._clock.now() + self._backoff.step(failures)
        return self._began + math.floor(due - self._began) + 1

    def _wake_one(self, queued: QueuedPod, event: Wake) -> None:
        if queued.place is QueuePart.IN_FLIGHT:
            queued.missed.add(event)
        elif queued.place is QueuePart.PARKED and any(
            event in _HELPS.get(rejector, frozenset()) for rejector in queued.rejectors
        ):
            over = queued.not_before <= self._clock.now()
            self._move(queued, QueuePart.ACTIVE if over else QueuePart.BACKOFF)

    def _move(self, queued: QueuedPod, place: QueuePart) -> None:
        self._places[queued.place].pop(queued.uid, None)
        queued.place = place
        self._places[place][queued.uid] = queued
        if place is QueuePart.ACTIVE:
            self._pushes += 1
            rank = (-queued.priority, queued.arrived, self._pushes)
            heapq.heappush(self._urgent, (*rank, queued))
        self._something.set()

    def _flush(self) -> None:
        now = self._clock.now()
        for place in (QueuePart.BACKOFF, QueuePart.ERROR):
            for queued in self.at(place):
                if queued.not_before <= now:
                    self._move(queued, QueuePart.ACTIVE)
        for queued in self.at(QueuePart.PARKED):
            if queued.parked_since + _LONGEST_PARKED_S <= now:
                self._move(queued, QueuePart.ACTIVE)

    def _most_urgent(self) -> QueuedPod | None:
        while self._urgent:
            *_, queued = heapq.heappop(self._urgent)
            if queued.place is QueuePart.ACTIVE and self._pods.get(queued.uid) is queued:
                return queued
        if not self._backoff.pops_early:
            return None
        waiting = self._places[QueuePart.BACKOFF].values()
        return min(waiting, key=lambda queued: (-queued.priority, queued.arrived), default=None)

    async def _wait(self) -> None:
        """Until something changes or the next back-off is over."""
        self._something.clear()
        due = [
            queued.not_before
            for place in (QueuePart.BACKOFF, QueuePart.ERROR)
            for queued in self.at(place)
        ]
        due += [queued.parked_since + _LONGEST_PARKED_S for queued in self.at(QueuePart.PARKED)]
        if not due:
            await self._something.wait()
            return
        timer = asyncio.ensure_future(self._clock.sleep(min(due) - self._clock.now()))
        changed = asyncio.ensure_future(self._something.wait())
        try:
            await asyncio.wait({timer, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            changed.cancel()


def _first_place(pod: Document) -> QueuePart:
    return QueuePart.GATED if items(pod, "spec", "schedulingGates") else QueuePart.ACTIVE


def _own_change(before: Document, after: Document) -> Wake:
    """How a write on the pod wakes pods: what plugins read has changed (labels, say), or not."""
    same_labels = labels_of(before) == labels_of(after)
    same_rules = section(before, "spec") == section(after, "spec")
    return Wake.POD_CHANGED if same_labels and same_rules else Wake.POD_RULES_CHANGED
