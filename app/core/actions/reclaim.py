"""reclaim, gangreclaim: room that other queues hold beyond what they deserve (volcano.md §3.5).

A queue takes back what it deserves and no more: its gang must fit in that, and the victims are of
queues that hold more than they deserve.
"""

from app.core.actions.contention import contend
from app.core.actions.cycle import Cycle, Steps
from app.model.eviction import EvictionAction


def reclaim(cycle: Cycle) -> Steps:
    """Evict for queues that hold less than they deserve."""
    yield from contend(cycle, EvictionAction.RECLAIM)


def gangreclaim(cycle: Cycle) -> Steps:
    """Evict for queues that hold less than they deserve, gang by gang."""
    yield from contend(cycle, EvictionAction.GANG_RECLAIM)
