"""What the planner would say if pods were evicted: one snapshot for many such questions.

Whether these pods may go is asked before, by the rules of :mod:`app.core.protection`.
"""

from collections.abc import Collection, Iterable, Mapping

from app.core.planner import may_place
from app.core.policy import Policies
from app.model.ids import NodeName, PodUid
from app.model.snapshot import Snapshot


class WhatIf:
    """Answers for the moment of ``snapshot``, which tells what runs.

    The pods ``gone`` are evicted in any case.
    """

    def __init__(
        self, snapshot: Snapshot, policies: Policies, *, gone: Collection[PodUid], now: float
    ) -> None:
        self._snapshot = snapshot
        self._policies = policies
        self._gone = frozenset(gone)
        self._now = now
        self._group_of = {task.uid: gang.key for gang in snapshot.pending for task in gang.waiting}

    def would_have(
        self, places: Mapping[PodUid, NodeName], *, without: Iterable[PodUid]
    ) -> frozenset[PodUid]:
        """Which members would get their ``places``, if only they asked and other pods were evicted.

        Room on the nodes and their rules are for the caller to see. No queue borrows, as on demand:
        the owners of those pods make them anew, and while they wait none does.
        """
        index, group_of = self._snapshot.table.index, self._group_of
        rows = {uid: index[node] for uid, node in places.items() if node in index}
        return may_place(
            self._snapshot,
            self._policies,
            keys=dict.fromkeys(group_of[uid] for uid in rows if uid in group_of),
            rows=rows,
            now=self._now,
            evicted=self._gone.union(without),
        )
