"""Rows of nodes: what is taken of each, and whose pods take it.

From the first look on, holders of room whose charge changed are noted, and counted anew when the
next rows are made: it costs what changed, not what there is.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.cache.cluster import ClusterCache
from app.cache.gangs.tally import bump
from app.model.amounts import Amounts
from app.model.domains import Domains
from app.model.ids import CLUSTER, GroupKey, NodeName, PodUid
from app.model.resources import Matrix
from app.model.running import NO_GROUP
from app.model.snapshot import NodeTable
from app.service.telling.view.jobs import total
from app.service.telling.view.rows import NO_AMOUNT, AmountOf, DomainRow, NodeRow, Share

ZONE: Final = "topology.kubernetes.io/zone"
_SLICE: Final = 64
"""Rows that are made from one turn of the event loop to the next."""

Requests = dict[Amounts, int]


class _Held(NamedTuple):
    """What one holder has where, and for which group; no group: a pod that is not ours."""

    node: NodeName
    group: GroupKey
    request: Amounts
    reserved: bool
    releasing: bool


@dataclass(slots=True, eq=False)
class _OnNode:
    by: dict[GroupKey, Requests] = field(default_factory=dict)
    reserved: Requests = field(default_factory=dict)
    releasing: Requests = field(default_factory=dict)


_NOTHING: Final = _OnNode()


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """The nodes and what is taken of them (shape ``(N, R)``), as of one moment.

    ``listed`` are the resources that some node lists.
    """

    table: NodeTable
    used: Matrix
    domains: Domains
    kept: Mapping[NodeName, AmountOf]
    listed: frozenset[str]


class NodeRows:
    """The rows of all nodes and domains, kept up to date from one :meth:`steps` to the next."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._noted: dict[str, None] = dict.fromkeys(cache.node_usage.charges)
        self._held: dict[str, _Held] = {}
        self._on: dict[NodeName, _OnNode] = {}
        self._seen: NodeFacts | None = None
        self._paths: dict[NodeName, tuple[str, ...]] = {}
        self.rows: dict[str, NodeRow] = {}
        self.domains: dict[str, DomainRow] = {}
        cache.node_usage.moved.append(self._note)

    def close(self) -> None:
        """Follow the cache no more."""
        self._cache.node_usage.moved.remove(self._note)

    def _note(self, holder: str) -> None:
        self._noted[holder] = None

    # --- what is taken ---------------------------------------------------------------------------

    def facts(self) -> NodeFacts:
        """The facts of this moment."""
        cache = self._cache
        table = cache.node_usage.table()
        used, _ = cache.node_usage.sorted_used()
        seen = self._seen
        listed = (
            seen.listed
            if seen is not None and seen.table is table
            else frozenset(name for node in table.nodes for name, _ in node.allocatable)
        )
        kept: dict[NodeName, dict[str, int]] = {}
        for each in cache.collected:
            for node, vector in each.nodes:
                there = kept.setdefault(node, {})
                for name, amount in table.axis.amounts(vector):
                    there[name] = there.get(name, 0) + amount
        return NodeFacts(table, used, cache.network.domains(table), kept, listed)

    def steps(self, facts: NodeFacts) -> Generator[None, None, Iterable[str]]:
        """Bring the rows up to date with ``facts``; returns the nodes that may be otherwise now."""
        dirty: set[NodeName] = set()
        yield from self._recount(dirty)
        self._compare(facts, dirty)
        index = facts.table.index
        for name in [name for name in self.rows if NodeName(name) not in index]:
            del self.rows[name]
            dirty.add(NodeName(name))
        for number, name in enumerate(dirty):
            if name in index:
                self.rows[name] = self._row(name, facts)
            if number % _SLICE == 0:
                yield
        self.domains = {row.key: row for row in _domain_rows(facts, self._tier_names())}
        self._seen = facts
        return dirty

    def _tier_names(self) -> Mapping[str, str]:
        return self._cache.network.tier_names()

    def _recount(self, dirty: set[NodeName]) -> Iterator[None]:
        noted, self._noted = self._noted, {}
        for number, holder in enumerate(noted):
            before, now = self._held.pop(holder, None), self._find(holder)
            for held, sign in ((before, -1), (now, 1)):
                if held is not None:
                    dirty.add(held.node)
                    self._count(held, sign)
            if now is not None:
                self._held[holder] = now
            if number % _SLICE == 0:
                yield

    def _find(self, holder: str) -> _Held | None:
        charge = self._cache.node_usage.charges.get(holder)
        if charge is None:
            return None
        group = self._group_of(holder)
        return _Held(charge.node, group, charge.request, charge.reserved, charge.releasing)

    def _group_of(self, holder: str) -> GroupKey:
        member = self._cache.members.get(PodUid(holder))
        if member is not None:
            return member.group
        kept = self._cache.slots.find(holder)
        return kept[0].key if kept is not None else NO_GROUP

    def _count(self, held: _Held, sign: int) -> None:
        there = self._on.setdefault(held.node, _OnNode())
        requests = there.by.setdefault(held.group, {})
        bump(requests, held.request, sign)
        if not requests:
            del there.by[held.group]
        if held.reserved:
            bump(there.reserved, held.request, sign)
        if held.releasing:
            bump(there.releasing, held.request, sign)
        if not there.by:
            del self._on[held.node]

    def _compare(self, facts: NodeFacts, dirty: set[NodeName]) -> None:
        """Note nodes that are other than at the last look, but for what pods take."""
        seen, table = self._seen, facts.table
        paths = _paths(facts) if seen is None or seen.domains is not facts.domains else self._paths
        if seen is None:
            dirty.update(table.index)
        else:
            dirty.update(seen.kept.keys() | facts.kept.keys())
            if paths is not self._paths:
                dirty.update(name for name, path in paths.items() if path != self._paths.get(name))
            if seen.table is not table:
                before = {node.name: node for node in seen.table.nodes}
                dirty.update(n.name for n in table.nodes if before.get(n.name) is not n)
        self._paths = paths

    # --- rows ------------------------------------------------------------------------------------

    def _row(self, name: NodeName, facts: NodeFacts) -> NodeRow:
        table, row = facts.table, facts.table.index[name]
        node, there = table.nodes[row], self._on.get(name, _NOTHING)
        shares = tuple(self._shares(there))
        return NodeRow(
            key=name,
            name=name,
            ready=node.ready,
            cordoned=node.unschedulable,
            allocatable=dict(node.allocatable),
            used=_sum(share.amounts for share in shares),
            reserved=total(there.reserved),
            releasing=total(there.releasing),
            kept=facts.kept.get(name, NO_AMOUNT),
            by=shares,
            zone=node.labels.get(ZONE, ""),
            path=self._paths.get(name, ()),
        )

    def _shares(self, there: _OnNode) -> Iterator[Share]:
        groups = self._cache.groups
        for key in sorted(there.by):
            requests = there.by[key]
            group = groups.get(key)
            yield Share(
                job=key,
                queue=group.queue if group is not None else "",
                pods=sum(requests.values()),
                amounts=total(requests),
                others=not key,
            )


