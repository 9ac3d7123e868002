"""The planner: one snapshot in, one plan out.

A cycle runs the configured actions in their order over one ledger. It is a generator that yields
after every bounded piece of work, so that an event loop can answer calls in between; nothing
outside is touched until the plan is published, and abandoning the generator abandons the cycle.

The outcome depends on the snapshot, the policies and ``now`` only: gangs, queues, tasks and nodes
are walked in total orders that end in names.
"""

from collections.abc import Generator
from typing import TypeVar

from app.core.actions.allocate import Turns, allocate
from app.core.actions.backfill import backfill
from app.core.actions.desk import Desk, Steps, open_desk
from app.core.actions.enqueue import enqueue, vote
from app.core.actions.minimum import reached
from app.core.placement.statics import ShapeCache
from app.core.policy import Policies
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.plan import Plan
from app.model.reason import Cause, Refusal
from app.model.snapshot import Snapshot

T = TypeVar("T")


def plan_steps(
    snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None
) -> Generator[None, None, Plan]:
    """A whole cycle over the pending gangs; ``now`` is seconds since the epoch."""
    desk = open_desk(snapshot, policies, now=now, shapes=shapes)
    yield
    gangs = sorted(snapshot.pending, key=lambda gang: gang.key)
    for action in policies.conf.actions:
        yield from _action(desk, action, gangs, policies)
    return desk.plan()


def _action(desk: Desk, name: str, gangs: list[Gang], policies: Policies) -> Steps:
    if name == "enqueue":
        yield from enqueue(desk, gangs)
    elif name == "allocate":
        yield from allocate(desk, gangs, enqueue="enqueue" in policies.conf.actions)
    elif name == "backfill":
        yield from backfill(desk, gangs)


def plan(
    snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None = None
) -> Plan:
    """A whole cycle in one go."""
    return _finish(plan_steps(snapshot, policies, now=now, shapes=shapes))


def plan_gang(
    snapshot: Snapshot,
    policies: Policies,
    *,
    key: GroupKey,
    now: float,
    shapes: ShapeCache | None = None,
) -> Plan:
    """One gang, on demand: let in if the vote says so, its minimum, then what else fits.

    Raises ``KeyError`` for a gang that the snapshot does not have.
    """
    desk = open_desk(snapshot, policies, now=now, shapes=shapes)
    gang = snapshot.gangs[key]
    if gang.hold_until > now:
        desk.refuse(gang, Refusal(Cause.COOLING_DOWN, where=key))
    elif desk.is_admitted(gang) or vote(desk, gang):
        overused = desk.opened.overused(gang.queue)
        if overused is not None:
            desk.refuse(gang, overused)
        else:
            _finish(_place_all(desk, gang))
    return desk.plan()


def _place_all(desk: Desk, gang: Gang) -> Generator[None, None, None]:
    turns = Turns(desk)
    more = bool(gang.waiting) or not reached(desk, gang)
    while more:
        more = yield from turns.take(gang)
    yield from backfill(desk, [gang])


def _finish(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
