"""``topologyAffinity`` against brute force, on random trees.

What a term forbids is worked out here from the names of nodes, domain by domain. Required terms
hold for every place that is given, and a gang waits only where no places hold them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from app.core.topology.relations import Lie
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import CLUSTER, NodeName, group_key
from app.model.parts import NO_SUB_GROUP, SubGroup, SubGroupPolicy
from app.model.resources import Mask
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.snapshot import MemberPlace
from app.model.topology import GroupTerm, PartTerm, SpreadTerm, Tier, TopologyAffinity
from app.model.workload import GroupPhase
from tests.builders import make_gang
from tests.core.actions.rigs import Outcome, cycle, members, policies, vector
from tests.core.contended import contended, running_gang
from tests.core.test_domain_oracle import Network, networks
from tests.scale import examples
from tests.topology import hard

APPS = ("web", "db")


@dataclass(frozen=True)
class Others:
    """One group per app, with the nodes of its members."""

    nodes: dict[str, frozenset[str]]

    @property
    def gangs(self) -> tuple[Gang, ...]:
        return tuple(
            make_gang(app, labels={"app": app}, phase=GroupPhase.RUNNING) for app in self.nodes
        )

    @property
    def places(self) -> Any:
        return {
            group_key("default", app): tuple(
                MemberPlace(NodeName(node), "", vector()) for node in sorted(nodes)
            )
            for app, nodes in self.nodes.items()
        }


def domains_of(network: Network, tier: int) -> list[frozenset[str]]:
    return [
        names
        for name, names in network.inside.items()
        if name != CLUSTER and network.tier_of[name] == tier
    ]


def joined(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def left_by(network: Network, others: Others, affinity: TopologyAffinity) -> frozenset[str]:
    """The nodes that required terms about groups leave."""
    left = frozenset(network.inside[CLUSTER])
    for near, terms in ((True, affinity.groups_near), (False, affinity.groups_apart)):
        for term in terms:
            [app] = term.groups.requirements[0].values
            domains = domains_of(network, term.tier.number or 0)
            occupied = joined(each for each in domains if each & others.nodes[app])
            left &= occupied if near else joined(domains) - occupied
    return left


@st.composite
def others(draw: st.DrawFn, network: Network) -> Others:
    names = sorted(network.inside[CLUSTER])
    return Others({app: draw(st.frozensets(st.sampled_from(names), max_size=3)) for app in APPS})


def of_groups(weights: Sequence[int] = (0,)) -> st.SearchStrategy[TopologyAffinity]:
    terms = st.lists(
        st.builds(
            GroupTerm,
            st.sampled_from(APPS).map(
                lambda app: LabelSelector((Requirement("app", Operator.IN, (app,)),))
            ),
            st.integers(1, 3).map(Tier),
            st.none(),
            st.sampled_from(weights),
        ),
        max_size=1,
    ).map(tuple)
    return st.builds(TopologyAffinity, terms, terms)


def plan(network: Network, there: Others, gang: Gang) -> Outcome:
    return cycle(
        gang,
        *there.gangs,
        pending=(gang,),
        places=there.places,
        nodes=network.nodes,
        domains=network.domains,
        by=network.by,
    )


@examples(100)
@given(
    st.data(),
    networks(most=24, tiers=3),
    of_groups(),
    st.tuples(st.integers(1, 12), st.integers(1, 3)),
)
def test_a_gang_is_beside_other_groups_as_terms_say_whenever_that_can_be(
    data: st.DataObject, network: Network, affinity: TopologyAffinity, asked: tuple[int, int]
) -> None:
    count, cpu = asked
    there = data.draw(others(network))
    tier = data.draw(st.one_of(st.none(), st.integers(1, 3)))
    gang = make_gang(
        "g",
        waiting=members("g", count, cpu=cpu),
        affinity=affinity,
        topology=None if tier is None else hard(tier),
    )
    left = left_by(network, there, affinity)
    areas = [
        names & left
        for name, names in network.inside.items()
        if tier is None or network.tier_of[name] <= tier
    ]
    possible = any(sum(size // cpu for size in network.room(area)) >= count for area in areas)
    used = frozenset(plan(network, there, gang).nodes("g").values())
    assert used <= left
    assert bool(used) is possible


@examples(40)
@given(st.data(), networks(most=12, tiers=3), of_groups((1, 50, 100)), st.integers(1, 3))
def test_a_preferred_term_never_keeps_a_gang_waiting(
    data: st.DataObject, network: Network, affinity: TopologyAffinity, count: int
) -> None:
    there = data.draw(others(network))
    gang = make_gang("g", waiting=members("g", count), affinity=affinity)
    outcome = plan(network, there, gang)
    assert bool(outcome.nodes("g")) is (sum(network.sizes) >= count)


TERMS = st.builds(
    PartTerm, st.sampled_from((("p",), ("q",), ("p", "q"))), st.integers(1, 2).map(Tier)
)


def keeps(domains: Sequence[str], term: PartTerm, network: Network, *, near: bool) -> bool:
    """Whether sub-groups that are in these ``domains``, as ``p rack-1``, keep the term."""
    above = domains_of(network, term.tier.number or 0)
    at: list[tuple[str, int]] = []
    for said in domains:
        policy, _, name = said.partition(" ")
        if policy in term.policies:
            found = [i for i, names in enumerate(above) if network.inside[name] <= names]
            if not found:
                return False
            at.append((policy, found[0]))
    if near:
        return len({where for _, where in at}) <= 1
    if len(term.policies) == 1:
        return len({where for _, where in at}) == len(at)
    return not {w for policy, w in at if policy == "p"} & {w for policy, w in at if policy == "q"}


def can_be(network: Network, parts: Sequence[str], size: int, affinity: TopologyAffinity) -> bool:
    """Whether sub-groups, each of ``size`` members in one rack, can be as required terms say."""
    names = [name for name in network.inside if network.tier_of[name] == 1 and name != CLUSTER]
    room = {name: sum(network.room(network.inside[name])) for name in names}
    for racks in product(names, repeat=len(parts)):
        if any(racks.count(name) * size > room[name] for name in set(racks)):
            continue
        domains = [f"{policy} {rack}" for policy, rack in zip(parts, racks, strict=True)]
        if all(keeps(domains, term, network, near=True) for term in affinity.parts_near) and all(
            keeps(domains, term, network, near=False) for term in affinity.parts_apart
        ):
            return True
    return False


@examples(100)
@given(
    networks(most=10, tiers=2),
    st.tuples(st.integers(0, 3), st.integers(0, 2)).filter(any),
    st.integers(1, 3),
    st.builds(
        TopologyAffinity,
        parts_near=st.lists(TERMS, max_size=1).map(tuple),
        parts_apart=st.lists(TERMS, min_size=1, max_size=2).map(tuple),
    ),
)
def test_sub_groups_are_together_and_apart_as_terms_say_whenever_that_can_be(
    network: Network, counts: tuple[int, int], size: int, affinity: TopologyAffinity
) -> None:
    assume(network.tree)  # without HyperNodes all nodes are as close as can be
    parts = [*["p"] * counts[0], *["q"] * counts[1]]
    waiting = members("g", size * len(parts))
    of = {task.uid: SubGroup(parts[at // size], str(at // size)) for at, task in enumerate(waiting)}
    policies = tuple(
        SubGroupPolicy(name, keys=("k",), size=size, least=count, topology=hard(1))
        for name, count in zip("pq", counts, strict=True)
    )
    gang = make_gang(
        "g",
        waiting=waiting,
        affinity=affinity,
        sub_groups=policies,
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    found = network.plan(gang).nodes("g")
    assert bool(found) is can_be(network, parts, size, affinity)
    if found:
        racks = [
            next(
                name
                for name, names in network.inside.items()
                if {found[f"g-{at * size + n}"] for n in range(size)} <= names
            )
            for at in range(len(parts))
        ]
        domains = [f"{policy} {rack}" for policy, rack in zip(parts, racks, strict=True)]
        assert all(keeps(domains, term, network, near=True) for term in affinity.parts_near)
        assert all(keeps(domains, term, network, near=False) for term in affinity.parts_apart)


SPREADS = st.builds(
    lambda tier, least, more: SpreadTerm(Tier(tier), least, None if more is None else least + more),
    st.integers(1, 2),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(0, 2)),
)


def spreads(network: Network, term: SpreadTerm, cpu: int, count: int) -> bool:
    """Whether so many members of one size can be in as many domains as the term says."""
    takes = sorted(
        (
            sum(size // cpu for size in network.room(names))
            for names in domains_of(network, term.tier.number or 0)
        ),
        reverse=True,
    )
    least, most = min(term.least, count), len(takes) if term.most is None else term.most
    return sum(map(bool, takes)) >= least and sum(takes[:most]) >= count


def is_spread(network: Network, term: SpreadTerm, used: Sequence[str]) -> bool:
    """Whether members on these nodes are in as many domains as the term says."""
    domains = domains_of(network, term.tier.number or 0)
    occupied = sum(not names.isdisjoint(used) for names in domains)
    least = min(term.least, len(used))
    return least <= occupied <= (term.most or occupied) and joined(domains) >= set(used)


@examples(100)
@given(networks(most=16, tiers=2), SPREADS, st.integers(1, 10), st.integers(1, 3))
def test_a_gang_of_one_shape_is_spread_whenever_that_can_be(
    network: Network, term: SpreadTerm, count: int, cpu: int
) -> None:
    affinity = TopologyAffinity(spread=(term,))
    gang = make_gang("g", waiting=members("g", count, cpu=cpu), affinity=affinity)
    used = list(network.plan(gang).nodes("g").values())
    assert bool(used) is spreads(network, term, cpu, count)
    assert not used or is_spread(network, term, used)


def placings(room: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """All ways to put members of these sizes on nodes with that room, by the numbers of nodes."""
    if not sizes:
        yield []
        return
    first, *rest = sizes
    for at, free in enumerate(room):
        if free >= first:
            for others in placings([*room[:at], free - first, *room[at + 1 :]], rest):
                yield [at, *others]


@examples(60)
@given(
    networks(most=5, tiers=2),
    SPREADS,
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
)
def test_a_gang_of_several_shapes_is_spread_whenever_that_can_be(
    network: Network, term: SpreadTerm, sizes: list[int]
) -> None:
    waiting = tuple(
        task
        for cpu, count in Counter(sizes).items()
        for task in members("g", count, cpu=cpu, role=f"r{cpu}")
    )
    affinity = TopologyAffinity(spread=(term,))
    used = list(
        network.plan(make_gang("g", waiting=waiting, affinity=affinity)).nodes("g").values()
    )
    possible = any(
        is_spread(network, term, [f"n{at}" for at in rows])
        for rows in placings(network.sizes, sorted(sizes, reverse=True))
    )
    assert bool(used) is possible
    assert not used or is_spread(network, term, used)


EVICTING = policies(
    (("priority", PluginConf("gang", switches={"enablePreemptable": False})), ("predicates",)),
    ("enqueue", "allocate", "preempt", "backfill"),
)
WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
MIXED = st.builds(
    TopologyAffinity,
    groups_apart=st.integers(1, 2).map(lambda tier: (GroupTerm(WEB, Tier(tier)),)),
    parts_near=st.lists(TERMS, max_size=1).map(tuple),
    parts_apart=st.lists(TERMS, max_size=1).map(tuple),
    spread=st.lists(SPREADS, max_size=1).map(tuple),
)


def parted(name: str, counts: tuple[int, int], affinity: TopologyAffinity, priority: int) -> Gang:
    """So many sub-groups of two members of the policies ``p`` and ``q``, all of them needed."""
    parts = [*["p"] * counts[0], *["q"] * counts[1]]
    waiting = members(name, 2 * len(parts))
    of = {task.uid: SubGroup(parts[at // 2], str(at // 2)) for at, task in enumerate(waiting)}
    return make_gang(
        name,
        waiting=waiting,
        priority=priority,
        labels={"app": "web"},
        affinity=affinity,
        sub_groups=tuple(
            SubGroupPolicy(policy, keys=("k",), size=2, least=count)
            for policy, count in zip("pq", counts, strict=True)
        ),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )


@examples(60)
@given(
    networks(most=8, tiers=2),
    st.lists(st.integers(0, 7), max_size=6),
    st.lists(
        st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 1)).filter(any), st.integers(1, 9)),
        min_size=1,
        max_size=3,
    ),
    MIXED,
)
def test_required_terms_hold_for_all_places_though_pods_are_evicted(
    network: Network,
    rows: list[int],
    counts: list[tuple[tuple[int, int], int]],
    affinity: TopologyAffinity,
) -> None:
    free = Counter(dict(enumerate(network.sizes)))
    running = []
    for at, row in enumerate(rows):
        if free[row] > 0:
            free[row] -= 1
            running.append(running_gang(f"low{at}", [row], labels={"app": "web" if at else "db"}))
    waiting = [parted(f"g{at}", size, affinity, prio) for at, (size, prio) in enumerate(counts)]
    held = {
        each.gang.key: (MemberPlace(NodeName(f"n{each.runs[0].node}"), "", vector(cpu=1)),)
        for each in running
    }
    outcome = contended(
        *waiting,
        running=running,
        nodes=network.nodes,
        by=EVICTING,
        domains=network.domains,
        places=held,
    )
    gone = {victim.gang for plan in outcome.plan.evictions for victim in plan.victims}
    found: dict[str, dict[SubGroup, set[int]]] = {
        key: {NO_SUB_GROUP: {int(place.node[1:]) for place in places}}
        for key, places in held.items()
        if key not in gone and not key.endswith("low0")
    }
    decided = [(p.gang, each.task, each.node) for p in outcome.plan.placed for each in p.placements]
    decided += [
        (p.preemptor, each.task, each.node) for p in outcome.plan.evictions for each in p.places
    ]
    gangs = {gang.key: gang for gang in waiting}
    for key, task, node in decided:
        of = gangs[key].sub_group_of[task.uid]
        found.setdefault(key, {}).setdefault(of, set()).add(int(node[1:]))
    for key in gangs.keys() & found.keys():
        rows_of_others = [
            row for other in found.keys() - {key} for row in joined_rows(found[other])
        ]
        parts = {of: mask(network, nodes) for of, nodes in found[key].items()}
        lie = Lie(network.domains, parts, partial(_always, mask(network, rows_of_others)))
        assert lie.keeps(affinity)


def _always(nodes: Mask, _: GroupTerm) -> Mask:
    return nodes


def joined_rows(parts: dict[SubGroup, set[int]]) -> set[int]:
    return set().union(*parts.values())


def mask(network: Network, nodes: Iterable[int]) -> Mask:
    found = np.zeros(len(network.nodes), dtype=np.bool_)
    names = sorted(node.name for node in network.nodes)
    found[[names.index(NodeName(f"n{node}")) for node in nodes]] = True
    return found
