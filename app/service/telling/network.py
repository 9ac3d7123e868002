"""Where a gang is in the network, for people: how close it is, and what is in its way."""

from collections import Counter

import numpy as np

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.core.placement.closeness import closeness
from app.core.texts import closeness_text
from app.model.ids import GroupKey, PodUid
from app.model.reason import Closeness, Holder, NearestDomain

_MOST = 3


def holders_in(
    cache: ClusterCache, domain: NearestDomain, *, besides: GroupKey
) -> tuple[Holder, ...]:
    """The groups and foreign pods that hold most of what ``domain`` lacks, the biggest first.

    Of several resources it is about one: devices before cpu and memory.
    """
    table, usage = cache.node_usage.table(), cache.node_usage
    domains = cache.network.domains(table)
    if domain.name not in domains.names or not domain.lacks:
        return ()
    resource = max((name for name, _ in domain.lacks), key=lambda name: ("/" in name, name))
    position = usage.axis.index[resource]
    held: Counter[str] = Counter()
    for row in domains.rows_of(domains.names.index(domain.name)).tolist():
        for holder in usage.holders(table.nodes[row].name):
            amount = int(usage.charges[holder].vector[position])
            if amount:
                held[_called(cache, holder, besides=besides)] += amount
    del held[""]
    ranked = sorted(held.items(), key=lambda each: (-each[1], each[0]))
    return tuple(Holder(who, resource, amount) for who, amount in ranked[:_MOST])


def closeness_of(cache: ClusterCache, group: Group) -> Closeness | None:
    """How close the members are that hold room; None: none do, or they ask for no domain."""
    gang = cache.registry.view(group.key)
    if gang is None or gang.topology is None:
        return None
    table = cache.node_usage.table()
    held = cache.registry.refresh().places.get(group.key, ())
    places = [place for place in held if place.node in table.index]
    used, _ = cache.node_usage.sorted_used()
    return closeness(
        table.axis,
        cache.network.domains(table),
        np.array([table.index[place.node] for place in places], dtype=np.intp),
        [place.request for place in places],
        allocatable=table.allocatable,
        used=used,
    )


def network_text(cache: ClusterCache, group: Group) -> str:
    """In which domain the group is, and what is in the way of a closer one; empty: in none."""
    found = closeness_of(cache, group)
    if found is None:
        return ""
    lacks = found.nearest is not None and found.nearest.takes < found.members
    held = holders_in(cache, found.nearest, besides=group.key) if lacks and found.nearest else ()
    return closeness_text(found, held)


def _called(cache: ClusterCache, holder: str, *, besides: GroupKey) -> str:
    """The group, or the foreign pod, that a holder of room is of; empty: of ``besides``."""
    member = cache.members.get(PodUid(holder))
    kept = None if member is not None else cache.slots.find(holder)
    group = member.group if member is not None else kept[0].key if kept is not None else None
    if group == besides:
        return ""
    if group is not None:
        gang = cache.registry.view(group)
        return group if gang is None else gang.called
    pod = cache.pods.foreign.get(PodUid(holder))
    return "other pods" if pod is None else pod.key
