"""The domains of the network, for people: what is free in each, and which gangs are inside.

What is told is read off the cache at once; working it out needs nothing that changes, so it can be
done in another thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.cache.cluster import ClusterCache
from app.cache.gangs.views import nodes_of
from app.core.topology.problems import Problem
from app.model.domains import Domains
from app.model.ids import CLUSTER, GroupKey
from app.model.resources import Matrix
from app.model.snapshot import NodeTable

_GANGS_TOLD: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class DomainFacts:
    """The domains and what is told of them, as it was at one moment.

    ``tier_names`` and ``problems`` are by the name of a domain; ``gangs`` has the rows of each gang
    with places, by key.
    """

    table: NodeTable
    used: Matrix
    domains: Domains
    tier_names: Mapping[str, str]
    problems: Mapping[str, Sequence[Problem]]
    gangs: Mapping[GroupKey, frozenset[int]]


def domain_facts(cache: ClusterCache) -> DomainFacts:
    """The facts of now."""
    table = cache.node_usage.table()
    used, _ = cache.node_usage.sorted_used()
    domains, network = cache.network.domains(table), cache.network
    of_tier = {tier: name for name, tier in domains.tier_of_name.items()}
    by_tier = {
        name: of_tier[tier]
        for name, tier in zip(domains.names, domains.tiers.tolist(), strict=True)
        if tier in of_tier and name != CLUSTER
    }
    index = table.index
    gangs = {
        key: frozenset(index[node] for node in nodes_of(group) if node in index)
        for key, group in cache.groups.items()
        if not group.solo
    }
    return DomainFacts(
        table, used, domains, by_tier | network.tier_names(), network.problems(), gangs
    )


def page(facts: DomainFacts, *, offset: int, limit: int) -> dict[str, Any]:
    """At most ``limit`` domains from the one at ``offset``: those of the lowest tier first.

    ``next`` is the offset of the next page, None on the last one. A gang is inside of a domain that
    has all of its places; of many so many are named.
    """
    total = len(facts.domains)
    told = range(min(offset, total), min(offset + limit, total))
    gangs_on = _gangs_on(facts)
    return {
        "total": total,
        "next": told.stop if told.stop < total else None,
        "domains": [_domain(facts, at, gangs_on) for at in told],
    }


def _domain(
    facts: DomainFacts, at: int, gangs_on: Callable[[frozenset[int]], list[GroupKey]]
) -> dict[str, Any]:
    domains, table = facts.domains, facts.table
    name, parent, rows = domains.names[at], int(domains.parents[at]), domains.rows_of(at)
    allocatable, held = table.allocatable[rows], facts.used[rows]
    free = np.maximum(allocatable - held, 0)
    inside = gangs_on(frozenset(rows.tolist()))
    return {
        "name": name,
        "tier": int(domains.tiers[at]),
        "tierName": facts.tier_names.get(name, ""),
        "parent": domains.names[parent] if parent >= 0 else None,
        "nodes": len(rows),
        **{
            key: dict(table.axis.amounts(amount.sum(axis=0)))
            for key, amount in (("allocatable", allocatable), ("held", held), ("free", free))
        },
        "gangs": inside[:_GANGS_TOLD],
        "gangsInside": len(inside),
        "problems": [
            {"reason": each.reason, "message": each.message}
            for each in facts.problems.get(name, ())
        ],
    }


def _gangs_on(facts: DomainFacts) -> Callable[[frozenset[int]], list[GroupKey]]:
    """The gangs all of whose places are on given rows, sorted."""
    starting: dict[int, list[GroupKey]] = {}
    for key in sorted(facts.gangs):
        if facts.gangs[key]:
            starting.setdefault(min(facts.gangs[key]), []).append(key)

    def found(rows: frozenset[int]) -> list[GroupKey]:
        first = (key for row in rows for key in starting.get(row, ()))
        return sorted(key for key in first if facts.gangs[key] <= rows)

    return found
