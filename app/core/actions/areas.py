"""The nodes that rules about others leave to a gang, or to one of its sub-groups.

Rules about nodes hold for each place by themselves. Searches look at these nodes alone, so that
domains, victims and room to keep are found where members may be.
"""

import numpy as np

from app.core.actions.cycle import Cycle
from app.core.policy import NodesNow
from app.model.gang import Gang, Task
from app.model.parts import SubGroup
from app.model.reason import Cause
from app.model.resources import Mask, Rows


def open_rows(cycle: Cycle, gang: Gang, sub_group: SubGroup | None = None) -> Rows | None:
    """The rows that rules of plugins leave to the gang, or to the sub-group, of those within.

    None: all.
    """
    area = area_of(cycle, gang, sub_group)
    if area is None:
        return cycle.within
    rows = np.flatnonzero(area)
    return rows if cycle.within is None else np.intersect1d(cycle.within, rows)


def area_of(cycle: Cycle, gang: Gang, sub_group: SubGroup | None = None) -> Mask | None:
    """The nodes that rules of plugins leave to the gang, or to the sub-group; None: all."""
    masks = [area(gang, sub_group) for area in cycle.opened.node_areas]
    known = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(known) if known else None


def affinity_note(cycle: Cycle, gang: Gang, task: Task) -> str:
    """The places of others that ``topologyAffinity`` of the gang goes by; empty: it has none."""
    every = np.arange(len(cycle.room), dtype=np.intp)
    now = NodesNow(every, cycle.room.T)
    rules = (each for each in cycle.opened.node_rules if each.cause is Cause.TOPOLOGY_AFFINITY)
    told = (
        rule.details(gang, task, now)
        for rule in rules
        if rule.details is not None and rule.key(gang, task) is not None
    )
    return "; ".join(told)
