"""Gangs whose members are in at least so many domains of a tier, or in at most so many."""

from collections import Counter
from collections.abc import Sequence
from time import process_time
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import NodeName
from app.model.reason import Cause
from app.model.snapshot import MemberPlace
from app.model.topology import SpreadTerm, Tier, TopologyAffinity
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import (
    Outcome,
    amounts_of,
    cores,
    counts_of,
    cycle,
    gang_of,
    members,
    policies,
    vector,
)
from tests.core.contended import contended, eviction_for, places, running_gang
from tests.topology import hard, make_domains, racks, zone

RACKS = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"))
"""Two racks in one zone, and a third that is in none."""
RACK, ZONE = Tier(1), Tier(2)


def over(least: int = 1, most: int | None = None, *, tier: Tier = RACK, weight: int = 0) -> Any:
    return TopologyAffinity(spread=(SpreadTerm(tier, least, most, weight),))


def plan(*gangs: Gang, sizes: Sequence[int] = (2,) * 6, **fields: Any) -> Outcome:
    nodes = cores(*sizes)
    return cycle(*gangs, nodes=nodes, **({"domains": make_domains(nodes, RACKS)} | fields))


def racks_of(outcome: Outcome, gang: str = "g") -> dict[str, int]:
    """How many members each rack has."""
    return Counter("aabbcc"[int(node[1:])] for node in outcome.nodes(gang).values())


@pytest.mark.parametrize("least", [1, 2, 3])
def test_members_are_in_at_least_so_many_domains(least: int) -> None:
    found = racks_of(plan(gang_of("g", 3, affinity=over(least)), sizes=(9,) * 6))
    assert len(found) >= least
    assert sum(found.values()) == 3


@pytest.mark.parametrize(
    ("most", "sizes", "racks"), [(1, (1, 1, 2, 2, 1, 1), "b"), (2, (2, 1, 0, 1, 2, 2), "ac")]
)
def test_members_are_in_at_most_so_many_domains(most: int, sizes: Any, racks: str) -> None:
    """Nodes are taken by name, so a rack that is too small would be opened first."""
    count = 4 if most == 1 else 6
    found = racks_of(plan(gang_of("g", count, affinity=over(most=most)), sizes=sizes))
    assert "".join(sorted(found)) == racks


def test_a_gang_of_more_members_than_so_many_domains_take_waits() -> None:
    outcome = plan(gang_of("g", 9, affinity=over(most=2)))
    assert outcome.nodes("g") == {}
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES
    assert "memberSpread: at least 1, at most 2 domains; its members have " in outcome.text("g")


def test_a_gang_that_asks_for_more_domains_than_there_are_waits() -> None:
    outcome = plan(gang_of("g", 4, affinity=over(4)))
    assert outcome.nodes("g") == {}
    assert outcome.refusal("g").cause is Cause.TOPOLOGY_AFFINITY
    assert "6 node(s) didn't match the group's memberSpread" in outcome.text("g")
    assert "memberSpread: at least 4 domains; its members have a, b, c (3 of 3" in outcome.text("g")


def test_members_beyond_the_minimum_open_the_domains_that_are_lacking() -> None:
    gang = gang_of("g", 5, affinity=over(3), min_member=2)
    assert len(racks_of(plan(gang, sizes=(9,) * 6))) == 3


def test_a_member_that_is_made_anew_keeps_the_spread() -> None:
    [lost] = members("g", 1)
    held = tuple(MemberPlace(NodeName(node), "", vector(cpu=1)) for node in ("n0", "n1", "n2"))
    gang = make_gang(
        "g",
        waiting=(lost,),
        min_member=4,
        affinity=over(3, 3),
        counts=counts_of((lost,), running=3),
        role_ready={"": 3},
    )
    assert racks_of(plan(gang, sizes=(9,) * 6, places={gang.key: held})) == {"c": 1}


def test_the_network_topology_of_a_gang_holds_beside_its_spread() -> None:
    gang = gang_of("g", 4, topology=hard(2), affinity=over(2))
    assert racks_of(plan(gang, sizes=(4, 4, 1, 0, 9, 9))).keys() == {"a", "b"}
    assert plan(gang, sizes=(4, 4, 0, 0, 9, 9)).nodes("g") == {}


