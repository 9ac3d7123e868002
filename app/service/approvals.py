"""Victims whose eviction was allowed and may not show yet, and for whom.

kube-scheduler evicts in the background and asks for the next preemptor meanwhile, so two calls can
come before the watch shows the first deletion. Each would leave a gang its minimum, and a budget
what it allows; both together would not. So what was allowed is kept for some seconds and counts as
lost for all other preemptors. The same one asks again only when kube-scheduler is done with what it
was allowed before, so that does not count against it.

A member that goes is no longer counted as there, so its gang shows by itself that it is lost. A
PodDisruptionBudget does not: its status follows the deletion a little later, so the victim counts
until the budget has changed too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.model.disruption import DisruptionBudget
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.pod import Pod
from app.service.ports import Clock

KEPT_S = 10.0
"""Later than that it was not done: the API server refused, or kube-scheduler ended."""
_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Losses:
    """Pods that are lost soon: members by their group, others too by the key of each budget.

    ``preemptors`` have the nodes that they are lost for.
    """

    pods: AbstractSet[PodUid]
    preemptors: Mapping[PodUid, NodeName]
    members: Mapping[GroupKey, Collection[PodUid]]
    budgets: Mapping[str, Collection[PodUid]]


@dataclass(frozen=True, slots=True, eq=False)
class _Approved:
    """``budgets`` are those of the victim, as they stood."""

    victim: Pod
    node: NodeName
    budgets: tuple[DisruptionBudget, ...]
    until: float


class Approvals:
    """At most ``limit`` victims; those allowed longest ago are forgotten first."""

    def __init__(self, cache: ClusterCache, *, clock: Clock, limit: int = _KEPT) -> None:
        self._cache = cache
        self._clock = clock
        self._limit = limit
        self._approved: dict[tuple[PodUid, PodUid], _Approved] = {}
        """By preemptor and victim, the latest last."""

    def add(self, preemptor: PodUid, node: NodeName, victims: Iterable[Pod]) -> None:
        """It may evict them from ``node``."""
        until = self._clock() + KEPT_S
        for pod in victims:
            key = (preemptor, pod.uid)
            budgets = tuple(b for b in self._cache.budgets.values() if b.covers(pod))
            self._approved.pop(key, None)
            self._approved[key] = _Approved(pod, node, budgets, until)
        while len(self._approved) > self._limit:
            self._drop_first()

    def losses(self, *, besides: PodUid) -> Losses:
        """What other preemptors than ``besides`` may evict."""
        self._forget()
        pods: set[PodUid] = set()
        preemptors: dict[PodUid, NodeName] = {}
        members: defaultdict[GroupKey, set[PodUid]] = defaultdict(set)
        budgets: defaultdict[str, set[PodUid]] = defaultdict(set)
        for (preemptor, uid), approved in self._approved.items():
            if preemptor == besides:
                continue
            pods.add(uid)
            preemptors[preemptor] = approved.node
            member = self._cache.members.get(uid)
            if member is not None:
                members[member.group].add(uid)
            for key in self._burdened(approved):
                budgets[key].add(uid)
        return Losses(pods, preemptors, members, budgets)

    def _burdened(self, approved: _Approved) -> list[str]:
        """The keys of budgets whose status may not show yet that the victim goes."""
        pod = self._cache.pod(approved.victim.uid)
        shows = pod is None or pod.deleting
        return [
            key
            for key, budget in self._cache.budgets.items()
            if budget.covers(approved.victim) and not (shows and budget not in approved.budgets)
        ]

    def _forget(self) -> None:
        now = self._clock()
        while self._approved and next(iter(self._approved.values())).until <= now:
            self._drop_first()

    def _drop_first(self) -> None:
        del self._approved[next(iter(self._approved))]
