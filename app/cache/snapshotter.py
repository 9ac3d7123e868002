"""Immutable snapshots of the live cluster for the planner.

Copied are the used and releasing arrays and the mapping of views; everything else is shared, since
views, nodes and queues are replaced and never changed in place.
"""

from collections.abc import Iterator, Mapping

from app.cache.cluster import ClusterCache
from app.cache.gang_views import GangViews, Views
from app.cache.identities import Identities, keys_asked
from app.model.ids import NodeName
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
