"""Pods and gangs as the rules about victims look at them (:mod:`app.core.protection`)."""

from app.cache.gangs.groups import Group
from app.cache.gangs.members import ON_NODE_KINDS, PLACED_KINDS, Member, MemberState
from app.core.protection.victim import Victim, VictimGang
from app.model.pod import Pod


def foreign_victim(pod: Pod) -> Victim:
    """A foreign pod as a victim: it is in no gang and no queue, and is not asked."""
    return Victim(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        labels=pod.labels,
        node=pod.node,
        created=pod.created,
        request=pod.shape.requests,
        priority=pod.priority,
        priority_class=pod.priority_class,
        deleting=pod.deleting,
    )


def member_victim(member: Member, group: Group) -> Victim:
    """A member of ``group`` as a victim."""
    pod, pod_group = member.pod, group.pod_group
    return Victim(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        labels=pod.labels,
        node=member.charged_node,
        created=pod.created,
        request=pod.shape.requests,
        priority=pod.priority,
        priority_class=pod.priority_class,
        preemptable=pod.preemptable_in(pod_group.preemptable if pod_group else None),
        deleting=pod.deleting,
        gang=group.key,
        queue=group.queue,
        part=member.part,
        there=member.kind in PLACED_KINDS,
    )


def victim_gang(group: Group) -> VictimGang:
    """What ``group`` has on nodes or at Bind, and its minimum."""
    return VictimGang(
        members=group.counted.parts(ON_NODE_KINDS) + group.counted.arrivals.at_bind,
        finished=group.counted.kinds[MemberState.SUCCEEDED],
        min_member=group.min_member,
        role_minimum=group.role_minimum,
        sub_groups=group.sub_groups,
    )
