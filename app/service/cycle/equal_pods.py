"""Places for pods that come alone, one like the other, without a plan for each.

kube-scheduler asks for a pod the moment it is created: often before our watch has shown it, mostly
before a cycle has planned it. A plan on demand takes milliseconds in which kube-scheduler does
nothing else. So after one for a single pod the planner is asked how many more of its kind its queue
bears (:func:`app.core.planner.bears_more`). So many have an offered node with room at once, as long
as no other pod waits, was reserved anything or took room, be it under another scheduler, and nodes,
queues and configuration are the same. Those count too that no plan is for yet, such as pods behind
foreign gates: what they ask for is taken off what other queues deserve.

Only of a sample of nodes, though: that has the planned one rarely, and without it the pod has an
offered node with room in any case (:mod:`app.service.calls.filtering`). Where all nodes are offered
the pod has the one that the policies rate best.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import MemberState
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.planner import bears_more
from app.core.policy import Policies
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Vector
from app.model.shape import PodShape
from app.model.snapshot import NodeTable, QueueUsage
from app.model.workload import Queue
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.refused import Refused
from app.service.cycle.snapshot_token import claimed, differ, has_more
from app.wire.filter_by_name import SAMPLE_FLOOR

COUNTS: Final = (64, 8, 1)
"""How many pods are asked for: if the queue does not bear the first number, then the next."""

COME_S: Final = 1.0
"""When none has come for so long the planner is not asked about them after every cycle."""

_CROWD: Final = 64
"""More that wait are left to a cycle: looking at each takes as long as a plan."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Granted:
    """What the planner went by."""

    policies: Policies
    table: NodeTable
    total: Vector
    """What the cluster had: less once pods have gone from nodes that are not ready or cordoned."""
    queues: Mapping[QueueName, Queue]
    charges_made: int
    """The charges made by then, by all holders."""
    usage: Mapping[QueueName, QueueUsage]
    count: int


