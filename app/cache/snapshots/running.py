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
from app.core.protection.rules import is_of_the_system
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.parts import Part
from app.model.placed_pods import Codes
from app.model.pod import LAST_CHECKPOINT, Pod, TaskStatus
from app.model.resources import Vector
from app.model.running import NO_GROUP, PodKind, Protection, Running
from app.model.snapshot import NodeTable
from app.wire import times
from app.wire.errors import DecodeError

V = TypeVar("V")
S = TypeVar("S", bound=np.generic)

_EVICTABLE = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})

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
        """All running pods now; groups have been looked at."""
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
        self._kinds = LiveCodes[PodKind]((), size=size)
        self._times = np.zeros((4, size))
        self._flags = np.zeros((3, size), dtype=np.bool_)
        self._protected = np.zeros(size, dtype=np.int8)
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
        self._kinds.put(at, PodKind(one.gang, one.part, one.request.tobytes(), one.priority))
        self._times[:, at] = pod.created, pod.started, _saved(pod), pod.grace
        self._flags[:, at] = one.counted, bool(pod.node), one.releasing
        self._protected[at] = _protection(one)
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
        self._nodes.move(last, at)
        self._queues.move(last, at)
        self._kinds.move(last, at)
        for numbers in (self._priorities, self._times, self._flags, self._protected):
            numbers[..., at] = numbers[..., last]
        self._requests[at] = self._requests[last]

    def told(self, table: NodeTable) -> Running:
        """The running pods as a value for good; the same value as long as nothing changes."""
        if self._told is None or self._told[0] is not table:
            self._told = (table, self._tell(table))
        return self._told[1]

    def _tell(self, table: NodeTable) -> Running:
        count = len(self._pods)
        created, started, saved, grace = _copy(self._times[:, :count])
        counted, bound, releasing = _copy(self._flags[:, :count])
        nodes, queues, kinds = self._nodes.told(), self._queues.told(), self._kinds.told()
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
            protected=_copy(self._protected[:count]),
            saved=saved,
            grace=grace,
            kinds=Codes(kinds.codes[:count], kinds.values),
        )

    def _widen(self, size: int) -> None:
        more = size - len(self._requests)
        self._nodes.widen(size)
        self._queues.widen(size)
        self._kinds.widen(size)
        self._priorities = np.pad(self._priorities, (0, more))
        self._times = np.pad(self._times, ((0, 0), (0, more)))
        self._flags = np.pad(self._flags, ((0, 0), (0, more)))
        self._protected = np.pad(self._protected, (0, more))
        self._requests = np.pad(self._requests, ((0, more), (0, 0)))


def _saved(pod: Pod) -> float:
    """When the pod saved its work last; a checkpoint from before its start is of another pod."""
    said = pod.annotations.get(LAST_CHECKPOINT)
    if said is None or not pod.started:
        return pod.started
    try:
        return max(pod.started, times.parse(said))
    except DecodeError:
        return pod.started


def _protection(one: _RunningPod) -> Protection:
    """Why the pod is never evicted for others."""
    pod = one.pod
    holds = (
        (one.queue is None, Protection.FOREIGN),
        (is_of_the_system(pod), Protection.SYSTEM),
        (pod.is_static, Protection.STATIC),
        (pod.is_of_daemon_set, Protection.DAEMON_SET),
        (not pod.node, Protection.UNBOUND),
        (one.releasing or pod.status not in _EVICTABLE, Protection.ENDING),
        (not pod.preemptable, Protection.UNPREEMPTABLE),
    )
    return next((protection for is_so, protection in holds if is_so), Protection.NONE)


def _fill_gap(column: list[V], at: int) -> None:
    """Let the last one be the one at that position, and not the last any more."""
    last = column.pop()
    if at < len(column):
        column[at] = last


def _copy(array: NDArray[S]) -> NDArray[S]:
    made = array.copy()
    made.flags.writeable = False
    return made
