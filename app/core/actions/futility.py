"""Demands that failed in this cycle, so that equal ones are refused without trying.

While nothing is evicted, room and quota that are gone stay gone (trials that fail give back what
they took). So a failure is remembered with the moment of the ledger, and is void once something has
grown since (:meth:`~app.core.ledger.Ledger.only_filled_since`).

For demands of *one* kind (:mod:`app.core.actions.kinds`) whose rules do not look at other pods a
failure is final until then: the number of such pods that fit is the sum over the nodes of how many
fit on each, whatever the order they are placed in, and every placement, of any gang, can only lower
it; so can the queue's limits (a gang that is placed in room that was kept for it leaves the others
no more than before). When ``k`` of them did not fit, no later demand of the same queue for ``k`` or
more does.

Demands of several kinds (or with rules about other pods) are placed greedily, and what a greedy
choice leaves over may grow as well as shrink when others move in. Such a failure is only recalled
while the ledger is the same, number by number: so is the outcome then.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.core.actions.kinds import TaskKind, kind_of
from app.core.entries import Moment
from app.core.gangs.need import Need
from app.core.ledger import Ledger
from app.model.gang import Task
from app.model.ids import QueueName
from app.model.reason import Refusal
from app.model.resources import Vector

LONGEST = 256
"""Demands of more members are not compared: trying them is what their size costs anyway."""


class Demand(NamedTuple):
    """``what`` is asked for, hashable, for ``members`` of one kind, or exactly so (0)."""

    what: tuple[object, ...]
    members: int
    lasting: bool
    """Whether the demand stays futile when others take room."""


@dataclass(frozen=True, slots=True)
class Failure:
    """``refusal`` of the first member that did not fit.

    In all ``placed`` did; those before it had taken ``taken``.
    """

    refusal: Refusal
    placed: int
    taken: Vector
    since: Moment
    """When the demand failed, its trial rolled back."""


class Futility:
    """The failures of one cycle, by demand."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._failed: dict[tuple[object, ...], Failure] = {}

    def recall(self, demand: Demand | None) -> Failure | None:
        """The failure that tells that ``demand`` fails too, or None: it must be tried."""
        known = self._failed.get(demand.what) if demand is not None else None
        if known is None or demand is None or 0 < demand.members <= known.placed:
            return None
        ledger = self._ledger
        holds = ledger.only_filled_since if demand.lasting else ledger.is_as_at
        return known if holds(known.since) else None

    def remember(self, demand: Demand | None, failure: Failure) -> None:
        """``demand`` failed; its trial has been rolled back."""
        if demand is not None:
            self._failed[demand.what] = failure


def single(ledger: Ledger, queue: QueueName, task: Task) -> Demand | None:
    """The demand of one ``task``; None when it is special (pinned)."""
    return None if task.pinned else _uniform(queue, task, kind_of(task, ledger), 1)


def demand_of(
    ledger: Ledger, queue: QueueName, tasks: Sequence[Task], *, need: Need
) -> Demand | None:
    """The demand for what ``need`` lacks, out of ``tasks``; None: too special or too long."""
    if not tasks or len(tasks) > LONGEST or any(task.pinned for task in tasks):
        return None
    kinds = [kind_of(task, ledger) for task in tasks]
    if all(kind == kinds[0] for kind in kinds):
        return _uniform(queue, tasks[0], kinds[0], need.members)
    if any(task.nominated for task in tasks):
        return None
    wanted = tuple((task.role, kind) for task, kind in zip(tasks, kinds, strict=True))
    roles = tuple(sorted(need.roles.items()))
    return Demand((queue, need.total, roles, wanted), 0, lasting=False)


def ruled(demand: Demand | None, keys: tuple[Hashable, ...]) -> Demand | None:
    """``demand`` where plugins say more of nodes: what they say depends on ``keys``.

    A rule of theirs may allow a node again when others have moved in, so a failure does not last.
    """
    if demand is None or not keys:
        return demand
    return Demand((demand.what, keys), demand.members, lasting=False)


def _uniform(queue: QueueName, one: Task, kind: TaskKind, count: int) -> Demand:
    return Demand((queue, kind), count, lasting=not one.shape.looks_at_pods)