@dataclass(slots=True, eq=False, kw_only=True)
class EqualPods:
    """How many more pods like the last that came alone may have a place."""

    cache: ClusterCache
    configuration: Configuration
    snapshotter: Snapshotter
    allowed_victims: AllowedVictims
    refused: Refused
    _like: Gang | None = None
    """The last one, as it waited."""
    _granted: _Granted | None = None
    _used: int = 0
    _came_at: float = float("-inf")
    """When one like it did last, seconds since the epoch."""

    def covers(self, group: Group, *, now: float) -> bool:
        """Whether the one pod of ``group`` may have a node with room where all that wait find some.

        Nothing is counted by that.
        """
        if not self._is_alike(group, now):
            return False
        self._came_at = now
        waiting = self.cache.registry.pending.values()
        stands = self._stands(coming=len(waiting)) and self._only_alike_wait(now)
        return stands and all(_shape(other) == _shape(group) for other in waiting)

    def cycle_begins(self) -> None:
        """Forget what was granted if a queue is said to hold more than was reserved in it."""
        if self.cache.signals.overfull:
            self._granted = None

    def use(self) -> None:
        """Note that a covered pod got a reservation."""
        self._used += 1

    def learn(self, gang: Gang | None, *, now: float) -> None:
        """``gang`` was planned on demand, as it is here; ask the planner about its like.

        Not about pods that ask for nothing: their places are what is left over. Nor where a rule
        of a plugin says which nodes they may have: room alone is not enough then.
        """
        if gang is not None and gang.solo and [t.best_effort for t in gang.waiting] == [False]:
            if not self._has_open_place(gang):
                return
            self._like, self._came_at = gang, now
            self._ask(now)

    def renew(self, *, now: float) -> None:
        """Ask again after other pods got reservations, while there is a use for it."""
        if now - self._came_at <= COME_S and not self._stands():
            self._ask(now)

    def _ask(self, now: float) -> None:
        self._granted, self._used = None, 0
        like, cache, policies = self._like, self.cache, self.configuration.policies
        if like is None or len(cache.node_usage.nodes) < SAMPLE_FLOOR:
            return
        if not self._only_alike_wait(now):
            return
        snapshot = self.snapshotter.snapshot(preemptors=self.allowed_victims.preemptors())
        if snapshot.claims or snapshot.nominated_room or snapshot.shown or snapshot.inter_pod:
            return
        if snapshot.begun or snapshot.asked_of_cordoned is not None:
            return  # what queues deserve goes with what these groups ask for, or hold soon
        if len(like.request) < len(snapshot.axis):
            self._like = None  # a resource was named that was not known when it came
            return
        for count in COUNTS:
            if bears_more(snapshot, policies, like=like, count=count, now=now):
                self._granted = _Granted(
                    policies=policies,
                    table=snapshot.table,
                    total=snapshot.total,
                    queues=snapshot.queues,
                    charges_made=cache.node_usage.charges_made,
                    usage=snapshot.usage,
                    count=count,
                )
                return

    def _has_open_place(self, gang: Gang) -> bool:
        """Whether free room on any node would have done for the one pod of ``gang``."""
        member = self.cache.members.get(gang.waiting[0].uid)
        return member is None or member.exchange_class.is_open

    def _stands(self, *, coming: int = 1) -> bool:
        """Whether so many more may have a place each."""
        granted, cache = self._granted, self.cache
        return (
            granted is not None
            and self._used + coming <= granted.count
            and granted.charges_made + self._used == cache.node_usage.charges_made
            and granted.policies is self.configuration.policies
            and granted.table is cache.node_usage.table()
            and not has_more(cache.node_usage.total(), granted.total)
            and not cache.signals.overfull
            and not cache.rules.are_between_pods
            and not cache.pods.nominated.claims(cache.node_usage.vector)
            and not self.allowed_victims.preemptors()
            and not cache.collected
            and not len(cache.pipelined)
            and not differ(granted.queues, cache.queues)
            and not self._is_more_asked_for(granted.usage)
        )

    def _is_more_asked_for(self, before: Mapping[QueueName, QueueUsage]) -> bool:
        """Whether groups ask for more or claim more than ``before``, those that use this apart."""
        usage = self.cache.registry.usage_but_for_pods_alone()
        return any(
            now is not before.get(name) and self._asks_for_more(name, before.get(name), now)
            for name, now in usage.items()
        )

    def _asks_for_more(self, name: QueueName, before: QueueUsage | None, now: QueueUsage) -> bool:
        like = self._like
        if like is not None and name == like.queue:
            held = np.zeros_like(like.request) if before is None else claimed(before)
            return has_more(held + like.request * self._used, claimed(now))
        if before is None:
            return True
        return has_more(before.request, now.request) or has_more(claimed(before), claimed(now))

    def _only_alike_wait(self, now: float) -> bool:
        """Whether only equal pods wait, and none was refused, which would go first."""
        pending, refused = self.cache.registry.pending, self.refused.reasons
        return len(pending) <= _CROWD and all(
            key not in refused and self._is_alike(group, now) for key, group in pending.items()
        )

    def _is_alike(self, group: Group, now: float) -> bool:
        """Whether the group is a single pod that waits and may go anywhere, and asks for the same.

        A pod that keeps the place it was planned has a plan of its own.
        """
        like = self._like
        if like is None or not (group.solo and group.known) or len(group.members) != 1:
            return False
        [member] = group.members.values()
        pod = member.pod
        free = pod.exchange.is_open and not (pod.gates or pod.nominated or pod.queue_first)
        plain = not (pod.shape.looks_at_pods or pod.shape.host_ports)
        return (
            member.kind is MemberState.WAITING
            and free
            and plain
            and pod.shape.requests == like.waiting[0].shape.requests
            and pod.shape.numa == like.waiting[0].shape.numa
            and pod.shape.devices == like.waiting[0].shape.devices
            and pod.shape.claims == like.waiting[0].shape.claims
            and pod.priority == like.waiting[0].priority
            and group.queue == like.queue
            and group.cool_down_until <= now
        )


def _shape(group: Group) -> PodShape:
    """The shape of the group's one pod: pods of one shape may go to the same nodes."""
    [member] = group.members.values()
    return member.pod.shape
