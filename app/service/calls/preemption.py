"""Preempt: the stock scheduler proposes victims, we strike out what must not be harmed.

A node stays in the answer with exactly the victims that were sent, or goes: kube-scheduler does not
check whether fewer victims make room, so leaving one out would evict the others in vain. No node
left is a clean veto. Of those left the answer has one, that which kube-scheduler itself would take,
so that we know what goes: what one preemptor may evict counts as lost for the next ones, which are
asked about before the watch shows it (:mod:`app.service.cycle.allowed_victims`).

A node goes when one of its victims

1. is not known here (the cache is behind: nothing can be said for it),
2. is protected: ``kube-system`` or a system-critical priority class (volcano.md §3.6, conformance),
3. is of ours and says that it is not preemptable (volcano.md §3.1),
4. belongs to a queue with ``reclaimable: false`` other than the preemptor's,
5. would leave a gang with fewer members than its minimum, unless the whole gang goes with it
   (members being bound count as there, members on their way out as gone),

or when a PodDisruptionBudget would be violated, or when its victims make too little room: what is
promised to others looks free to kube-scheduler, and Filter would refuse the node once the victims
are gone.

A pod of ours that Filter would tell to wait afterwards may not preempt: one whose PodGroup is not
there, or may still be given to it by a controller, and one that the planner would refuse even then,
for its queue holds what it may or does not take it. The planner is asked itself, on a snapshot
without the victims. Those that were let through before it and still wait ask there too: what is
left of a quota is for one of them. It is asked about few of the nodes only
(:mod:`app.service.calls.candidate_order`). A member of a gang never preempts through the stock
scheduler at all: room for one member is of no use without room for the gang, which is the planner's
to make.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import PLACED_KINDS, Member, MemberState, Stage
from app.model.ids import NO_NODE, NO_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.parts import Part
from app.model.pod import Pod
from app.service.calls.candidate_order import first_accepted, freed_by, tries_with
from app.service.calls.catching_up import LateGroups
from app.service.cycle.allowed_victims import AllowedVictims, Losses
from app.service.cycle.queries import Queries
from app.service.ports import Clock

PROTECTED_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
PROTECTED_NAMESPACE = "kube-system"

_BEYOND = 1 << 31
"""More than any priority; with it each victim adds to a sum."""


class Strike(StrEnum):
    """Why a node was struck out (metric label)."""

    GANG_PREEMPTOR = "gang-preemptor"
    UNKNOWN_VICTIM = "unknown-victim"
    CONFORMANCE = "conformance"
    NOT_PREEMPTABLE = "not-preemptable"
    NOT_RECLAIMABLE = "not-reclaimable"
    GANG_MINIMUM = "gang-minimum"
    DISRUPTION_BUDGET = "disruption-budget"
    NO_ROOM = "no-room"
    GROUP_MISSING = "group-missing"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The victims kube-scheduler would evict on one node."""

    victims: tuple[PodUid, ...]
    budget_violations: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The node that may be preempted on, if any, and why others may not."""

    nodes: Mapping[NodeName, Candidate]
    struck: Mapping[NodeName, Strike]


class Preemption:
    """Answers Preempt."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        queries: Queries,
        allowed_victims: AllowedVictims,
        late_groups: LateGroups,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._queries = queries
        self._allowed_victims = allowed_victims
        self._late_groups = late_groups
        self._clock = clock

    async def guard_in_time(
        self, preemptor: Pod, candidates: Mapping[NodeName, Candidate]
    ) -> Verdict:
        """The verdict once the watch shows the preemptor's group, if it does so in a moment.

        A refusal lasts: kube-scheduler asks again when a pod has gone, or after five minutes.
        """
        verdict = self.guard(preemptor, candidates)
        if await self._late_groups.comes(preemptor.uid):
            return self.guard(preemptor, candidates)
        return verdict

    def guard(self, preemptor: Pod, candidates: Mapping[NodeName, Candidate]) -> Verdict:
        """Judge every node on its own, and take the best of those that stand."""
        member = self._member(preemptor) if self._cache.pods.ours(preemptor) else None
        veto = self._veto(preemptor, member)
        if veto is not None:
            return Verdict({}, dict.fromkeys(candidates, veto))
        losses = self._allowed_victims.losses(besides=preemptor.uid)
        struck = self._struck(preemptor, member, candidates, losses)
        standing = {node: c for node, c in candidates.items() if node not in struck}
        order = sorted(standing, key=lambda node: (_cost(self._cache, standing[node]), node))
        chosen = self._first(member, {node: standing[node] for node in order}, losses)
        if chosen is None:
            return Verdict({}, struck | dict.fromkeys(standing, Strike.REFUSED))
        victims = _known(self._cache, standing[chosen])
        self._allowed_victims.add(preemptor.uid, chosen, victims)
        if member is not None:
            # kube-scheduler nominates it next, be it where we had done so
            self._cache.decisions.nominated(member, NO_NODE)
        return Verdict({chosen: standing[chosen]}, struck)

    def _struck(
        self,
        pod: Pod,
        member: Member | None,
        candidates: Mapping[NodeName, Candidate],
        losses: Losses,
    ) -> dict[NodeName, Strike]:
        """The nodes that something speaks against but the planner."""
        queue = NO_QUEUE if member is None else self._cache.groups[member.group].queue
        struck: dict[NodeName, Strike] = {}
        for node, candidate in candidates.items():
            strike = _harm(self._cache, candidate, queue=queue, losses=losses)
            if strike is None and not _has_room(self._cache, pod, node, candidate):
                strike = Strike.NO_ROOM
            if strike is not None:
                struck[node] = strike
        return struck

    def _first(
        self, member: Member | None, standing: Mapping[NodeName, Candidate], losses: Losses
    ) -> NodeName | None:
        """The first node that the planner gives it when the victims are gone."""
        if member is None or member.stage is not Stage.WAITING or not standing:
            return next(iter(standing), None)
        rivals, what_if = self._rivals(losses), self._queries.what_if(gone=losses.pods)

        def has(node: NodeName) -> bool:
            places = {**rivals, member.pod.uid: node}
            gone = standing[node].victims
            return member.pod.uid in what_if.would_have(places, without=gone)

        pod, queue = member.pod, self._cache.groups[member.group].queue
        freed = {
            node: freed_by(
                self._cache,
                (uid for uid in candidate.victims if uid not in losses.pods),
                namespace=pod.namespace,
            )
            for node, candidate in standing.items()
        }
        tries = tries_with(len(rivals))
        return first_accepted(freed, has, queue=queue, asked=pod.shape.requests, tries=tries)

    def _rivals(self, losses: Losses) -> dict[PodUid, NodeName]:
        """Who else is to come where: nominated after an eviction, or about to be.

        They take of their queues what looks free until they have their places.
        """
        pending = self._cache.registry.pending.values()
        waiting = [member for group in pending for member in group.waiting.values()]
        nominated = {m.pod.uid: m.evicted_for_on for m in waiting if m.evicted_for_on}
        return {**nominated, **losses.preemptors}

    def _member(self, pod: Pod) -> Member | None:
        """A pod of ours, taken in as by Filter if the watch is behind; None when it is over."""
        if pod.uid not in self._cache.members:
            self._cache.set_pod(pod, now=self._clock(), observed=True)
        return self._cache.members.get(pod.uid)

    def _veto(self, pod: Pod, member: Member | None) -> Strike | None:
        """Why it may not preempt anywhere."""
        if not self._cache.pods.ours(pod):
            return None
        group = self._cache.groups[member.group] if member is not None else None
        if group is None or not group.known:
            return Strike.GROUP_MISSING
        return Strike.GANG_PREEMPTOR if group.is_gang else None


