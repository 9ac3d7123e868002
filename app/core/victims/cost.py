"""The cost of evictions for a choice between nodes, as kube-scheduler counts it."""

from collections.abc import Collection

from app.core.protection.victim import Victim

_BEYOND = 1 << 31
"""More than any priority; with it each victim adds to a sum."""

Cost = tuple[int, int, int, float]


def cost_of(victims: Collection[Victim]) -> Cost:
    """The cost of one node's ``victims``; the node with the least is preferred.

    First counts the highest priority of a victim, then the sum of all priorities, then the number
    of victims, then how long the most important victims have been there.
    """
    highest = max((victim.priority for victim in victims), default=-_BEYOND)
    total = sum(victim.priority + _BEYOND for victim in victims)
    oldest = min((v.created for v in victims if v.priority == highest), default=0.0)
    return highest, total, len(victims), -oldest
