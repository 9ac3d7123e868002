"""Victims whose eviction was allowed and may not show yet, and their preemptors.

kube-scheduler evicts in the background and asks for the next preemptor meanwhile, so two calls can
come before the watch shows the first deletion. Each would leave a gang its minimum, and a budget
what it allows; both together would not. So what was allowed is kept for some seconds and counts as
lost for all other preemptors. The same preemptor asks again only when kube-scheduler is done with
what it was allowed before, so that does not count against it.

A victim has gone when its room is free, as for kube-scheduler: a kubelet says that a pod has ended
before it takes it away.

A member that goes is no longer counted as there, so its gang shows by itself that it is lost. A
PodDisruptionBudget does not: its status follows the deletion a little later, so the victim counts
until the budget has changed too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.model.disruption import Disruptable, DisruptionBudget
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.pod import TERMINAL
from app.model.snapshot import NominatedRoom
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
class _Allowed:
    """``stood`` are the budgets of the victim as they were then, ``budgets`` as they are now."""

    victim: Disruptable
    node: NodeName
    stood: tuple[DisruptionBudget, ...]
    budgets: dict[str, DisruptionBudget]
    until: float

    def follow(self, key: str, budget: DisruptionBudget | None) -> None:
        """The budget of that key is another one now, or gone."""
        if budget is not None and budget.covers(self.victim):
            self.budgets[key] = budget
        else:
            self.budgets.pop(key, None)


class AllowedVictims:
    """At most ``limit`` victims; those allowed longest ago are forgotten first."""

    def __init__(self, cache: ClusterCache, *, clock: Clock, limit: int = _KEPT) -> None:
        self._cache = cache
        self._clock = clock
        self._limit = limit
        self._allowed: dict[tuple[PodUid, PodUid], _Allowed] = {}
        """By preemptor and victim, the latest last."""
        self._by_preemptor: dict[PodUid, dict[PodUid, _Allowed]] = {}
        """Allowed victims by victim for each preemptor."""
        self._budgets: dict[str, DisruptionBudget] = {}
        """Budgets that the allowed victims were compared with last."""

    def add(self, preemptor: PodUid, node: NodeName, victims: Iterable[Disruptable]) -> None:
        """Allow the preemptor to evict ``victims`` from ``node``."""
        until = self._clock() + KEPT_S
        for pod in victims:
            key = (preemptor, pod.uid)
            budgets = {name: b for name, b in self._cache.budgets.items() if b.covers(pod)}
            if key in self._allowed:
                self._drop(key)
            allowed = _Allowed(pod, node, tuple(budgets.values()), budgets, until)
            self._allowed[key] = allowed
            self._by_preemptor.setdefault(preemptor, {})[pod.uid] = allowed
        while len(self._allowed) > self._limit:
            self._drop_first()

    def allows(self, preemptor: PodUid, nodes: Collection[NodeName]) -> bool:
        """Whether the preemptor may evict a pod from one of ``nodes``."""
        return any(allowed.node in nodes for allowed in self._of(preemptor))

    def are_done(self, preemptor: PodUid) -> bool:
        """Whether the preemptor was allowed something and the watch shows all of it done."""
        victims = [allowed.victim.uid for allowed in self._of(preemptor)]
        return bool(victims) and all(map(self._has_gone, victims))

    def preemptors(self) -> dict[PodUid, NominatedRoom]:
        """Pods of ours that may evict others and wait, the last node of each, and whether it shows.

        The answer is needed for each plan; most preemptors that were allowed victims have their
        places.
        """
        self._forget()
        waiting = (uid for uid in self._by_preemptor if self._waits(uid))
        return {uid: self._nominated_room(self._by_preemptor[uid].values()) for uid in waiting}

    def _waits(self, preemptor: PodUid) -> bool:
        member = self._cache.members.get(preemptor)
        return member is not None and not (member.node or member.pod.node)

    def _nominated_room(self, allowed: Collection[_Allowed]) -> NominatedRoom:
        node = [each.node for each in allowed][-1]
        victims = (each.victim.uid for each in allowed if each.node == node)
        return NominatedRoom(node, done=all(map(self._has_gone, victims)))

    def _has_gone(self, victim: PodUid) -> bool:
        pod = self._cache.pods.pod(victim)
        return pod is None or pod.status in TERMINAL

    def _of(self, preemptor: PodUid) -> Collection[_Allowed]:
        self._forget()
        return self._by_preemptor.get(preemptor, {}).values()

    def losses(self, *, besides: PodUid) -> Losses:
        """What other preemptors than ``besides`` may evict."""
        self._forget()
        self._follow_budgets()
        pods: set[PodUid] = set()
        preemptors: dict[PodUid, NodeName] = {}
        members: defaultdict[GroupKey, set[PodUid]] = defaultdict(set)
        budgets: defaultdict[str, set[PodUid]] = defaultdict(set)
        for (preemptor, uid), allowed in self._allowed.items():
            if preemptor == besides:
                continue
            pods.add(uid)
            preemptors[preemptor] = allowed.node
            member = self._cache.members.get(uid)
            if member is not None:
                members[member.group].add(uid)
            for key in self._burdened(allowed):
                budgets[key].add(uid)
        return Losses(pods, preemptors, members, budgets)

    def _burdened(self, allowed: _Allowed) -> list[str]:
        """The keys of budgets whose status may not show yet that the victim goes."""
        if not allowed.budgets:
            return []
        pod = self._cache.pods.pod(allowed.victim.uid)
        shows = pod is None or pod.deleting
        return [k for k, b in allowed.budgets.items() if not shows or b in allowed.stood]

    def _follow_budgets(self) -> None:
        """Compare the allowed victims with budgets that changed since this was done last.

        A call must not cost all allowed victims times all budgets.
        """
        before, now = self._budgets, self._cache.budgets
        keys = before.keys() | now.keys()
        for key in [key for key in keys if before.get(key) is not now.get(key)]:
            for allowed in self._allowed.values():
                allowed.follow(key, now.get(key))
        self._budgets = dict(now)

    def _forget(self) -> None:
        now = self._clock()
        while self._allowed and next(iter(self._allowed.values())).until <= now:
            self._drop_first()

    def _drop_first(self) -> None:
        self._drop(next(iter(self._allowed)))

    def _drop(self, key: tuple[PodUid, PodUid]) -> None:
        preemptor, uid = key
        del self._allowed[key]
        mine = self._by_preemptor[preemptor]
        del mine[uid]
        if not mine:
            del self._by_preemptor[preemptor]