def _known(cache: ClusterCache, candidate: Candidate) -> list[Pod]:
    return [pod for pod in map(cache.pods.pod, candidate.victims) if pod is not None]


def _cost(cache: ClusterCache, candidate: Candidate) -> tuple[int, int, int, float]:
    """What kube-scheduler goes by, the least first.

    The highest priority of a victim, the sum of all, their number, and how long the most important
    ones are there.
    """
    victims = _known(cache, candidate)
    highest = max((pod.priority for pod in victims), default=-_BEYOND)
    total = sum(pod.priority + _BEYOND for pod in victims)
    oldest = min((pod.created for pod in victims if pod.priority == highest), default=0.0)
    return highest, total, len(victims), -oldest


def _harm(
    cache: ClusterCache, candidate: Candidate, *, queue: QueueName, losses: Losses
) -> Strike | None:
    known = _known(cache, candidate)
    if candidate.budget_violations or _exceeds(cache, known, losses):
        return Strike.DISRUPTION_BUDGET
    if len(known) < len(candidate.victims):
        return Strike.UNKNOWN_VICTIM
    if any(_is_protected(pod) for pod in known):
        return Strike.CONFORMANCE
    if any(cache.pods.ours(pod) and not pod.preemptable for pod in known):
        return Strike.NOT_PREEMPTABLE
    groups = _members(cache, known)
    if any(_is_kept(cache, cache.groups[key], queue) for key in groups):
        return Strike.NOT_RECLAIMABLE
    if any(
        _breaks(cache.groups[key], victims, losses.members.get(key, ()))
        for key, victims in groups.items()
    ):
        return Strike.GANG_MINIMUM
    return None


