"""Why a group does not run yet, whatever it waits for.

The planner's refusal comes first. A gang that has its room can still wait: for members that no
owner has created, or since kube-scheduler's own filters (volumes, devices, …) refuse one of them
before we are asked. kube-scheduler says so on the pod only; here it becomes a reason like all
others. So does a volume that does not come, after the time in which the room was kept for it.
"""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, floor

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState
from app.cache.gangs.prebind import longest_in_prebind
from app.core.plugins.gang import unseen
from app.core.texts import ONE_BY_ONE, is_filter_text
from app.model.amounts import PODS
from app.model.reason import MEMBERS_MISSING, SCHEDULER, Cause, Holder, Refusal
from app.service.cycle.evictions import Evictions
from app.service.cycle.last_plan import LastPlan
from app.service.limits import Limits
from app.service.ports import Clock
from app.service.telling.evicting import of_member, pipelined
from app.service.telling.hiding import Wording
from app.service.telling.network import holders_in
from app.wire import times

CREATING_S = 3.0
"""How long after a member was created the next one may be on its way."""
_PLACED = frozenset({MemberState.PLACED})
_UNBOUND = frozenset({MemberState.PLACED, MemberState.WAITING})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reasons:
    """The reasons of groups, worked out when asked for: nothing is kept."""

    cache: ClusterCache
    last_plan: LastPlan
    evictions: Evictions
    limits: Limits
    clock: Clock
    wording: Wording

    def of(self, group: Group) -> Refusal | None:
        """Why the group, or the rest of it, waits; None when nothing is missing."""
        begun = self.evictions.of(group.key)
        gang = None if begun is None else self.cache.registry.view(group.key)
        if begun is not None and gang is not None:
            return pipelined(self.cache, begun, gang)
        refusal = self._without_evictions(group)
        pause = self.evictions.pauses.of(group.key, now=self.clock())
        if refusal is None or pause is None:
            return refusal
        until = times.seconds(ceil(pause.until))
        return replace(refusal, note=f"no pods are evicted for it until {until}: {pause.why}")

    def of_member(self, group: Group, member: Member) -> Refusal | None:
        """Why a member of the group waits: if it waits for pods to go, for which place."""
        refusal, begun = self.of(group), self.evictions.of(group.key)
        if refusal is None or begun is None:
            return refusal
        return of_member(self.cache, refusal, begun, member)

    def _without_evictions(self, group: Group) -> Refusal | None:
        refusal = self._plain(group)
        if refusal is None:
            return None
        if refusal.cause is Cause.GATED:
            return replace(refusal, holders=_gates(group))
        if refusal.cause in MEMBERS_MISSING:
            if group.given_up and refusal.detail:
                refusal = replace(refusal, detail=f"{refusal.detail}: {self._given_up()}")
            if group.is_one_of_a_stateful_set:
                refusal = replace(
                    refusal,
                    detail=f"{refusal.detail}: {ONE_BY_ONE}" if refusal.detail else "",
                    note=ONE_BY_ONE,
                )
            return replace(refusal, holders=_other_schedulers(self.cache, group))
        best = None if refusal.domain is None else refusal.domain.nearest
        if best is not None and not best.empty:
            return replace(refusal, holders=holders_in(self.cache, best, besides=group.key))
        return refusal

    def settle_in_s(self, group: Group) -> float:
        """How long until members that do not exist yet are a reason; 0: they are, or exist.

        The group may be gone by now, and another one have its key.
        """
        if not group.members or _unseen(self.cache, group) is None:
            return 0.0
        newest = max(member.pod.created for member in group.members.values())
        return max(newest + CREATING_S - self.clock(), 0.0)

    def _plain(self, group: Group) -> Refusal | None:
        if not group.known:
            return _missing(group)
        refusal = self.last_plan.refusals.get(group.key)
        if refusal is None or _is_of_others(self.cache, group):
            on_the_way = self.settle_in_s(group)
            missing = None if on_the_way else _unseen(self.cache, group)
            return self._stuck_in_prebind(group) or _complaint(group, of=_PLACED) or missing
        if refusal.cause is Cause.COOLING_DOWN:
            known = self._stuck_in_prebind(group) or _complaint(group, of=_UNBOUND)
            return known or replace(refusal, detail=_until(group))
        return refusal

    def _given_up(self) -> str:
        kept_s = self.limits.slot_s
        return f"room was kept for {kept_s:g} s and is given up until another member comes"

    def _stuck_in_prebind(self, group: Group) -> Refusal | None:
        """The member that is in PreBind for longer than the room of the gang is kept for that."""
        if group.reached_minimum:
            return None
        member = longest_in_prebind(group)
        patience_s = self.limits.in_prebind_s(self.cache.bind_timeout_s)
        if member is None or member.chosen_at >= self.clock() - patience_s:
            return None
        text = prebind_text(member)
        return Refusal(Cause.IN_PREBIND, where=member.pod.key, detail=text, lacking=1)


