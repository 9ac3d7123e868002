"""The pods that have room on nodes as columns (:mod:`app.model.running`), kept as they change.

While no question about evictions is asked nothing is kept. From the first question on, holders of
room whose pod or place changed are noted, and looked at when the next snapshot is made: it costs
what changed, not what there is. A snapshot that is made for such a question copies the columns.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import PLACED_KINDS
from app.cache.neighbours.codes import LiveCodes
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.parts import Part
from app.model.placed_pods import Codes
from app.model.pod import Pod
from app.model.resources import Vector
from app.model.running import NO_GROUP, Running
from app.model.snapshot import NodeTable

V = TypeVar("V")
S = TypeVar("S", bound=np.generic)

SPARE = 64
"""Positions for pods to come, at first."""


class RunningTable:
    """The running pods of one cache."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._noted: dict[str, None] = {}
        self._columns: _Columns | None = None
        cache.node_usage.moved.append(self._note)

    def _note(self, holder: str) -> None:
        if self._columns is not None:
            self._noted[holder] = None

    def running(self, table: NodeTable) -> Running:
        """All of them now; groups have been looked at."""
        if self._columns is None or self._columns.width != len(table.axis):
            self._noted.clear()
            found = filter(None, map(self._find, self._cache.node_usage.charges))
            self._columns = _Columns(list(found), width=len(table.axis))
        self.follow()
        return self._columns.told(table)

    def follow(self) -> None:
        """Look at those that were noted; to be called now and then when nothing is asked."""
        columns = self._columns
        if columns is None:
            return
        if columns.width != len(self._cache.node_usage.axis):
            self._columns = None  # all of them are as long as the axis was
        else:
            for holder in self._noted:
                one = self._find(holder)
                if one is None:
                    columns.drop(PodUid(holder))
                else:
                    columns.put(one)
        self._noted.clear()

    def _find(self, holder: str) -> "_RunningPod | None":
        """The pod that has room under that name."""
        cache, uid = self._cache, PodUid(holder)
        charge = cache.node_usage.charges.get(holder)
        if charge is None:
            return None
        member = cache.members.get(uid)
        if member is not None:
            return _RunningPod(
                member.pod,
                charge.node,
                charge.vector,
                gang=member.group,
                part=member.part,
                queue=cache.groups[member.group].queue,
                priority=member.task.priority,
                counted=member.kind in PLACED_KINDS,
                releasing=charge.releasing,
            )
        foreign = cache.pods.foreign.get(uid)
        if foreign is None:
            return None  # a slot
        return _RunningPod(
            foreign,
            charge.node,
            charge.vector,
            gang=NO_GROUP,
            part=Part(foreign.role),
            queue=None,
            priority=foreign.priority,
            counted=False,
            releasing=charge.releasing,
        )


class _RunningPod(NamedTuple):
    """One pod, as in :class:`~app.model.running.Running`; ``queue`` None: of another scheduler."""

    pod: Pod
    node: NodeName
    request: Vector
    gang: GroupKey
    part: Part
    queue: QueueName | None
    priority: int
    counted: bool
    releasing: bool


class _Columns:
    """One position per pod; the last pod moves to the position of one that goes."""

    def __init__(self, found: list[_RunningPod], *, width: int) -> None:
        self.width = width
        size = len(found) + SPARE
        self._index: dict[PodUid, int] = {}
        self._pods: list[Pod] = []
        self._gangs: list[GroupKey] = []
        self._parts: list[Part] = []
        self._nodes = LiveCodes[NodeName]((), size=size)
        self._queues = LiveCodes[QueueName]((), size=size)
        self._priorities = np.zeros(size, dtype=np.int64)
        self._times = np.zeros((2, size))
        self._flags = np.zeros((4, size), dtype=np.bool_)
        self._requests = np.zeros((size, width), dtype=np.int64)
        self._told: tuple[NodeTable, Running] | None = None
        for one in found:
            self.put(one)

    def put(self, one: _RunningPod) -> None:
        """A pod that is new, or says something else than before."""
        self._told = None
        pod = one.pod
        at = self._index.get(pod.uid)
        if at is None:
            at = self._index[pod.uid] = len(self._pods)
            self._pods.append(pod)
            self._gangs.append(one.gang)
            self._parts.append(one.part)
            if at == len(self._requests):
                self._widen(2 * at)
        else:
            self._pods[at], self._gangs[at], self._parts[at] = pod, one.gang, one.part
        self._nodes.put(at, one.node)
        self._queues.put(at, one.queue)
        self._priorities[at] = one.priority
        self._times[:, at] = pod.created, pod.started
        self._flags[:, at] = one.counted, bool(pod.node), one.releasing, pod.preemptable
        self._requests[at] = one.request

    def drop(self, uid: PodUid) -> None:
        """A pod that has room no more."""
        at = self._index.pop(uid, None)
        if at is None:
            return
        self._told = None
        last = len(self._pods) - 1
        if at != last:
            self._index[self._pods[last].uid] = at
        _fill_gap(self._pods, at)
        _fill_gap(self._gangs, at)
        _fill_gap(self._parts, at)
        for codes in (self._nodes, self._queues):
            codes.move(last, at)
        for numbers in (self._priorities, self._times, self._flags):
            numbers[..., at] = numbers[..., last]
        self._requests[at] = self._requests[last]

    def told(self, table: NodeTable) -> Running:
        """All of them, for good; the same value as long as nothing changes."""
        if self._told is None or self._told[0] is not table:
            self._told = (table, self._tell(table))
        return self._told[1]

    def _tell(self, table: NodeTable) -> Running:
        count = len(self._pods)
        created, started = _copy(self._times[:, :count])
        counted, bound, releasing, preemptable = _copy(self._flags[:, :count])
        nodes, queues = self._nodes.told(), self._queues.told()
        beyond = len(table.nodes)
        rows = np.array([table.index.get(name, beyond) for name in nodes.values], dtype=np.intp)
        return Running(
            pods=tuple(self._pods),
            index=dict(self._index),
            nodes=_copy(rows[nodes.codes[:count]]),
            gangs=tuple(self._gangs),
            parts=tuple(self._parts),
            queues=Codes(queues.codes[:count], queues.values),
            requests=_copy(self._requests[:count]),
            priorities=_copy(self._priorities[:count]),
            created=created,
            started=started,
            counted=counted,
            bound=bound,
            releasing=releasing,
            preemptable=preemptable,
        )

    def _widen(self, size: int) -> None:
        more = size - len(self._requests)
        self._nodes.widen(size)
        self._queues.widen(size)
        self._priorities = np.pad(self._priorities, (0, more))
        self._times = np.pad(self._times, ((0, 0), (0, more)))
        self._flags = np.pad(self._flags, ((0, 0), (0, more)))
        self._requests = np.pad(self._requests, ((0, more), (0, 0)))


def _fill_gap(column: list[V], at: int) -> None:
    """Let the last one be the one at that position, and not the last any more."""
    last = column.pop()
    if at < len(column):
        column[at] = last


def _copy(array: NDArray[S]) -> NDArray[S]:
    made = array.copy()
    made.flags.writeable = False
    return made
