"""Domains of the network against brute force, on random trees.

A gang of hard topology is in a domain of the lowest tier that takes all of its minimum, and waits
only where none of an allowed tier does: of one shape on trees of up to four tiers and 64 nodes, of
several shapes on up to eight nodes, and with sub-groups inside.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hypothesis import given
from hypothesis import strategies as st

from app.core.policy import Policies
from app.model.domains import Domains
from app.model.gang import Gang
from app.model.ids import CLUSTER, PodUid
from app.model.node import Node
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Never
from app.model.topology import HyperNode
from tests.builders import make_gang
from tests.core.actions.rigs import Outcome, cores, cycle, members, policies
from tests.scale import examples
from tests.topology import SOFT, by_name, hard, hyper_nodes, make_domains, node_names

WAYS = (None, policies((("priority", "gang"), ("predicates", "network-topology-aware"))))
"""Without the plugin and with it: it says which domain of a tier comes first, not of which tier."""


@dataclass(frozen=True)
class Network:
    """Nodes of so many cores in a random tree, some in no domain, some directly in a high one."""

    sizes: tuple[int, ...]
    tree: tuple[HyperNode, ...]
    by: Policies | None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return cores(*self.sizes)

    @cached_property
    def domains(self) -> Domains:
        return make_domains(self.nodes, self.tree)

    @cached_property
    def inside(self) -> Mapping[str, frozenset[str]]:
        return by_name(self.domains, self.nodes)

    @cached_property
    def tier_of(self) -> Mapping[str, int]:
        return dict(zip(self.domains.names, self.domains.tiers.tolist(), strict=True))

    def room(self, names: frozenset[str]) -> list[int]:
        return [size for at, size in enumerate(self.sizes) if f"n{at}" in names]

    def plan(self, gang: Gang) -> Outcome:
        return cycle(gang, nodes=self.nodes, domains=self.domains, by=self.by)


@st.composite
def networks(draw: st.DrawFn, *, most: int, tiers: int = 4) -> Network:
    """Up to ``most`` nodes; each domain has one parent at most."""
    sizes = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=most)))
    loose: list[tuple[str, bool]] = [(f"n{at}", True) for at in range(len(sizes))]
    tree: list[HyperNode] = []
    for tier in range(1, draw(st.integers(1, tiers)) + 1):
        fan = draw(st.integers(1, 6))
        groups: dict[int, list[tuple[str, bool]]] = {}
        kept: list[tuple[str, bool]] = []
        for each in loose:
            at = draw(st.integers(-1, fan - 1))
            (kept if at < 0 else groups.setdefault(at, [])).append(each)
        for at, inside in groups.items():
            name = f"t{tier}-{at}"
            nodes = node_names(*(name for name, is_node in inside if is_node))
            below = hyper_nodes(*(name for name, is_node in inside if not is_node))
            tree.append(HyperNode(name, tier, members=(*nodes, *below)))
            kept.append((name, False))
        loose = kept
    return Network(sizes, tuple(tree), draw(st.sampled_from(WAYS)))


def check(network: Network, outcome: Outcome, *, possible: Mapping[str, bool], tier: int) -> None:
    """Whether the gang ``g`` is in a domain of the lowest tier that is ``possible``, if any is."""
    tiers = [network.tier_of[name] for name, fits in possible.items() if fits]
    lowest = min((each for each in tiers if each <= tier), default=None)
    used = frozenset(outcome.nodes("g").values())
    if lowest is None:
        assert not used
        assert outcome.refusal("g").cause in (Cause.NO_DOMAIN, Cause.NOT_ENOUGH_RESOURCES)
        return
    assert used
    assert any(
        used <= names
        for name, names in network.inside.items()
        if network.tier_of[name] == lowest and possible[name]
    )


@examples(100)
@given(networks(most=64), st.integers(1, 24), st.integers(1, 3), st.integers(0, 5))
def test_a_gang_of_one_shape_finds_a_domain_whenever_one_exists(
    network: Network, count: int, cpu: int, tier: int
) -> None:
    gang = make_gang("g", waiting=members("g", count, cpu=cpu), topology=hard(tier))
    possible = {
        name: sum(size // cpu for size in network.room(names)) >= count
        for name, names in network.inside.items()
    }
    outcome = network.plan(gang)
    check(network, outcome, possible=possible, tier=tier)
    assert len(outcome.nodes("g")) in (0, count)
    allowed = [at for at in network.tier_of.values() if at <= tier]
    if not outcome.nodes("g") and outcome.refusal("g").cause is Cause.NO_DOMAIN and allowed:
        assert outcome.refusal("g").never is Never.DOMAINS


@examples(60)
@given(networks(most=64), st.integers(2, 24), st.integers(1, 4), st.integers(1, 2))
def test_of_the_lowest_tier_a_domain_is_taken_that_has_room_for_the_most_members(
    network: Network, count: int, minimum: int, cpu: int
) -> None:
    minimum = min(minimum, count)
    highest = network.tier_of[CLUSTER] - 1
    waiting = members("g", count, cpu=cpu)
    gang = make_gang("g", waiting=waiting, min_member=minimum, topology=hard(highest))
    has_room_for = {
        name: sum(size // cpu for size in network.room(names))
        for name, names in network.inside.items()
    }
    outcome = network.plan(gang)
    first = next((decision for decision in outcome.decisions("g") if decision.whole), None)
    if first is None:
        return
    used = {str(placement.node) for placement in first.placements}
    tiers = [at for name, at in network.tier_of.items() if has_room_for[name] >= minimum]
    lowest = [name for name, at in network.tier_of.items() if at == min(tiers)]
    most = max(min(count, has_room_for[name]) for name in lowest)
    assert any(used <= network.inside[name] and has_room_for[name] >= most for name in lowest)


@examples(30)
@given(networks(most=64), st.integers(1, 24), st.integers(1, 3))
def test_a_soft_gang_lies_in_the_lowest_domain_that_there_is(
    network: Network, count: int, cpu: int
) -> None:
    gang = make_gang("g", waiting=members("g", count, cpu=cpu), topology=SOFT)
    possible = {
        name: sum(size // cpu for size in network.room(names)) >= count
        for name, names in network.inside.items()
    }
    check(network, network.plan(gang), possible=possible, tier=network.tier_of[CLUSTER])


def packs(room: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether members of these sizes, the largest first, have room on these nodes together."""
    if not sizes:
        return True
    first, *rest = sizes
    return any(
        packs([*room[:at], free - first, *room[at + 1 :]], rest)
        for at, free in enumerate(room)
        if free >= first and free not in room[:at]
    )


