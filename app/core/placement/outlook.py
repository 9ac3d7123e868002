"""Whether some node could take a task if nothing ran there: *never* or *not yet*.

A node that is away or cordoned may come back as it was, and so may one with a taint that tells of
its state; what the rules about other pods forbid goes when those pods go. Selectors, affinity, the
other taints and the size of a node stay.
"""

from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import MANY, Counts
from app.core.placement.statics import NodeFacts
from app.core.policy import Predicates
from app.model.gang import Task
from app.model.reason import Never
from app.model.resources import Mask, Matrix
from app.model.snapshot import NodeTable

_KEPT = 32_768
"""Answers remembered per generation of the nodes; the oldest goes first."""

_OF_STATE = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""How the keys of taints begin that Kubernetes sets and takes away by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """``allowed``: the nodes that the task may go to; ``large``: those of them that could hold it.

    Both whatever runs there.
    """

    allowed: Mask
    large: Mask

    @property
    def never(self) -> Never | None:
        """Why no node could ever take the task; None: one could, or the cluster has no nodes."""
        if self.large.any() or not len(self.allowed):
            return None
        return Never.NODES if self.allowed.any() else Never.RULED_OUT


def outlook(
    task: Task, facts: NodeFacts, predicates: Predicates, *, sizes: Matrix, pinned: int | None
) -> Outlook:
    """The outlook of ``task``.

    ``sizes`` has shape ``(N, R)``, ``pinned`` is the only row allowed.
    """
    allowed = _allowed(task, facts, predicates)
    if pinned is not None:
        allowed &= np.arange(len(allowed)) == pinned
    large = allowed.copy()
    for column, asked in enumerate(task.request.tolist()):
        if asked:
            large &= sizes[:, column] >= asked
    return Outlook(allowed, large)


def places_if_empty(
    task: Task, facts: NodeFacts, predicates: Predicates, *, sizes: Matrix, pinned: int | None
) -> Counts:
    """At most how many tasks like ``task`` each node would take if nothing ran there, shape (N,).

    ``sizes`` has shape ``(N, R)``, ``pinned`` is the only row allowed.
    """
    asked = np.flatnonzero(task.request > 0)
    places: Counts = (sizes[:, asked] // task.request[asked]).min(axis=1, initial=MANY)
    return np.where(outlook(task, facts, predicates, sizes=sizes, pinned=pinned).large, places, 0)


def known_never(
    task: Task,
    facts: NodeFacts,
    predicates: Predicates,
    *,
    table: NodeTable,
    pinned: int | None,
) -> Never | None:
    """Why no node of ``table`` could ever take ``task``; asked once for equal ones.

    It depends on the nodes, not on what runs there, so ``facts`` of the nodes keep the answer.
    """
    key = task.shape, task.pinned, predicates
    if key not in facts.never:
        while len(facts.never) >= _KEPT:
            del facts.never[next(iter(facts.never))]
        found = outlook(task, facts, predicates, sizes=table.sizes(), pinned=pinned)
        facts.never[key] = found.never
    return facts.never[key]


def _allowed(task: Task, facts: NodeFacts, predicates: Predicates) -> Mask:
    allowed = np.ones(len(facts.ready), dtype=np.bool_)
    if not predicates.enabled:
        return allowed
    if predicates.taints:
        for taint, nodes in facts.taints.repelling(task.shape.tolerations):
            if not taint.key.startswith(_OF_STATE):
                allowed &= ~nodes
    required = facts.selectors.required(task.shape) if predicates.node_affinity else None
    if required is not None:
        allowed &= required
    return allowed