def test_members_of_several_shapes_open_domains_that_take_them() -> None:
    """The large one fits in one rack only; by their order the small ones would fill it."""
    gang = make_gang(
        "g",
        waiting=(*members("g", 2, cpu=1, role="a"), *members("g", 1, cpu=3, role="b")),
        affinity=over(2),
    )
    found = racks_of(plan(gang, sizes=(3, 0, 2, 0, 0, 0)))
    assert found == {"a": 1, "b": 2}


def test_a_preferred_spread_counts_where_there_is_room_and_bars_nothing() -> None:
    gang = gang_of("g", 3, affinity=over(3, weight=100))
    assert len(racks_of(plan(gang, sizes=(9,) * 6))) == 3
    assert len(racks_of(plan(gang, sizes=(9, 0, 9, 0, 0, 0)))) == 2


def test_a_limit_of_the_queue_is_told_as_such() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=2))
    gang = gang_of("g", 3, queue=queue.name, affinity=over(2, 2))
    outcome = plan(gang, sizes=(9,) * 6, queues=[queue], by=policies((("gang",), ("capacity",))))
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA


@pytest.mark.parametrize(("least", "most"), [(2, None), (1, 1), (3, 3)])
def test_pods_go_so_that_the_spread_holds(least: int, most: int | None) -> None:
    nodes = cores(*(1,) * 6)
    count = 2 if most == 1 else 3
    high = gang_of("high", count, priority=9, affinity=over(least, most))
    running = [running_gang(f"low{row}", [row], priority=0) for row in range(6)]
    by = policies(
        (("priority", PluginConf("gang", switches={"enablePreemptable": False})), ("predicates",)),
        ("enqueue", "allocate", "preempt", "backfill"),
    )
    outcome = contended(
        high, running=running, nodes=nodes, by=by, domains=make_domains(nodes, RACKS)
    )
    found = {"aabbcc"[int(n[1:])] for n in places(eviction_for(outcome, "high")).values()}
    assert least <= len(found) <= (most or 3)


def test_two_gangs_of_a_spread_share_racks() -> None:
    gangs = [gang_of(name, 3, affinity=over(3)) for name in "xyz"]
    outcome = plan(*gangs, sizes=(2, 1, 2, 1, 2, 1))
    assert [len(racks_of(outcome, name)) for name in "xyz"] == [3, 3, 3]


def of_different_shapes(count: int, least: int) -> Gang:
    """So many members, the first of a core, each that follows a little larger."""
    waiting = [task for at in range(count) for task in members(f"g{at}", 1, cpu=1 + at / 1000)]
    return make_gang("g", waiting=tuple(waiting), affinity=over(least))


def on_racks_of_one_node(gang: Gang, *sizes: int) -> Outcome:
    nodes = cores(*sizes)
    tree = racks(**{f"r{at:02}": f"n{at}" for at in range(len(sizes))})
    return cycle(gang, nodes=nodes, domains=make_domains(nodes, tree))


@pytest.mark.parametrize("least", [11, 18])
def test_members_of_many_shapes_that_ask_for_more_domains_than_there_are_wait(least: int) -> None:
    began = process_time()
    outcome = on_racks_of_one_node(of_different_shapes(18, least), *(9,) * 10)
    assert process_time() - began < 5
    assert outcome.refusal("g").cause is Cause.TOPOLOGY_AFFINITY


def test_members_of_many_shapes_in_as_many_domains_as_there_are_wait_without_a_long_search() -> (
    None
):
    """The last rack has room for one member only, and no rack for the rest."""
    began = process_time()
    outcome = on_racks_of_one_node(of_different_shapes(18, 11), *(2,) * 8, 1, 1, 1)
    assert process_time() - began < 5
    assert outcome.nodes("g") == {}


def test_members_of_many_shapes_open_as_many_domains_as_they_have_to() -> None:
    """A small member has to open each of the last racks; the large ones fill the others."""
    gang = make_gang(
        "g",
        waiting=(
            *(task for at in range(4) for task in members(f"l{at}", 1, cpu=3 + at / 10)),
            *(task for at in range(2) for task in members(f"s{at}", 1, cpu=1 - at / 10)),
        ),
        affinity=over(4),
    )
    found = on_racks_of_one_node(gang, 7, 7, 1, 1).nodes("g")
    assert len(found) == 6
    assert len(set(found.values())) == 4