@examples(100)
@given(
    networks(most=8),
    st.lists(st.integers(1, 5), min_size=2, max_size=8),
    st.integers(1, 5),
)
def test_a_gang_of_several_shapes_finds_a_domain_whenever_one_exists(
    network: Network, sizes: list[int], tier: int
) -> None:
    counts = Counter(sizes)
    waiting = tuple(
        task
        for cpu, count in counts.items()
        for task in members("g", count, cpu=cpu, role=f"r{cpu}")
    )
    tier = min(tier, network.tier_of[CLUSTER] - 1)
    gang = make_gang("g", waiting=waiting, topology=hard(tier))
    in_order = sorted(sizes, reverse=True)
    possible = {
        name: packs(network.room(names), in_order) for name, names in network.inside.items()
    }
    check(network, network.plan(gang), possible=possible, tier=tier)


def _children(network: Network, name: str) -> Iterator[str]:
    at = network.domains.names.index(name)
    for child, parent in zip(network.domains.names, network.domains.parents, strict=True):
        if parent == at:
            yield child


def whole_parts(network: Network, name: str, *, size: int, tier: int) -> int:
    """How many sub-groups of ``size`` a domain holds, each in one of that tier at most."""
    if network.tier_of[name] <= tier:
        return sum(network.room(network.inside[name])) // size
    return sum(
        whole_parts(network, child, size=size, tier=tier) for child in _children(network, name)
    )