def _exceeds(cache: ClusterCache, victims: Iterable[Pod], losses: Losses) -> bool:
    """Whether a budget allows too few for these and what others evict.

    kube-scheduler has seen to it that it allows these alone.
    """
    going = [pod for pod in victims if not pod.deleting]
    for key, theirs in losses.budgets.items():
        budget = cache.budgets[key]
        if len(theirs) + len(going) <= budget.allowed:
            continue  # whichever of them it covers: comparing labels costs the most
        mine = {pod.uid for pod in going if budget.covers(pod)}
        if mine and len(mine.union(theirs)) > budget.allowed:
            return True
    return False


def _has_room(cache: ClusterCache, preemptor: Pod, node: NodeName, candidate: Candidate) -> bool:
    """Whether it fits once the victims are gone; what it was promised itself is its own."""
    request = cache.node_usage.vector(preemptor.shape.requests)
    gone = frozenset({preemptor.uid, *candidate.victims})
    return node in cache.node_usage.nodes and cache.node_usage.has_room(node, request, without=gone)


def _is_protected(pod: Pod) -> bool:
    return pod.namespace == PROTECTED_NAMESPACE or pod.priority_class in PROTECTED_CLASSES


def _members(cache: ClusterCache, victims: Iterable[Pod]) -> dict[GroupKey, set[PodUid]]:
    """The members of groups of ours among ``victims``."""
    found: dict[GroupKey, set[PodUid]] = {}
    for pod in victims:
        member = cache.members.get(pod.uid)
        if member is not None:
            found.setdefault(member.group, set()).add(pod.uid)
    return found


def _is_kept(cache: ClusterCache, group: Group, queue: QueueName) -> bool:
    owner = cache.queues.get(group.queue)
    return owner is not None and not owner.reclaimable and group.queue != queue


def _breaks(group: Group, victims: Collection[PodUid], others: Collection[PodUid]) -> bool:
    """Whether it were left in part; ``others`` are members that may have been evicted already."""
    mine = _placed(group, victims)
    there = (
        group.on_nodes
        + group.counted.arrivals.at_bind.total()
        - group.counted.kinds[MemberState.SUCCEEDED]
    )
    if not mine or mine.total() >= there:
        return False
    return not group.complete_without(_placed(group, {*victims, *others}))


def _placed(group: Group, uids: Iterable[PodUid]) -> Counter[Part]:
    """How many of these members it counts as there, by what they count for."""
    members = (group.members[uid] for uid in uids)
    return Counter(member.part for member in members if member.kind in PLACED_KINDS)
