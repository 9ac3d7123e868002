"""Preempt: the stock scheduler proposes victims, we strike out what must not be harmed.

A node stays in the answer with exactly the victims that were sent, or goes: kube-scheduler does not
check whether fewer victims make room, so leaving one out would evict the others in vain. No node
left is a clean veto. Of those left the answer has one, that which kube-scheduler itself would take,
so that we know what goes: what one preemptor may evict counts as lost for the next ones, which are
asked about before the watch shows it (:mod:`app.service.cycle.allowed_victims`).

The rules are those of :mod:`app.core.protection`, all of them, whatever the conf switches. A node
goes when one of its victims

1. is not known here (the cache is behind: nothing can be said for it),
2. is protected: ``kube-system`` or a system-critical priority class (volcano.md §3.6, conformance),
3. is of ours and says that it is not preemptable (volcano.md §3.1),
4. belongs to a queue with ``reclaimable: false`` other than the preemptor's,
5. would leave a gang with fewer members than its minimum, unless the whole gang goes with it
   (members being bound count as there, members on their way out as gone),

or when a PodDisruptionBudget would be violated, or when its victims make too little room: what is
reserved for others looks free to kube-scheduler, and Filter would refuse the node once the victims
are gone.

A pod of ours that Filter would tell to wait afterwards may not preempt: one whose PodGroup is not
there, or may still be given to it by a controller, and one that the planner would refuse even then,
as its queue holds what it may or does not take it. The planner is asked itself, on a snapshot
without the victims. Preemptors that were allowed victims before and still wait ask there too: what
is left of a quota is for one of them. It is asked about few of the nodes only
(:mod:`app.service.calls.candidate_order`). A member of a gang never preempts through the stock
scheduler at all: room for one member is of no use without room for the gang, which is the planner's
to make. Nor does any pod of ours while the planner preempts: two that make room for the same pod
would evict twice as many.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage
from app.cache.gangs.victims import foreign_victim, member_victim, victim_gang
from app.core.protection.budgets import BudgetInUse, exceed_a_budget
from app.core.protection.gang_minimum import is_left_in_part
from app.core.protection.rules import is_kept_by_queue, is_of_the_system, refuses_preemption
from app.core.protection.victim import Victim, VictimGang
from app.core.victims.cost import cost_of
from app.model.ids import NO_NODE, NO_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.pod import Pod
from app.service.calls.candidate_order import first_accepted, freed_by, questions_with
from app.service.calls.catching_up import LateGroups
from app.service.cycle.allowed_victims import AllowedVictims, Losses
from app.service.cycle.queries import Queries
from app.service.ports import Clock


class Strike(StrEnum):
    """Why a node was struck out (metric label)."""

    GANG_PREEMPTOR = "gang-preemptor"
    PLANNER = "planner"
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
        victims = {node: _known(self._cache, c.victims) for node, c in candidates.items()}
        queue = NO_QUEUE if member is None else self._cache.groups[member.group].queue
        rules = _Rules(self._cache, queue, losses)
        struck = self._struck(preemptor, candidates, victims, rules)
        standing = [node for node in candidates if node not in struck]
        order = sorted(standing, key=lambda node: (cost_of(victims[node]), node))
        chosen = self._first(member, {node: victims[node] for node in order}, losses)
        if chosen is None:
            return Verdict({}, struck | dict.fromkeys(standing, Strike.REFUSED))
        self._allowed_victims.add(preemptor.uid, chosen, victims[chosen])
        if member is not None:
            # kube-scheduler nominates it next, be it where we had done so
            self._cache.decisions.nominated(member, NO_NODE)
        return Verdict({chosen: candidates[chosen]}, struck)

    def _struck(
        self,
        pod: Pod,
        candidates: Mapping[NodeName, Candidate],
        victims: Mapping[NodeName, Collection[Victim]],
        rules: "_Rules",
    ) -> dict[NodeName, Strike]:
        """The nodes that something speaks against but the planner."""
        struck: dict[NodeName, Strike] = {}
        for node, candidate in candidates.items():
            strike = rules.strike(candidate, victims[node])
            if strike is None and not _has_room(self._cache, pod, node, candidate):
                strike = Strike.NO_ROOM
            if strike is not None:
                struck[node] = strike
        return struck

    def _first(
        self,
        member: Member | None,
        standing: Mapping[NodeName, Collection[Victim]],
        losses: Losses,
    ) -> NodeName | None:
        """The first node that the planner gives it when the victims are gone."""
        if member is None or member.stage is not Stage.WAITING or not standing:
            return next(iter(standing), None)
        rivals, what_if = self._rivals(losses), self._queries.what_if(gone=losses.pods)

        def has(node: NodeName) -> bool:
            places = {**rivals, member.pod.uid: node}
            gone = [victim.uid for victim in standing[node]]
            return member.pod.uid in what_if.would_have(places, without=gone)

        pod, queue = member.pod, self._cache.groups[member.group].queue
        freed = {
            node: freed_by(
                (victim for victim in victims if victim.uid not in losses.pods),
                namespace=pod.namespace,
            )
            for node, victims in standing.items()
        }
        questions = questions_with(len(rivals))
        return first_accepted(
            freed, has, queue=queue, asked=pod.shape.requests, questions=questions
        )

    def _rivals(self, losses: Losses) -> dict[PodUid, NodeName]:
        """Other pods that are to come to nodes: nominated after an eviction, or about to be.

        Rivals take of their queues what looks free until they have their places.
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
        """Why the pod may not preempt anywhere."""
        if not self._cache.pods.ours(pod):
            return None
        group = self._cache.groups[member.group] if member is not None else None
        if group is None or not group.known:
            return Strike.GROUP_MISSING
        if self._queries.configuration.preempts:
            return Strike.PLANNER
        return Strike.GANG_PREEMPTOR if group.is_gang else None


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """The rules about victims, with what they go by for one preemptor.

    ``queue`` is that of the preemptor, ``losses`` are what others may evict already.
    """

    cache: ClusterCache
    queue: QueueName
    losses: Losses
    _gangs: dict[GroupKey, tuple[VictimGang, list[Victim]]] = field(default_factory=dict)
    """Gangs of victims seen so far, each with its members that others may evict."""

    def strike(self, candidate: Candidate, victims: Collection[Victim]) -> Strike | None:
        """What speaks against the candidate, of whose victims these are known."""
        if candidate.budget_violations or exceed_a_budget(victims, self._budgets()):
            return Strike.DISRUPTION_BUDGET
        if len(victims) < len(candidate.victims):
            return Strike.UNKNOWN_VICTIM
        if any(map(is_of_the_system, victims)):
            return Strike.CONFORMANCE
        if any(map(refuses_preemption, victims)):
            return Strike.NOT_PREEMPTABLE
        queue, queues = self.queue, self.cache.queues
        if any(is_kept_by_queue(v, preemptor_queue=queue, queues=queues) for v in victims):
            return Strike.NOT_RECLAIMABLE
        return Strike.GANG_MINIMUM if self._leave_a_gang_in_part(victims) else None

    def _budgets(self) -> Iterator[BudgetInUse]:
        """Budgets that others take from; kube-scheduler has seen that all allow these alone."""
        for key, theirs in self.losses.budgets.items():
            yield BudgetInUse(self.cache.budgets[key], theirs)

    def _leave_a_gang_in_part(self, victims: Iterable[Victim]) -> bool:
        members: dict[GroupKey, list[Victim]] = {}
        for victim in victims:
            if victim.gang is not None:
                members.setdefault(victim.gang, []).append(victim)
        for key, mine in members.items():
            gang, others = self._gang(key)
            if is_left_in_part(gang, mine, others=others):
                return True
        return False

    def _gang(self, key: GroupKey) -> tuple[VictimGang, list[Victim]]:
        found = self._gangs.get(key)
        if found is None:
            others = _known(self.cache, self.losses.members.get(key, ()))
            found = self._gangs[key] = victim_gang(self.cache.groups[key]), others
        return found


def _known(cache: ClusterCache, uids: Iterable[PodUid]) -> list[Victim]:
    """The pods that the cache knows, as the rules look at them."""
    victims = []
    for uid in uids:
        member, foreign = cache.members.get(uid), cache.pods.foreign.get(uid)
        if member is not None:
            victims.append(member_victim(member, cache.groups[member.group]))
        elif foreign is not None:
            victims.append(foreign_victim(foreign))
    return victims


def _has_room(cache: ClusterCache, preemptor: Pod, node: NodeName, candidate: Candidate) -> bool:
    """Whether the pod fits once the victims are gone; what is reserved for itself is its own."""
    request = cache.node_usage.vector(preemptor.shape.requests)
    gone = frozenset({preemptor.uid, *candidate.victims})
    return node in cache.node_usage.nodes and cache.node_usage.has_room(node, request, without=gone)