@examples(60)
@given(
    networks(most=32),
    st.tuples(st.integers(1, 5), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.booleans(),
)
def test_sub_groups_find_domains_inside_that_of_the_gang_whenever_they_exist(
    network: Network, counts: tuple[int, int], tiers: tuple[int, int], told: bool
) -> None:
    """``told``: the policy says how many have to be whole; else that follows from the minimum."""
    count, size = counts
    sub_tier, tier = (min(each, network.tier_of[CLUSTER] - 1) for each in tiers)
    waiting = members("g", size * count)
    of = {task.uid: SubGroup("s", str(at // size)) for at, task in enumerate(waiting)}
    policy = SubGroupPolicy(
        "s", keys=("k",), size=size, least=count * told, topology=hard(sub_tier)
    )
    gang = make_gang(
        "g",
        waiting=waiting,
        topology=hard(tier),
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    possible = {
        name: whole_parts(network, name, size=size, tier=sub_tier) >= count
        for name in network.inside
    }
    outcome = network.plan(gang)
    check(network, outcome, possible=possible, tier=tier)
    has_tiers = min(network.tier_of.values()) <= min(sub_tier, tier)
    if not outcome.nodes("g") and outcome.refusal("g").cause is Cause.NO_DOMAIN and has_tiers:
        assert outcome.refusal("g").never is Never.DOMAINS
    parts: dict[SubGroup, set[str]] = {}
    for name, node in outcome.nodes("g").items():
        parts.setdefault(of[PodUid(f"uid-{name}")], set()).add(node)
    for nodes in parts.values():
        assert any(
            nodes <= names
            for name, names in network.inside.items()
            if network.tier_of[name] <= sub_tier
        )


def hold_parts(
    room: tuple[int, ...], parts: Sequence[Sequence[int]], domains: Sequence[Sequence[int]]
) -> bool:
    """Whether members of these sizes have room on nodes together, each part inside one domain."""
    if not parts:
        return True
    first, *rest = parts
    return any(
        hold_parts(left, rest, domains)
        for rows in domains
        for left in left_after(room, sorted(first, reverse=True), rows)
    )


def left_after(
    room: tuple[int, ...], sizes: Sequence[int], rows: Sequence[int]
) -> set[tuple[int, ...]]:
    """What may be left of the room once members of these sizes are on nodes of these rows."""
    left = {room}
    for size in sizes:
        left = {
            (*free[:row], free[row] - size, *free[row + 1 :])
            for free in left
            for row in rows
            if free[row] >= size
        }
    return left


@examples(60)
@given(
    networks(most=8),
    st.integers(2, 3).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(1, 4), min_size=size, max_size=size), min_size=1, max_size=3
        )
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.booleans(),
)
def test_sub_groups_of_several_shapes_find_domains_whenever_they_exist(
    network: Network, parts: list[list[int]], tiers: tuple[int, int], told: bool
) -> None:
    """``told``: the policy says how many have to be whole; else that follows from the minimum."""
    sub_tier, tier = (min(each, network.tier_of[CLUSTER] - 1) for each in tiers)
    waiting, of = [], {}
    for number, sizes in enumerate(parts):
        for at, cpu in enumerate(sizes):
            [task] = members(f"g-{number}-{at}", 1, cpu=cpu, role=f"r{cpu}")
            waiting.append(task)
            of[task.uid] = SubGroup("s", str(number))
    policy = SubGroupPolicy(
        "s", keys=("k",), size=len(parts[0]), least=len(parts) * told, topology=hard(sub_tier)
    )
    gang = make_gang(
        "g",
        waiting=tuple(waiting),
        topology=hard(tier),
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    rows = {
        name: [at for at in range(len(network.sizes)) if f"n{at}" in names]
        for name, names in network.inside.items()
    }
    low = [name for name in rows if network.tier_of[name] <= sub_tier]
    possible = {
        name: hold_parts(
            network.sizes,
            parts,
            [rows[part] for part in low if network.inside[part] <= network.inside[name]],
        )
        for name in network.inside
    }
    outcome = network.plan(gang)
    check(network, outcome, possible=possible, tier=tier)
    used: dict[SubGroup, set[str]] = {}
    for name, node in outcome.nodes("g").items():
        used.setdefault(of[PodUid(f"uid-{name}")], set()).add(node)
    for nodes in used.values():
        assert any(nodes <= network.inside[name] for name in low)