def _missing(group: Group) -> Refusal:
    """The refusal of a group that does not exist.

    A pod that waits for the group of its owner has no name of it to tell. Nor has a single pod,
    whose namespace tells the queue.
    """
    pod = next((member.pod for member in group.members.values()), None)
    if group.solo and group.lacks_namespace:
        text = f"namespace {group.namespace}, which may name the queue, is not known yet"
        return Refusal(Cause.GROUP_MISSING, where=group.key, detail=text)
    if not group.solo or pod is None or pod.owner is None:
        return Refusal(Cause.GROUP_MISSING, where=group.key)
    text = f"{pod.key}: waiting for the pod group of {pod.owner.kind} {pod.owner.name} to exist"
    return Refusal(Cause.GROUP_MISSING, where=pod.key, detail=text)


def _is_of_others(cache: ClusterCache, group: Group) -> bool:
    """Whether a refusal is that of members beyond a minimum that waits for its own members."""
    return group.placed_minimum and _unseen(cache, group) is not None


def _complaint(group: Group, *, of: frozenset[MemberState]) -> Refusal | None:
    """What kube-scheduler says of members that are ``of`` these kinds, the first by name."""
    if group.reached_minimum:
        return None
    refused = [m for m in group.members.values() if _is_refused(m) and m.kind in of]
    if not refused:
        return None
    pod = min((member.pod for member in refused), key=lambda pod: pod.name)
    text = f"kube-scheduler refuses pod {pod.key}: {pod.complaint}"
    return Refusal(Cause.SCHEDULER_REFUSES, where=pod.key, detail=text, lacking=len(refused))


def prebind_text(member: Member) -> str:
    """What kube-scheduler does with a member in PreBind."""
    since = times.seconds(floor(member.chosen_at))
    return (
        f"kube-scheduler waits for volumes or devices of pod {member.pod.key} "
        f"on node {member.chosen} since {since}"
    )


def _is_refused(member: Member) -> bool:
    return bool(member.pod.complaint) and not is_filter_text(member.pod.complaint)


def _unseen(cache: ClusterCache, group: Group) -> Refusal | None:
    gang = cache.registry.view(group.key)
    return None if gang is None else unseen(gang)


def _until(group: Group) -> str:
    """When the cool-down ends, in a text that stays for one pause, so that it is written once."""
    return (
        "its places were not used in time: "
        f"others go first until {times.seconds(ceil(group.cool_down_until))}"
    )


def _gates(group: Group) -> tuple[Holder, ...]:
    """Foreign gates, and how many members each holds."""
    counts = Counter(gate for m in group.members.values() for gate in m.pod.foreign_gates)
    return tuple(
        Holder(who=f"gate {gate}", resource=PODS, amount=count)
        for gate, count in sorted(counts.items())
    )


def _other_schedulers(cache: ClusterCache, group: Group) -> tuple[Holder, ...]:
    """Schedulers that have bound pods that name the group, and how many each."""
    return tuple(
        Holder(who=f"{SCHEDULER} {name}", resource=PODS, amount=count)
        for name, count in sorted(cache.pods.foreign_members.of(group.key).items())
    )
