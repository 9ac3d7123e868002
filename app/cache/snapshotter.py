"""Immutable snapshots of the live cluster for the planner.

Copied are the used and releasing arrays and the mapping of views; everything else is shared, since
views, nodes and queues are replaced and never changed in place.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from app.cache.cluster import ClusterCache
from app.cache.gang_views import GangViews, Views
from app.cache.identities import Identities, keys_asked
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.shape import HostPort
from app.model.snapshot import Resident, Snapshot, Veto


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
        inter_pod = bool(cache.choosy or views.choosy)
        pending = self._identified(views) if inter_pod else views.pending
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
            residents=tuple(self._residents(table.index)) if inter_pod else (),
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

    def _identified(self, views: GangViews) -> Views:
        """The pending gangs, as rules about other pods see them."""
        cache = self._cache
        shapes = [*cache.choosy.values()]
        shapes += [s for gang in views.choosy.values() for s in gang.role_shapes.values()]
        return self._identities.of(views.pending.values(), cache.groups, asked=keys_asked(shapes))

    def _residents(self, index: Mapping[NodeName, int]) -> Iterator[Resident]:
        cache = self._cache
        for member in cache.members.values():
            node = member.charged_node
            if node in index:
                yield Resident.of(member.pod, index[node])
        for pod in cache.foreign.values():
            if pod.node in index:
                yield Resident.of(pod, index[pod.node])
        for group in cache.registry.promised.values():
            for slot in group.slots.values():
                if slot.node in index:
                    yield Resident.of_slot(slot.shape, group.namespace, index[slot.node])

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
