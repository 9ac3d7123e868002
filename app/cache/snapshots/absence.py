"""Snapshots of one moment as if some pods were gone, and what they hold were free.

One question is asked about many pods in turn: what is the same each time is worked out once, and
each costs what its own pods change.

The groups of such pods do not claim the room again: a PodGroup made for a pod goes with it, if
later. Rules about other pods and host ports still see them, and no other groups are pending: it is
for plans that neither look for nodes nor for whom to serve.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.cache.gangs.registry import Absence
from app.model.gang import Gang
from app.model.ids import GroupKey, PodUid
from app.model.snapshot import Snapshot


class Absences:
    """Of the moment of the snapshot ``now``; void once the cluster changes.

    The pods ``gone`` are so each time.
    """

    def __init__(self, cache: ClusterCache, now: Snapshot, *, gone: Collection[PodUid]) -> None:
        self._cache = cache
        self._gone = gone
        self._absence = cache.registry.without(self._members(gone))
        self._now = self._less(now, gone, self._absence)

    def without(self, more: Iterable[PodUid]) -> Snapshot:
        """The cluster as if these were gone too."""
        going = frozenset(more).difference(self._gone)
        if not going:
            return self._now
        absence = self._cache.registry.without(self._members(going), before=self._absence)
        return self._less(self._now, going, absence)

    def _members(self, uids: Iterable[PodUid]) -> list[Member]:
        return [self._cache.members[uid] for uid in uids if uid in self._cache.members]

    def _less(self, now: Snapshot, going: Iterable[PodUid], absence: Absence) -> Snapshot:
        used, releasing = self._cache.node_usage.less(now.used, now.releasing, going)
        usage = {name: sums for name, sums in absence.usage.items() if sums.groups}
        left = replace(now, used=used, releasing=releasing, usage=usage)
        views = absence.views
        if not views:
            return left
        gangs = {**now.gangs, **{key: gang for key, gang in views.items() if gang is not None}}
        for key in [key for key, gang in views.items() if gang is None]:
            gangs.pop(key, None)
        left = replace(left, gangs=gangs)
        if self._cache.registry.pending.keys().isdisjoint(views):
            return left  # looking through all that wait costs more than all the rest
        return replace(
            left,
            pending=_as(views, now.pending),
            awaited=_as(views, now.awaited),
            torn=_as(views, now.torn),
            shown=_as(views, now.shown),
        )


def _as(changed: Mapping[GroupKey, Gang | None], gangs: Iterable[Gang]) -> tuple[Gang, ...]:
    """``gangs`` with those that ``changed``, less those of which nothing is left."""
    now = (changed.get(gang.key, gang) for gang in gangs)
    return tuple(gang for gang in now if gang is not None)
