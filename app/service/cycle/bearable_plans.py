"""Whether the live cluster bears a plan of evictions, which was made on a snapshot.

A pod that is evicted by mistake is lost, so everything that the plan goes by is looked at again:
its preemptor asks for the same and waits, its victims are the same pods and still there, each in no
other plan, and with them gone the nodes have the room that the places take.
"""

from app.cache.cluster import ClusterCache
from app.cache.gangs.views import asks_like
from app.model.eviction import EvictionPlan, VictimPod
from app.model.gang import Gang
from app.model.pod import TERMINAL


def unbearable(plan: EvictionPlan, gang: Gang | None, cache: ClusterCache) -> str:
    """What speaks against the plan by now; empty: nothing. ``gang`` is its preemptor as planned."""
    if plan.preemptor:
        why = _not_wanted(plan, gang, cache)
        if why:
            return why
    if not plan.victims and not plan.preemptor:
        return "it has no victims"
    if len({victim.uid for victim in plan.victims}) < len(plan.victims):
        return "a victim is named twice"
    for victim in plan.victims:
        why = _stays(victim, cache)
        if why:
            return f"{victim.namespace}/{victim.name} {why}"
    return "" if cache.pipelined.bears(plan) else "its nodes would not have the room"


def _not_wanted(plan: EvictionPlan, gang: Gang | None, cache: ClusterCache) -> str:
    """Why the preemptor does not take the places as planned."""
    group = cache.groups.get(plan.preemptor)
    if gang is None or group is None or not group.known or group.deleting:
        return "its group is gone"
    if plan.preemptor not in cache.registry.pending or group.placed_minimum:
        return "its group waits no more"
    if not asks_like(group, gang):
        return "its group asks for something else"
    if plan.preemptor in cache.pipelined.preemptors():
        return "its group waits for other pods to go"
    if not plan.places:
        return "it has no places"
    if any(not p.task.is_slot and p.task.uid not in group.waiting for p in plan.places):
        return "a member waits no more"
    return ""


def _stays(victim: VictimPod, cache: ClusterCache) -> str:
    """Why the pod is not the one that was to go, or may not go for this plan."""
    member = cache.members.get(victim.uid)
    if member is None or member.pod.status in TERMINAL:
        return "is gone"
    if member.pod.node != victim.node:
        return f"does not run on {victim.node}"
    if member.group != victim.gang:
        return "is in another group"
    if cache.pipelined.is_victim(victim.uid):
        return "goes for another group"
    return ""
