"""What a replica believes when it begins to lead: what the API server shows, and nothing else.

It may have led before, and knows then what has changed without it since.
"""

from app.cache.cluster import ClusterCache
from app.model.workload import GroupPhase


def take_over(cache: ClusterCache) -> None:
    """Forget what was true when this replica led last, if ever.

    Phases are those that the last leader stored. Pods alone have none: they are voted on anew, as
    after a restart. Nominations are the last leader's, or those of kube-scheduler. No group is set
    aside: nobody said why.
    """
    cache.registry.look_again()
    for key, group in list(cache.groups.items()):
        if group.pod_group is not None:
            cache.set_phase(key, group.pod_group.phase)
        elif group.solo:
            cache.set_phase(key, GroupPhase.NEW)
    for uid in cache.nominated_members:
        member = cache.members.get(uid)
        if member is not None:
            member.hinted = member.pod.left_nomination
