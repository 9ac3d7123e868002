"""The tree that queues form by ``spec.parent``, and what each of them can hold in it.

A tree is *broken* when a parent is missing, queues form a cycle or too long a chain, or a group
sits in a queue that has children: then it is not defined which limits count, and nothing is
admitted or placed until it is mended. Limits flow down from the root, which is unlimited unless it
says otherwise: a queue inherits what its capability leaves out, and cannot hold what its siblings
are guaranteed.

So groups are admitted that no node has room for yet, as in Volcano. Unlike there, what queues
without a limit above them may hold is what the cluster leaves of what their siblings are
guaranteed: from something unlimited nothing would be taken off.
"""

from dataclasses import dataclass

import numpy as np

from app.core.ledger import Ledger
from app.core.shares import limits
from app.model.amounts import UNLIMITED
from app.model.ids import ROOT_QUEUE, QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import Vector
from app.model.snapshot import Snapshot
from app.model.workload import DEEPEST_QUEUE, Queue


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Vectors by queue; ``line`` is the way from the root down to the queue, both included."""

    line: dict[QueueName, tuple[QueueName, ...]]
    parents: frozenset[QueueName]
    deserved: dict[QueueName, Vector]
    real: dict[QueueName, Vector]
    """What queues may hold by the limits that are set."""
    room: dict[QueueName, Vector]
    """What queues may hold of this cluster: all but what is kept for their siblings."""
    guaranteed: dict[QueueName, tuple[Queue, ...]]
    """Of the children of a queue those that are guaranteed something."""

    def is_leaf(self, queue: QueueName) -> bool:
        """Whether no queue names it as its parent."""
        return queue not in self.parents

    def siblings(self, queue: Queue) -> tuple[Queue, ...]:
        """Queues with the same parent that are guaranteed something."""
        return self.guaranteed.get(queue.parent or ROOT_QUEUE, ())


def find_fault(ledger: Ledger) -> Refusal | None:
    """What breaks the tree: the first fault in the order of queue names, or None."""
    queues = ledger.snapshot.queues
    if ROOT_QUEUE not in queues:
        return _broken(ROOT_QUEUE, "queue root does not exist")
    for name in sorted(queues):
        path = ledger.path(name)
        if path[-1] != ROOT_QUEUE and len(path) > DEEPEST_QUEUE:
            text = f"queue {name} is more than {DEEPEST_QUEUE} levels below the root"
            return _broken(name, text)
        if path[-1] != ROOT_QUEUE:
            return _untied(name, path[-1], ledger.snapshot)
    parents = _parents(ledger.snapshot)
    for name in sorted(parents):
        if ledger.queue(name).groups:
            return _broken(name, f"queue {name} has child queues and groups of its own")
    return None


def plant(ledger: Ledger) -> Tree:
    """The limits of every queue; the tree is sound (:func:`find_fault` found nothing)."""
    snapshot, axis = ledger.snapshot, ledger.snapshot.axis
    guarantee = {n: limits.on_axis(q.guarantee, axis) for n, q in snapshot.queues.items()}
    deserved = {
        n: np.maximum(limits.on_axis(q.deserved, axis), guarantee[n])
        for n, q in snapshot.queues.items()
    }
    children = _children(snapshot)
    deserved[ROOT_QUEUE] = limits.total((deserved[n] for n in children.get(ROOT_QUEUE, ())), axis)
    real = _flow_down(snapshot, children=children, guarantee=guarantee)
    room = real
    if any(queue.guarantee for queue in snapshot.queues.values()):
        most = snapshot.total
        room = _flow_down(snapshot, children=children, guarantee=guarantee, most=most)
    return Tree(
        line={name: tuple(reversed(ledger.path(name))) for name in snapshot.queues},
        parents=frozenset(children),
        deserved=deserved,
        real=real,
        room=room,
        guaranteed={
            parent: limits.guaranteed(snapshot.queues[name] for name in names)
            for parent, names in children.items()
        },
    )


def _flow_down(
    snapshot: Snapshot,
    *,
    children: dict[QueueName, list[QueueName]],
    guarantee: dict[QueueName, Vector],
    most: Vector | None = None,
) -> dict[QueueName, Vector]:
    """The limits of all queues; there is ``most`` of what some queue is guaranteed."""
    axis = snapshot.axis
    root = limits.capability(snapshot.queues[ROOT_QUEUE], axis)
    capability = {ROOT_QUEUE: root}
    real = {ROOT_QUEUE: root}
    ahead = [ROOT_QUEUE]
    while ahead:
        parent = ahead.pop()
        below = children.get(parent, [])
        guaranteed = limits.total((guarantee[n] for n in below), axis)
        for name in below:
            above = real[parent]
            if most is not None:
                of_others = guaranteed > guarantee[name]
                above = np.where(of_others, np.minimum(above, most), above)
            unreserved = np.maximum(above - guaranteed, 0)
            own = limits.capability(snapshot.queues[name], axis)
            capability[name] = np.where(own < UNLIMITED, own, capability[parent])
            real[name] = np.minimum(unreserved + guarantee[name], capability[name])
        ahead += below
    return real


def _children(snapshot: Snapshot) -> dict[QueueName, list[QueueName]]:
    children: dict[QueueName, list[QueueName]] = {}
    for name, queue in snapshot.queues.items():
        if name != ROOT_QUEUE:
            children.setdefault(queue.parent or ROOT_QUEUE, []).append(name)
    return children


def _parents(snapshot: Snapshot) -> frozenset[QueueName]:
    return frozenset(_children(snapshot))


def _untied(name: QueueName, top: QueueName, snapshot: Snapshot) -> Refusal:
    parent = snapshot.queues[top].parent
    if parent in snapshot.queues:
        return _broken(name, f"queue {name} is its own ancestor or below a queue that is")
    return _broken(top, f"queue {top} names {parent} as its parent, which does not exist")


def _broken(queue: QueueName, detail: str) -> Refusal:
    return Refusal(Cause.QUEUE_BROKEN, where=queue, detail=detail)
