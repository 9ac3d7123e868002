"""Immutable snapshots of the live cluster for the planner.

Copied are the used and releasing arrays and the mapping of views, and of residents the columns that
changed; everything else is shared, since views, nodes and queues are replaced and never changed in
place.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from app.cache.choosy import keys_asked
from app.cache.cluster import ClusterCache
from app.cache.gang_views import GangViews
from app.cache.identities import Identities
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.residents import NOBODY
from app.model.shape import HostPort
from app.model.snapshot import Snapshot, Veto


class Snapshotter:
    """Makes numbered snapshots of one cache."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._generation = 0
        self._identities = Identities()

    def snapshot(self, *, vetoes: frozenset[Veto] = frozenset()) -> Snapshot:
        """The cluster now; ``vetoes`` are nodes that the stock scheduler refused for a shape."""
        cache = self._cache
        views = cache.registry.refresh()
        self._generation += 1
        table = cache.rooms.table()
        used, releasing = cache.rooms.sorted_used()
        inter_pod = bool(cache.choosy or cache.repelling or views.choosy)
        pending, residents = views.pending, NOBODY
        if inter_pod:
            asked = cache.choosy.keys() | _keys_of_unseen(views)
            pending = self._identities.of(
                views.pending.values(), cache.groups, asked=asked | cache.repelling.keys()
            )
            residents = cache.roster.residents(table, asked)
        else:
            cache.roster.follow()
        return Snapshot(
            generation=self._generation,
            table=table,
            used=used,
            releasing=releasing,
            gangs={**views.all, **pending} if inter_pod else dict(views.all),
            pending=tuple(pending.values()),
            awaited=tuple(pending[key] for key in views.awaited),
            torn=tuple(pending[key] for key in views.torn),
            shown=tuple(pending[key] for key in views.shown),
            queues=dict(cache.queues),
            usage=cache.registry.usage(),
            residents=residents,
            inter_pod=inter_pod,
            ports=self._ports(table.index),
            vetoes=vetoes,
            quotas=tuple(cache.quotas.values()),
            namespaces=dict(cache.namespaces),
        )

    def without(self, gone: Collection[PodUid]) -> Snapshot:
        """The cluster now, as if these pods were gone and what they hold were free.

        Their groups do not claim the room again: a PodGroup made for a pod goes with it, if later.
        Rules about other pods and host ports still see them, and no other groups are pending: it is
        for plans that neither look for nodes nor for whom to serve.
        """
        cache, now = self._cache, self.snapshot()
        used, releasing = cache.rooms.sorted_used(without=gone)
        members = (cache.members[uid] for uid in gone if uid in cache.members)
        changed, usage = cache.registry.without(members)
        gangs = dict(now.gangs)
        for key, gang in changed.items():
            if gang is None:
                del gangs[key]
            else:
                gangs[key] = gang
        return replace(
            now,
            used=used,
            releasing=releasing,
            gangs=gangs,
            pending=_as(changed, now.pending),
            awaited=_as(changed, now.awaited),
            torn=_as(changed, now.torn),
            shown=_as(changed, now.shown),
            usage=usage,
        )

    def _ports(self, index: Mapping[NodeName, int]) -> dict[int, frozenset[HostPort]]:
        taken: dict[int, frozenset[HostPort]] = {}
        for uid, ports in self._cache.with_ports.items():
            charge = self._cache.rooms.charges.get(uid)
            row = index.get(charge.node) if charge else None
            if row is not None:
                taken[row] = taken.get(row, frozenset()) | ports
        return taken


def _as(changed: Mapping[GroupKey, Gang | None], gangs: Iterable[Gang]) -> tuple[Gang, ...]:
    """``gangs`` with those that ``changed``, less those of which nothing is left."""
    now = (changed.get(gang.key, gang) for gang in gangs)
    return tuple(gang for gang in now if gang is not None)


def _keys_of_unseen(views: GangViews) -> frozenset[str]:
    """Those of members that nobody has seen yet."""
    return keys_asked(s for gang in views.choosy.values() for s in gang.role_shapes.values())