def _sum(amounts: Iterable[AmountOf]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


def named(names: tuple[str, ...], values: list[int]) -> dict[str, int]:
    """The values that are not zero, by name."""
    return {name: value for name, value in zip(names, values, strict=True) if value}


def _paths(facts: NodeFacts) -> dict[NodeName, tuple[str, ...]]:
    """Of each node the domains around it, the widest first, by the lowest of them."""
    domains, nodes = facts.domains, facts.table.nodes
    found: dict[NodeName, tuple[str, ...]] = {node.name: () for node in nodes}
    paths: dict[int, tuple[str, ...]] = {}
    for at in range(len(domains) - 1, -1, -1):
        if domains.names[at] == CLUSTER:
            paths[at] = ()
            continue
        parent = int(domains.parents[at])
        paths[at] = (*paths.get(parent, ()), domains.names[at])
        for row in domains.rows_of(at).tolist():
            found[nodes[row].name] = paths[at]
    return found


def _domain_rows(facts: NodeFacts, tier_names: Mapping[str, str]) -> Iterator[DomainRow]:
    domains, table = facts.domains, facts.table
    counted = [name in facts.listed for name in table.axis.names]
    allocatable, used = table.allocatable * counted, facts.used * counted
    of_tier = {tier: name for name, tier in domains.tier_of_name.items()}
    for at, name in enumerate(domains.names):
        if name == CLUSTER:
            continue
        rows, parent, tier = domains.rows_of(at), domains.parents[at], int(domains.tiers[at])
        above = domains.names[parent] if parent >= 0 else CLUSTER
        yield DomainRow(
            key=name,
            name=name,
            tier=tier,
            tier_name=tier_names.get(name, "") or of_tier.get(tier, ""),
            parent="" if above == CLUSTER else above,
            nodes=len(rows),
            allocatable=named(table.axis.names, allocatable[rows].sum(axis=0).tolist()),
            used=named(table.axis.names, used[rows].sum(axis=0).tolist()),
        )
