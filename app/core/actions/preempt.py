"""preempt, gangpreempt: room that pods of the same queue have (volcano.md §3.5).

A gang takes the room of members of lower priority: of other gangs of its queue, and of its own.
``gangpreempt`` asks the plugins as one point about both kinds of eviction; whole gangs may be its
victims.
"""

from app.core.actions.contention import contend
from app.core.actions.cycle import Cycle, Steps
from app.model.eviction import EvictionAction


def preempt(cycle: Cycle) -> Steps:
    """Evict in the queue of the preemptor."""
    yield from contend(cycle, EvictionAction.PREEMPT)


def gangpreempt(cycle: Cycle) -> Steps:
    """Evict in the queue of the preemptor, gang by gang."""
    yield from contend(cycle, EvictionAction.GANG_PREEMPT)
