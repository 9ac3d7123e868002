"""Members that kube-scheduler gets ready for their nodes: volumes are made, devices prepared.

kube-scheduler does so in PreBind, before it calls Bind, and may take minutes. Until then the place
of such a member is neither unused nor late, and those of its gang that are at Bind wait for
something that is known to come. A claim without a provisioner never comes, so all this holds for a
bounded time only.
"""

from collections import Counter

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, Stage


def is_on_its_way(member: Member, *, before: float) -> bool:
    """Whether the member is in PreBind on the node it has its place on, not since ``before``."""
    is_there = member.in_prebind and member.node == member.chosen
    return is_there and member.stage is Stage.PLANNED and member.chosen_at >= before


def waits_for_prebind(group: Group, *, before: float) -> bool:
    """Whether the gang is complete at Bind once those on their way have come."""
    members = group.members.values()
    coming = Counter(m.part for m in members if is_on_its_way(m, before=before))
    return bool(coming) and group.complete_with(coming)


def longest_in_prebind(group: Group) -> Member | None:
    """The member that has been in PreBind for the longest, wherever it has its place by now."""
    preparing = [member for member in group.members.values() if member.in_prebind]
    return min(preparing, key=lambda m: (m.chosen_at, m.pod.name), default=None)
