"""task-topology: members of tasks that belong together share nodes, and others do not.

Members of a group that says so (:mod:`app.core.gangs.task_topology`), those that wait and those
that are to come, are parted in *buckets*: each joins the bucket with most of those that it belongs
beside, less those that it does not; of equal ones the one that asks for least. Where there is none
but buckets that repel it more, it begins a new one. Members with a node are a bucket per node.

Members of a bucket get places one after the other, the larger bucket first. A node is better the
more of the bucket it has, the more of the rest it can still take, and the fewer members it has that
a task does not belong beside; the argument ``task-topology.weight`` (1) scales that.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.arguments import Arguments
from app.core.entries import Entry, Placed
from app.core.gangs import slots
from app.core.gangs.task_topology import TaskTopology, topology_of
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.policy import Hooks, NodeScore, NodesNow, OpenPlugin, Session, TaskKey
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.ids import GroupKey
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, PODS_COLUMN, Scores, Vector

_FULL = 100.0
_MIB = 1 << 20
_MILLI = 1000


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``task-topology.weight``."""
    weight = Arguments(conf).integer("task-topology.weight", 1)

    def open_(session: Session) -> Hooks:
        topologies = Topologies(session.ledger, weight=weight)
        return Hooks(
            task_order=topologies.order,
            node_score=NodeScore(topologies.key, topologies.score) if weight else None,
            place_class=topologies.place_class,
        )

    return open_


@dataclass(slots=True, eq=False)
class Bucket:
    """Members that belong together; ``tasks`` have no place yet, by their names.

    ``roles`` counts all of them, ``nodes`` those with a place by the row of the node, and ``size``
    what the members without one ask for, in one number.
    """

    index: int
    tasks: dict[str, Task] = field(default_factory=dict)
    roles: Counter[str] = field(default_factory=Counter)
    nodes: Counter[int] = field(default_factory=Counter)
    size: int = 0
    waited: int = 0
    """How many of ``tasks`` there were when the cycle began."""


