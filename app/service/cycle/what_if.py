"""What the planner would say if pods were gone: one snapshot for many such questions.

Whether these pods may go is asked before, by the rules of :mod:`app.core.victims`.
"""

from collections.abc import Iterable, Mapping

from app.cache.cluster import ClusterCache
from app.cache.snapshots.absence import Absences
from app.core.planner import may_place
from app.core.policy import Policies
from app.model.ids import NodeName, PodUid


class WhatIf:
    """Answers for the moment at which it was made, and is not kept longer."""

    def __init__(
        self, cache: ClusterCache, absences: Absences, policies: Policies, *, now: float
    ) -> None:
        self._cache = cache
        self._absences = absences
        self._policies = policies
        self._now = now

    def would_have(
        self, places: Mapping[PodUid, NodeName], *, without: Iterable[PodUid]
    ) -> frozenset[PodUid]:
        """Which members would get their ``places``, if only they asked and other pods were gone.

        Room on the nodes and their rules are for the caller to see. Nothing is lent, as on demand:
        the owners of those pods make them anew, and while they wait nothing is.
        """
        snapshot = self._absences.without(without)
        members, index = self._cache.members, snapshot.table.index
        rows = {uid: index[node] for uid, node in places.items() if node in index}
        groups = dict.fromkeys(members[uid].group for uid in rows if uid in members)
        keys = [key for key in groups if key in self._cache.registry.pending]
        return may_place(snapshot, self._policies, keys=keys, rows=rows, now=self._now)
