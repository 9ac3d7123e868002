"""Immutable snapshots of the live cluster for the planner.

Copied are the used and releasing arrays and the mapping of views; everything else is shared, since
views, nodes and queues are replaced and never changed in place.
"""

from collections.abc import Mapping

from app.cache.cluster import ClusterCache
from app.model.ids import NodeName
from app.model.shape import HostPort
from app.model.snapshot import Resident, Snapshot, Veto


class Snapshotter:
    """Makes numbered snapshots of one cache."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._generation = 0

    def snapshot(self, *, vetoes: frozenset[Veto] = frozenset()) -> Snapshot:
        """The cluster now; ``vetoes`` are nodes that the stock scheduler refused for a shape."""
        cache = self._cache
        views = cache.registry.refresh()
        self._generation += 1
        table = cache.rooms.table()
        used, releasing = cache.rooms.sorted_used()
        inter_pod = bool(cache.choosy)
        return Snapshot(
            generation=self._generation,
            table=table,
            used=used,
            releasing=releasing,
            gangs=dict(views.all),
            pending=tuple(views.pending.values()),
            awaited=tuple(views.awaited.values()),
            torn=tuple(views.torn.values()),
            shown=tuple(views.shown.values()),
            queues=dict(cache.queues),
            usage=cache.registry.usage(),
            residents=self._residents(table.index) if inter_pod else (),
            inter_pod=inter_pod,
            ports=self._ports(table.index),
            vetoes=vetoes,
            quotas=tuple(cache.quotas.values()),
            namespaces=dict(cache.namespaces),
        )

    def _residents(self, index: Mapping[NodeName, int]) -> tuple[Resident, ...]:
        cache = self._cache
        placed = [(m.pod, m.charged_node) for m in cache.members.values() if m.charged_node]
        placed += [(pod, pod.node) for pod in cache.foreign.values()]
        return tuple(Resident(pod, index[node]) for pod, node in placed if node in index)

    def _ports(self, index: Mapping[NodeName, int]) -> dict[int, frozenset[HostPort]]:
        taken: dict[int, frozenset[HostPort]] = {}
        for uid, ports in self._cache.with_ports.items():
            charge = self._cache.rooms.charges.get(uid)
            row = index.get(charge.node) if charge else None
            if row is not None:
                taken[row] = taken.get(row, frozenset()) | ports
        return taken
