"""Giving reservations back that are in no common domain of the network any more.

HyperNodes change, and so do the labels of nodes that tell which of them a node belongs to. What
runs stays where it is. A gang that is planned by the tree as it was, and that lies too far apart by
the tree as it is, is planned anew. If it still waits for its victims, those that have not been
asked to go stay.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.views import nodes_of, places_of, topology_of
from app.core.faults import Upkeep
from app.core.topology.relations import Lie
from app.model.domains import Domains
from app.model.eviction import PipelinedPlace
from app.model.ids import GroupKey
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.plan import Placement
from app.model.resources import Mask
from app.model.topology import GroupTerm, NetworkTopology
from app.service.cycle.begun_eviction import BegunEviction
from app.service.cycle.cool_down import leave_domain
from app.service.cycle.evictions import Evictions
from app.service.cycle.failing_parts import FailingParts
from app.service.ports import Clock

GivenPlace = Placement | PipelinedPlace

APART: Final = "its places are in no common domain of the network any more"


@dataclass(slots=True, eq=False)
class GiveBackTorn:
    """Looks at what is reserved, or about to be, whenever the domains have changed.

    After each batch of events, so no member is bound to a place that has left its domain, and
    before each cycle.
    """

    cache: ClusterCache
    evictions: Evictions
    parts: FailingParts
    clock: Clock
    _seen: Domains | None = field(init=False, default=None)

    def give_back(self) -> None:
        """Release every gang that is not inside the domains that it asks for."""
        asking = [each for each in self.cache.registry.reserved.values() if _asks(each)]
        begun = [each for each in self.evictions.under_way() if each.waits]
        if not (asking or begun):
            return
        domains = self._domains()
        if domains is not self._seen:
            with self.parts.doing(Upkeep.TORN):
                self._look(domains, asking, begun)
                self._seen = domains

    def _look(
        self, domains: Domains, asking: Iterable[Group], begun: Iterable[BegunEviction]
    ) -> None:
        for group in asking:
            if self._is_torn(group, domains):
                leave_domain(self.cache, group)
        for each in begun:
            preemptor = self.cache.groups.get(each.intent.preemptor)
            if preemptor is None:
                continue
            if self._is_torn(preemptor, domains, self.cache.pipelined.placements(each.name)):
                self.evictions.give_up(each, APART, now=self.clock())

    def tears(
        self, key: GroupKey, places: Iterable[GivenPlace], *, planned_on: Domains | None
    ) -> bool:
        """Whether ``places`` that were chosen by these domains lie too far apart by now."""
        domains = self._domains()
        group = self.cache.groups.get(key)
        if group is None or domains is planned_on:
            return False
        return self._is_torn(group, domains, places)

    def _domains(self) -> Domains:
        return self.cache.network.domains(self.cache.node_usage.table())

    def _is_torn(self, group: Group, domains: Domains, to_come: Iterable[GivenPlace] = ()) -> bool:
        if not _asks(group):
            return False
        of_policies = {policy.name: policy.topology for policy in group.sub_groups}
        topology = topology_of(group)
        affinity = group.pod_group.affinity if group.pod_group is not None else None
        usage = self.cache.node_usage
        index = usage.table().index
        rows: set[int] = set()
        parts: dict[SubGroup, set[int]] = {}
        held = [(place.node, place.sub_group) for place in places_of(group, usage.vector)]
        for placement in to_come:
            member = group.members.get(placement.task.uid)
            held.append((placement.node, member.part.sub_group if member else NO_SUB_GROUP))
        for node, sub_group in held:
            if node in index:
                rows.add(index[node])
                parts.setdefault(sub_group, set()).add(index[node])
        if affinity is not None and not self._lie(group, domains, parts).keeps(affinity):
            return True
        parts.pop(NO_SUB_GROUP, None)
        asked = [(topology, rows), *((of_policies[of.policy], some) for of, some in parts.items())]
        return any(each is not None and not holds(domains, each, some) for each, some in asked)

    def _lie(
        self, group: Group, domains: Domains, parts: Mapping[SubGroup, Collection[int]]
    ) -> Lie:
        nodes = int(domains.starts[-1] - domains.starts[-2])
        index = self.cache.node_usage.table().index

        def mask(rows: Iterable[int]) -> Mask:
            found = np.zeros(nodes, dtype=np.bool_)
            found[list(rows)] = True
            return found

        def others(term: GroupTerm) -> Mask:
            return mask(
                index[node]
                for other in self.cache.groups.values()
                if other is not group and self._is_meant(other, term, group.namespace)
                for node in nodes_of(other)
                if node in index
            )

        return Lie(domains, {of: mask(rows) for of, rows in parts.items()}, others)

    def _is_meant(self, other: Group, term: GroupTerm, namespace: str) -> bool:
        """Whether the term of a group of that namespace is about the ``other``."""
        if other.pod_group is None or not term.groups.matches(other.pod_group.labels):
            return False
        if term.namespaces is None:
            return other.namespace == namespace
        known = self.cache.namespaces.get(other.namespace)
        return term.namespaces.matches(known.labels if known is not None else {})


def _asks(group: Group) -> bool:
    """Whether the group or a part of it asks for something of the network."""
    if group.pod_group is not None and group.pod_group.affinity is not None:
        return True
    parts = any(policy.topology is not None for policy in group.sub_groups)
    return parts or topology_of(group) is not None


def holds(domains: Domains, asked: NetworkTopology, rows: Collection[int]) -> bool:
    """Whether some domain that ``asked`` allows has all these rows; soft topology allows all."""
    if not (asked.is_hard and rows):
        return True
    highest = domains.highest_tier(asked)
    held = np.array(sorted(rows), dtype=np.intp)
    return highest is not None and bool(domains.allowed(highest, held).any())
