"""Which nodes a member may go to by the domains of a tier, on a small network."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from app.core.topology.relations import Level, Lie
from app.model.parts import SubGroup
from app.model.resources import Mask
from app.model.shape import LabelSelector
from app.model.topology import (
    GroupTerm,
    HyperNode,
    PartTerm,
    SpreadTerm,
    Tier,
    TopologyAffinity,
)
from tests.core.actions.rigs import cores
from tests.topology import make_domains, node_names, racks, zone

NODES = cores(*(1,) * 8)
TREE = (
    *racks(a="n0 n1", b="n2 n3", c="n4 n5"),
    HyperNode("d", 1, members=node_names("n5", "n6")),
    zone("z", "a", "b"),
)
"""Two racks in a zone, two that overlap, and a node that is in no rack."""


def at(tier: Tier) -> Level:
    level = Level.at(make_domains(NODES, TREE), tier)
    assert level is not None
    return level


def on(*nodes: int) -> Mask:
    mask = np.zeros(len(NODES), dtype=np.bool_)
    mask[list(nodes)] = True
    return mask


def rows(mask: Mask) -> list[int]:
    return np.flatnonzero(mask).tolist()


def test_a_tier_is_known_by_its_number_or_its_name() -> None:
    assert at(Tier(1)).names == at(Tier(name="rack")).names == ("a", "b", "c", "d")
    assert at(Tier(2)).names == at(Tier(name="zone")).names == ("z",)
    assert Level.at(make_domains(NODES, TREE), Tier(name="row")) is None


def test_the_whole_cluster_is_no_domain_of_a_tier() -> None:
    assert at(Tier(3)).names == ()
    assert rows(at(Tier(3)).every) == []
    assert rows(at(Tier(3)).together_with(on())) == []


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ((), [0, 1, 2, 3, 4, 5, 6]),
        ((0,), [2, 3, 4, 5, 6]),
        ((5,), [0, 1, 2, 3]),
        ((7,), [*range(7)]),
    ],
)
def test_apart_means_in_no_domain_of_others(others: tuple[int, ...], left: list[int]) -> None:
    assert rows(at(Tier(1)).apart_from(on(*others))) == left


@pytest.mark.parametrize(
    ("others", "left"), [((), []), ((0,), [0, 1]), ((0, 3), [0, 1, 2, 3]), ((5,), [4, 5, 6])]
)
def test_near_means_in_a_domain_of_others(others: tuple[int, ...], left: list[int]) -> None:
    assert rows(at(Tier(1)).near_to(on(*others))) == left


@pytest.mark.parametrize(
    ("members", "left"),
    [((), [*range(7)]), ((0,), [0, 1]), ((0, 2), []), ((5,), [4, 5, 6]), ((5, 6), [5, 6])],
)
def test_together_means_in_a_domain_that_has_all(members: tuple[int, ...], left: list[int]) -> None:
    assert rows(at(Tier(1)).together_with(on(*members))) == left


@pytest.mark.parametrize(
    ("members", "spread", "others", "left"),
    [
        ((), (1, None), 0, [*range(7)]),
        ((0,), (2, None), 1, [*range(7)]),
        ((0,), (2, None), 0, [2, 3, 4, 5, 6]),
        ((0, 2), (2, None), 0, [*range(7)]),
        ((0, 2), (1, 2), 5, [0, 1, 2, 3]),
        ((0,), (1, 1), 0, [0, 1]),
        ((), (3, 3), 0, [*range(7)]),
    ],
)
def test_a_spread_opens_domains_while_it_has_to_and_while_it_may(
    members: tuple[int, ...], spread: tuple[int, int | None], others: int, left: list[int]
) -> None:
    least, most = spread
    found = at(Tier(1)).spread(on(*members), least=least, most=most, others_to_come=others)
    assert rows(found) == left


P0, P1, Q0 = SubGroup("p", "0"), SubGroup("p", "1"), SubGroup("q", "0")
ANY = LabelSelector()


def near(term: GroupTerm | PartTerm) -> TopologyAffinity:
    if isinstance(term, GroupTerm):
        return TopologyAffinity(groups_near=(term,))
    return TopologyAffinity(parts_near=(term,))


def apart(term: GroupTerm | PartTerm) -> TopologyAffinity:
    if isinstance(term, GroupTerm):
        return TopologyAffinity(groups_apart=(term,))
    return TopologyAffinity(parts_apart=(term,))


def spread(least: int, most: int | None = None) -> TopologyAffinity:
    return TopologyAffinity(spread=(SpreadTerm(Tier(1), least, most),))


@pytest.mark.parametrize(
    ("affinity", "parts", "others", "kept"),
    [
        (apart(GroupTerm(ANY, Tier(1))), {P0: (0,)}, (2,), True),
        (apart(GroupTerm(ANY, Tier(1))), {P0: (0,)}, (1,), False),
        (apart(GroupTerm(ANY, Tier(1), None, 9)), {P0: (0,)}, (1,), True),
        (near(GroupTerm(ANY, Tier(1))), {P0: (0,)}, (1,), True),
        (near(GroupTerm(ANY, Tier(1))), {P0: (0,)}, (), True),
        (near(GroupTerm(ANY, Tier(1))), {P0: (0, 2)}, (1,), False),
        (near(GroupTerm(ANY, Tier(name="row"))), {P0: (0,)}, (1,), False),
        (near(PartTerm(("p", "q"), Tier(2))), {P0: (0,), Q0: (3,)}, (), True),
        (near(PartTerm(("p", "q"), Tier(1))), {P0: (0,), Q0: (3,)}, (), False),
        (near(PartTerm(("p",), Tier(1))), {P0: (0,), Q0: (3,)}, (), True),
        (apart(PartTerm(("p",), Tier(1))), {P0: (0,), P1: (2,)}, (), True),
        (apart(PartTerm(("p",), Tier(1))), {P0: (0,), P1: (1,)}, (), False),
        (apart(PartTerm(("p", "q"), Tier(1))), {P0: (0,), P1: (1,)}, (), True),
        (apart(PartTerm(("p", "q"), Tier(1))), {P0: (0,), Q0: (1,)}, (), False),
        (spread(2), {P0: (0,), P1: (2,)}, (), True),
        (spread(2), {P0: (0,), P1: (1,)}, (), False),
        (spread(2), {P0: (0,)}, (), True),
        (spread(1, 1), {P0: (0, 2)}, (), False),
        (spread(1), {P0: (7,)}, (), False),
    ],
)
def test_required_terms_are_held_against_places(
    affinity: TopologyAffinity,
    parts: Mapping[SubGroup, Sequence[int]],
    others: Sequence[int],
    kept: bool,
) -> None:
    lie = Lie(
        make_domains(NODES, TREE),
        {of: on(*some) for of, some in parts.items()},
        lambda _: on(*others),
    )
    assert lie.keeps(affinity) is kept