class Topologies:
    """The plugin on one cycle; what it knows of a group is worked out when it is asked for it."""

    def __init__(self, ledger: Ledger, *, weight: int) -> None:
        self._ledger = ledger
        self._weight = weight
        self._journal = JournalReader(ledger.journal)
        self._known: dict[GroupKey, Buckets | None] = {}

    def order(self, gang: Gang) -> TaskKey | None:
        """Bucket by bucket; members without one come last."""
        buckets = self._of(gang)
        return None if buckets is None else buckets.rank

    def key(self, gang: Gang, task: Task) -> Hashable | None:
        """What a score depends on: the bucket, and which of its members have no place yet."""
        buckets = self._of(gang)
        bucket = None if buckets is None else buckets.of(task)
        if bucket is None:
            return None
        left = frozenset(Counter(each.request.tobytes() for each in bucket.tasks.values()).items())
        return gang.key, bucket.index, task.role, task.request.tobytes(), left

    def score(self, gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        """Up to 100 times the weight, for a node that has, or can take, the largest bucket."""
        buckets = self._of(gang)
        bucket = None if buckets is None else buckets.of(task)
        if buckets is None or bucket is None:
            return np.zeros(len(nodes.rows))
        rows = nodes.rows.tolist()
        there = [
            bucket.nodes[row] - buckets.topology.repulsion(task.role, buckets.roles_at(row))
            for row in rows
        ]
        worth: Scores = np.array(there, dtype=np.float64) + _taken(bucket, task, nodes)
        worth[((nodes.free < task.request[:, None]) & (task.request > 0)[:, None]).any(axis=0)] = 0
        return worth * (_FULL * self._weight / max(buckets.largest, 1))

    def place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """Members of one task of a group exchange places: others would part what is together."""
        if self._of(gang) is None:
            return ANY_EQUAL
        return ANY_EQUAL.within(f"task {task.role} of {gang.key}")

    def _of(self, gang: Gang) -> "Buckets | None":
        for entry, row, sign in self._journal.changes():
            known = None if entry.gang is None else self._known.get(entry.gang.key)
            if known is not None:
                known.note(entry, row, sign)
        if gang.key not in self._known:
            topology = topology_of(gang.annotations)
            made = None if topology is None else Buckets(topology, gang, self._ledger)
            self._known[gang.key] = made
        return self._known[gang.key]


class Buckets:
    """The members of one group, parted."""

    def __init__(self, topology: TaskTopology, gang: Gang, ledger: Ledger) -> None:
        self.topology = topology
        snapshot = ledger.snapshot
        self._buckets: list[Bucket] = []
        self._bucket_of: dict[str, Bucket] = {}
        self._roles_at: dict[int, Counter[str]] = {}
        self._at_node: dict[int, Bucket] = {}
        for place in sorted(snapshot.places.get(gang.key, ()), key=lambda place: place.node):
            row = snapshot.table.index.get(place.node)
            if row is None:
                continue
            self.roles_at(row)[place.role] += 1
            if place.role in topology.weight:
                bucket = self._at_node[row] if row in self._at_node else self._new()
                self._at_node[row] = bucket
                bucket.roles[place.role] += 1
                bucket.nodes[row] += 1
        missing = slots.slots_of(gang, snapshot, made={})
        members = [task for task in (*gang.waiting, *missing) if task.role in topology.weight]
        for task in sorted(members, key=lambda task: (topology.rank(task.role), task.name)):
            self._put(task)
        for bucket in self._buckets:
            bucket.waited = len(bucket.tasks)
        self.largest = max((b.waited + b.nodes.total() for b in self._buckets), default=0)
        for entry in ledger.journal:
            if entry.gang is not None and entry.gang.key == gang.key and entry.node is not None:
                self.note(entry, entry.node, entry.sign)

    def of(self, task: Task) -> Bucket | None:
        """The bucket that ``task`` is in, if it is in one."""
        return self._bucket_of.get(task.name)

    def roles_at(self, row: int) -> Counter[str]:
        """How many members of each role have a place on the node of ``row``."""
        return self._roles_at.setdefault(row, Counter())

    def rank(self, task: Task) -> tuple[object, ...]:
        """Where ``task`` stands in the order of its group, from the start of the cycle on."""
        bucket = self.of(task)
        if bucket is None:
            return (True,)
        return (False, -bucket.waited, bucket.index, self.topology.rank(task.role))

    def note(self, entry: Entry, row: int, sign: int) -> None:
        """A member got a place on the node of ``row`` (``sign`` 1), or has it no longer (-1)."""
        if not isinstance(entry, Placed):
            self._lose(entry.part.role, row, sign)
            return
        task = entry.task
        self.roles_at(row)[task.role] += sign
        bucket = self.of(task)
        if bucket is not None:
            bucket.nodes[row] += sign
            if sign > 0:
                bucket.tasks.pop(task.name, None)
            else:
                bucket.tasks[task.name] = task

    def _lose(self, role: str, row: int, sign: int) -> None:
        """A member on the node of ``row`` is to go (``sign`` -1), or stays after all."""
        self.roles_at(row)[role] += sign
        bucket = self._at_node.get(row)
        if bucket is not None and role in self.topology.weight:
            bucket.nodes[row] += sign

    def _put(self, task: Task) -> None:
        best, most = None, -1
        for bucket in self._buckets:
            pull = self.topology.attraction(task.role, bucket.roles)
            if pull > most or (pull == most and best is not None and bucket.size < best.size):
                best, most = bucket, pull
        bucket = self._new() if best is None else best
        bucket.tasks[task.name] = task
        bucket.roles[task.role] += 1
        bucket.size += _size(task.request)
        self._bucket_of[task.name] = bucket

    def _new(self) -> Bucket:
        self._buckets.append(Bucket(len(self._buckets)))
        return self._buckets[-1]


def _size(request: Vector) -> int:
    """A core, 1000 MiB and a piece of another resource weigh the same."""
    amounts: list[int] = request.tolist()
    others = sum(amounts) - amounts[CPU_COLUMN] - amounts[MEMORY_COLUMN] - amounts[PODS_COLUMN]
    return amounts[CPU_COLUMN] + amounts[MEMORY_COLUMN] // _MIB + others * _MILLI


def _taken(bucket: Bucket, task: Task, nodes: NodesNow) -> NDArray[np.int64]:
    """How many of the bucket, ``task`` among them, each of ``nodes`` can take, small ones first."""
    left = nodes.free - task.request[:, None]
    taken = np.ones(len(nodes.rows), dtype=np.int64)
    for request, count in _kinds(each for each in bucket.tasks.values() if each.name != task.name):
        asked = request > 0
        fit = np.full(len(nodes.rows), count, dtype=np.int64)
        if asked.any():
            room = (left[asked] // request[asked, None]).min(axis=0)
            fit = np.clip(room, 0, count)
        left = left - fit * request[:, None]
        taken += fit
    return taken


def _kinds(tasks: Iterable[Task]) -> Sequence[tuple[Vector, int]]:
    """The requests of ``tasks``, and how often each occurs, the smallest first."""
    counts = Counter(task.request.tobytes() for task in tasks)
    found = [(np.frombuffer(request, dtype=np.int64), count) for request, count in counts.items()]
    return sorted(found, key=lambda kind: (_size(kind[0]), kind[0].tobytes()))
