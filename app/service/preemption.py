"""Preempt: the stock scheduler proposes victims, we strike out what must not be harmed.

A node stays in the answer with exactly the victims that were sent, or goes: kube-scheduler does not
check whether fewer victims make room, so leaving one out would evict the others in vain. No node
left is a clean veto.

A node goes when one of its victims

1. is not known here (the cache is behind: nothing can be said for it),
2. is protected: ``kube-system`` or a system-critical priority class (volcano.md §3.6, conformance),
3. belongs to a queue with ``reclaimable: false`` other than the preemptor's,
4. would leave a gang with fewer members than its minimum, unless the whole gang goes with it
   (members being bound count as there, members on their way out as gone),

or when a PodDisruptionBudget would be violated, or when its victims make too little room: what is
promised to others looks free to kube-scheduler, and Filter would refuse the node once the victims
are gone.

A pod of ours that Filter would tell to wait afterwards may not preempt: one whose PodGroup is not
there, or may still be given to it by a controller, and one that the planner would refuse even then,
for its queue holds what it may or does not take it. The planner is asked itself, on a snapshot
without the victims. A member of a gang never preempts through the stock scheduler at all: room for
one member is of no use without room for the gang, which is the planner's to make.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.cache.cluster import ClusterCache
from app.cache.groups import Group
from app.cache.members import PLACED_KINDS, Kind, Member, Stage
from app.model.ids import NO_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.pod import Pod
from app.model.resources import Amounts
from app.service.planning import Planning
from app.service.ports import Clock

PROTECTED_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
PROTECTED_NAMESPACE = "kube-system"


class Strike(StrEnum):
    """Why a node was struck out (metric label)."""

    GANG_PREEMPTOR = "gang-preemptor"
    UNKNOWN_VICTIM = "unknown-victim"
    CONFORMANCE = "conformance"
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
    """Which nodes may be preempted on, and why the others may not."""

    nodes: Mapping[NodeName, Candidate]
    struck: Mapping[NodeName, Strike]


Freed = frozenset[tuple[tuple[QueueName, Amounts], int]]
"""What victims give back: of which queue, which request, how many times."""


class Preemption:
    """Answers Preempt."""

    def __init__(self, cache: ClusterCache, *, planning: Planning, clock: Clock) -> None:
        self._cache = cache
        self._planning = planning
        self._clock = clock

    def guard(self, preemptor: Pod, candidates: Mapping[NodeName, Candidate]) -> Verdict:
        """Judge every node on its own."""
        member = self._member(preemptor) if self._cache.ours(preemptor) else None
        veto = self._veto(preemptor, member)
        if veto is not None:
            return Verdict({}, dict.fromkeys(candidates, veto))
        struck: dict[NodeName, Strike] = {}
        answers: dict[Freed, bool] = {}
        for node, candidate in candidates.items():
            strike = self._judge(preemptor, member, node, candidate)
            if strike is None and not self._may_have(member, node, candidate, answers):
                strike = Strike.REFUSED
            if strike is not None:
                struck[node] = strike
        kept = {node: c for node, c in candidates.items() if node not in struck}
        return Verdict(kept, struck)

    def _member(self, pod: Pod) -> Member | None:
        """A pod of ours, taken in as by Filter if the watch is behind; None when it is over."""
        if pod.uid not in self._cache.members:
            self._cache.set_pod(pod, now=self._clock(), observed=True)
        return self._cache.members.get(pod.uid)

    def _veto(self, pod: Pod, member: Member | None) -> Strike | None:
        """Why it may not preempt anywhere."""
        if not self._cache.ours(pod):
            return None
        group = self._cache.groups[member.group] if member is not None else None
        if group is None or not group.known:
            return Strike.GROUP_MISSING
        return Strike.GANG_PREEMPTOR if group.min_member > 1 else None

    def _judge(
        self, pod: Pod, member: Member | None, node: NodeName, candidate: Candidate
    ) -> Strike | None:
        """What speaks against the node but the planner."""
        queue = NO_QUEUE if member is None else self._cache.groups[member.group].queue
        strike = _harm(self._cache, candidate, queue=queue)
        if strike is not None:
            return strike
        return None if _has_room(self._cache, pod, node, candidate) else Strike.NO_ROOM

    def _may_have(
        self,
        member: Member | None,
        node: NodeName,
        candidate: Candidate,
        answers: dict[Freed, bool],
    ) -> bool:
        """Whether the planner gives it the node then; asked once about victims that are alike."""
        if member is None or member.stage is not Stage.WAITING:
            return True
        freed = _freed(self._cache, candidate)
        if freed not in answers:
            gone = frozenset(candidate.victims)
            answers[freed] = self._planning.may_have(member, node, without=gone)
        return answers[freed]


def _freed(cache: ClusterCache, candidate: Candidate) -> Freed:
    freed: Counter[tuple[QueueName, Amounts]] = Counter()
    for uid in candidate.victims:
        member, pod = cache.members.get(uid), _pod(cache, uid)
        counted = member is not None and member.kind in PLACED_KINDS
        queue = cache.groups[member.group].queue if member and counted else NO_QUEUE
        freed[queue, pod.shape.requests if pod else ()] += 1
    return frozenset(freed.items())


def _harm(cache: ClusterCache, candidate: Candidate, *, queue: QueueName) -> Strike | None:
    if candidate.budget_violations:
        return Strike.DISRUPTION_BUDGET
    victims = [_pod(cache, uid) for uid in candidate.victims]
    known = [pod for pod in victims if pod is not None]
    if len(known) < len(victims):
        return Strike.UNKNOWN_VICTIM
    if any(_is_protected(pod) for pod in known):
        return Strike.CONFORMANCE
    groups = _losses(cache, known)
    if any(_is_kept(cache, group, queue) for group, _ in groups):
        return Strike.NOT_RECLAIMABLE
    if any(_breaks(group, lost) for group, lost in groups):
        return Strike.GANG_MINIMUM
    return None


def _has_room(cache: ClusterCache, preemptor: Pod, node: NodeName, candidate: Candidate) -> bool:
    """Whether it fits once the victims are gone; what it was promised itself is its own."""
    request = cache.rooms.vector(preemptor.shape.requests)
    gone = frozenset({preemptor.uid, *candidate.victims})
    return node in cache.rooms.nodes and cache.rooms.has_room(node, request, without=gone)


def _pod(cache: ClusterCache, uid: PodUid) -> Pod | None:
    member = cache.members.get(uid)
    return member.pod if member is not None else cache.foreign.get(uid)


def _is_protected(pod: Pod) -> bool:
    return pod.namespace == PROTECTED_NAMESPACE or pod.priority_class in PROTECTED_CLASSES


def _losses(cache: ClusterCache, victims: Iterable[Pod]) -> list[tuple[Group, Counter[str]]]:
    """Per group of ours with victims: how many members it loses, by role."""
    lost: dict[GroupKey, Counter[str]] = {}
    for pod in victims:
        member = cache.members.get(pod.uid)
        if member is not None:
            roles = lost.setdefault(member.group, Counter())
            roles[pod.role] += member.kind in PLACED_KINDS
    return [(cache.groups[key], roles) for key, roles in lost.items()]


def _is_kept(cache: ClusterCache, group: Group, queue: QueueName) -> bool:
    owner = cache.queues.get(group.queue)
    return owner is not None and not owner.reclaimable and group.queue != queue


def _breaks(group: Group, lost: Counter[str]) -> bool:
    loses = lost.total()
    there = group.on_nodes + group.arrived.total()
    if not loses or loses >= there - group.kinds[Kind.SUCCEEDED]:
        return False
    return there - loses < group.min_member or any(
        group.role_on_nodes(role) + group.arrived[role] - lost[role] < least
        for role, least in group.role_minimum.items()
    )
