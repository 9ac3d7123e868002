"""Room that a member leaves stays its gang's: a waiting member takes it at once, or a slot.

The member is of the same sub-group, as another would not make that one whole, and the place keeps
its class of exchange: it is not taken out of the domain of the network where the others are.

A gang that has lost a member is of no use until another one takes its place, so that room must not
go to others in between: not when the member ends, long before its object is gone, and not before
the planner looks next. The room is kept where the member was, as soon as it is free, and a slot
lasts as long as any other (:mod:`app.service.cycle.expiry`).

Of a member that has failed it shows a moment later whether its owner makes another one: then it
deletes the failed one, or creates the other. If it does neither, the room goes to others.

What is evicted for other pods leaves nothing to its gang: those pods are to have the room.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.cache.gangs.story import Stimulus
from app.cache.pods import Vacated
from app.model.amounts import is_best_effort
from app.model.gang import Task
from app.model.ids import NO_NODE, PodUid
from app.model.parts import SubGroup, part_of
from app.model.plan import GangPlacement, Placement
from app.model.pod import Pod, TaskStatus
from app.model.workload import GroupPhase
from app.service.activity import Activity
from app.service.cycle.publishing import Published
from app.service.limits import Limits
from app.service.ports import Clock


@dataclass(slots=True, eq=False)
class Heirs:
    """Makes the slots, if this replica leads; called after each batch of events."""

    cache: ClusterCache
    activity: Activity
    limits: Limits
    clock: Clock
    told: Sequence[Published]
    """Followers of places that waiting members get."""
    _failed: dict[PodUid, float] = field(default_factory=dict)
    """Until when owners of failed pods may show that they want others; the earliest first."""

    def settle(self) -> None:
        """Keep what members have left since this was called last."""
        vacated, self.cache.pods.vacated = self.cache.pods.vacated, []
        if not self.activity.active:
            self._failed.clear()
            return
        for each in vacated:
            group = self.cache.groups.get(each.group)
            evicted = self.cache.pipelined.is_victim(each.pod.uid)
            if group is not None and not evicted and _inherits(group, each.pod):
                self._keep(group, each)

    def expire(self, now: float) -> None:
        """Give up on members that failed and that no owner replaces."""
        while self._failed and next(iter(self._failed.values())) <= now:
            uid = next(iter(self._failed))
            del self._failed[uid]
            member = self.cache.members.get(uid)
            if member is None or member.pod.deleting:
                continue
            self.cache.decisions.replace_by_another(member, lost=False)
            self.cache.slots.drop_surplus(self.cache.groups[member.group])

    def _keep(self, group: Group, left: Vacated) -> None:
        pod, now = left.pod, self.clock()
        member = self.cache.members.get(pod.uid)
        if member is not None and not member.lost:
            if member.pod.status is not TaskStatus.FAILED:
                return
            self.cache.decisions.replace_by_another(member, lost=True)
            self._failed[pod.uid] = now + self.limits.failed_s
        heir = _waiting(group, left)
        task = self._slot(pod) if heir is None else heir.task
        place = Placement(task, left.node, left.exchange, _sub_group(group, pod))
        decided = GangPlacement(group.key, (place,), whole=True)
        if self.cache.reservations.reserve(decided, now=now, by=Stimulus.HEIR):
            for tell in self.told:
                tell(decided)

    def _slot(self, pod: Pod) -> Task:
        return Task(
            uid=PodUid(""),
            name=f"{pod.role}#{pod.name}",
            role=pod.role,
            shape=pod.shape,
            request=self.cache.node_usage.vector(pod.shape.requests),
            priority=0,
            created=pod.created,
            best_effort=is_best_effort(pod.shape.requests),
        )


def _waiting(group: Group, left: Vacated) -> Member | None:
    """The member that waits for such a place, the oldest of them; None: there is none."""
    pod, sub_group = left.pod, _sub_group(group, left.pod)
    alike = [
        member
        for member in group.waiting.values()
        if (member.pod.role, member.part.sub_group) == (pod.role, sub_group)
        and member.pod.pinned in (left.node, NO_NODE)
        and pod.shape.fits_like(member.pod.shape)
    ]
    return min(alike, key=lambda member: (member.pod.created, member.pod.name), default=None)


def _sub_group(group: Group, pod: Pod) -> SubGroup:
    return part_of(pod.role, pod.labels, group.sub_groups).sub_group


def _inherits(group: Group, pod: Pod) -> bool:
    """Whether the gang is torn without the pod, and may want another one."""
    if pod.preempted or group.phase is GroupPhase.COMPLETED:
        return False
    return bool(group.owed) and group.lacks(pod.role)
