"""Gangs that ask for one domain of the network."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang
from app.model.ids import NodeName, PodUid
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Never
from app.model.resources import Matrix
from app.model.snapshot import MemberPlace
from app.model.topology import HyperNode, NetworkTopology, TopologyMode
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
    used,
    vector,
)
from tests.topology import SOFT, hard, make_domains, node_names, racks, zone

RACKS = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"))
"""Two racks in one zone, and a third that is in none."""


def plan(
    *gangs: Gang, sizes: Sequence[int], tree: Sequence[HyperNode] = RACKS, **f: Any
) -> Outcome:
    nodes = cores(*sizes)
    return cycle(*gangs, nodes=nodes, domains=make_domains(nodes, tree), **f)


def racks_of(outcome: Outcome, gang: str = "g") -> set[str]:
    return {"aabbcc"[int(node[1:])] for node in outcome.nodes(gang).values()}


def test_a_gang_is_placed_in_the_lowest_domain_that_takes_all_of_it() -> None:
    sizes = (2, 1, 2, 1, 1, 1)
    assert racks_of(plan(gang_of("g", 3, topology=hard(2)), sizes=sizes)) <= {"a", "b"}
    assert len(racks_of(plan(gang_of("g", 3, topology=hard(2)), sizes=sizes))) == 1
    assert racks_of(plan(gang_of("g", 4, topology=hard(2)), sizes=sizes)) == {"a", "b"}


def test_of_equal_tiers_the_domain_with_the_least_room_to_spare_is_taken() -> None:
    gang = gang_of("g", 3, topology=hard(1))
    assert racks_of(plan(gang, sizes=(4, 4, 2, 2, 4, 0))) == {"b"}


def test_of_equal_room_the_domain_in_the_fuller_parent_is_taken() -> None:
    tree = (*racks(a="n0", b="n1", c="n2", d="n3"), zone("y", "a", "b"), zone("z", "c", "d"))
    outcome = plan(gang_of("g", 2, topology=hard(1)), sizes=(2, 4, 2, 3), tree=tree)
    assert set(outcome.nodes("g").values()) == {"n2"}


def test_of_equal_tiers_the_domain_is_taken_that_has_room_for_members_beyond_the_minimum() -> None:
    gang = gang_of("g", 6, topology=hard(1), min_member=2)
    outcome = plan(gang, sizes=(2, 1, 2, 2, 3, 3))
    assert racks_of(outcome) == {"c"}
    assert len(outcome.nodes("g")) == 6
    assert racks_of(plan(gang, sizes=(1, 1, 2, 2, 2, 1))) == {"b"}
    assert racks_of(plan(gang, sizes=(9, 9, 3, 3, 7, 7))) == {"b"}


def filled(**taken: int) -> Matrix:
    """Cores in use by the name of a node."""
    return used(cores(*(9,) * 6), **taken)


def test_no_domain_is_told_with_its_numbers() -> None:
    full = filled(n0=1, n1=1, n2=1, n3=2, n4=1, n5=1)
    outcome = plan(gang_of("g", 3, topology=hard(1)), sizes=(2,) * 6, used=full)
    assert outcome.refusal("g").cause is Cause.NO_DOMAIN
    assert outcome.refusal("g").never is None
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 1 has room for 3 pods of cpu 1; a lacks cpu 1"
    )


def test_room_in_pieces_is_told_by_the_number_of_pods_that_fit() -> None:
    full = filled(n1=1, n2=1, n3=1, n4=1, n5=1)
    outcome = plan(gang_of("g", 2, cpu=2, topology=hard(1)), sizes=(3, 2, 2, 2, 2, 2), used=full)
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 1 has room for 2 pods of cpu 2; "
        "a has nodes for 1 of 2"
    )


def test_a_gang_that_no_empty_domain_holds_is_told_so_and_set_aside() -> None:
    gang = gang_of("g", 5, topology=hard(1))
    outcome = plan(gang, sizes=(2,) * 6, used=filled(n0=1))
    assert outcome.refusal("g").never is Never.DOMAINS
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 1 has room for 5 pods of cpu 1; a would have room "
        "for 4 if nothing ran there; never: more than any domain has that the group may be in"
    )
    assert outcome.plan.set_aside == {gang.key}
    assert plan(replace(gang, topology=hard(2)), sizes=(2,) * 6).nodes("g")


def test_gangs_of_one_cycle_are_each_told_by_what_they_ask_for() -> None:
    of = {
        "fits": gang_of("fits", 4, topology=hard(1)),
        "wide": gang_of("wide", 5, topology=hard(2)),
        "large": gang_of("large", 5, topology=hard(1)),
        "elastic": gang_of("elastic", 5, topology=hard(1), min_member=4),
        "thick": gang_of("thick", 2, cpu=3, topology=hard(1)),
    }
    outcome = plan(*of.values(), sizes=(2,) * 6, used=filled(n0=2, n1=1, n2=2, n3=1, n4=2, n5=1))
    told = {name: outcome.refusal(name).never for name in of}
    assert told == dict.fromkeys(("fits", "wide", "elastic"), None) | {
        "large": Never.DOMAINS,
        "thick": Never.DOMAINS,
    }


def test_members_of_several_shapes_are_held_against_the_sums_of_domains() -> None:
    (first, *others) = members("g", 3, role="a")
    pinned = [replace(first, pinned=NodeName("n2")), *others]
    gang = make_gang("g", waiting=(*pinned, *members("g", 3, role="b")), topology=hard(1))
    outcome = plan(gang, sizes=(9, 9, 2, 3, 9, 9))
    assert outcome.refusal("g").never is Never.DOMAINS
    assert "; b would lack cpu 1 if nothing ran there; never: " in outcome.text("g")
    assert plan(gang, sizes=(9, 9, 2, 4, 9, 9)).nodes("g")


def test_what_members_held_before_does_not_make_a_domain_the_only_one() -> None:
    story = running("n2", "n3", waiting=2, topology=hard(1))
    full = {"sizes": (9, 9, 1, 1, 9, 9), "places": story["places"]}
    refused = plan(story["gang"], used=filled(n2=1, n3=1), **full)
    assert refused.refusal("g").never is None


def test_a_sub_group_that_no_empty_domain_holds_is_told_so() -> None:
    outcome = plan(parted(1, size=3, count=2), sizes=(1, 1, 1, 0, 1, 1))
    assert outcome.refusal("g").never is Never.DOMAINS
    assert "s/0" in outcome.text("g")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (hard(0), "there is no domain of tier <= 0"),
        (
            NetworkTopology(highest_tier_name="row"),
            "the network has no tier row; its tiers are rack, zone",
        ),
    ],
)
def test_a_tier_without_domains_is_told(asked: NetworkTopology, text: str) -> None:
    outcome = plan(gang_of("g", 1, topology=asked), sizes=(9,) * 6)
    assert outcome.text("g") == f"group default/g: {text}"


def test_a_network_without_names_of_tiers_says_so() -> None:
    asked = NetworkTopology(highest_tier_name="row")
    tree = (HyperNode("a", 1, members=node_names("n0")),)
    outcome = plan(gang_of("g", 1, topology=asked), sizes=(9,) * 6, tree=tree)
    assert outcome.text("g") == (
        "group default/g: the network has no tier row; none of its tiers has a name"
    )


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (hard(0), "there is no domain of tier <= 0; the cluster has no HyperNodes yet"),
        (
            NetworkTopology(highest_tier_name="row"),
            "the network has no tier row; the cluster has no HyperNodes yet",
        ),
    ],
)
def test_a_tier_that_is_asked_before_there_are_hyper_nodes_is_told(
    asked: NetworkTopology, text: str
) -> None:
    outcome = plan(gang_of("g", 1, topology=asked), sizes=(9,) * 6, tree=())
    assert outcome.text("g") == f"group default/g: {text}"
    assert outcome.refusal("g").never is None


def test_a_tier_may_be_named() -> None:
    asked = NetworkTopology(highest_tier_name="zone")
    assert racks_of(plan(gang_of("g", 4, topology=asked), sizes=(2, 1, 2, 1, 9, 9))) == {"c"}
    assert racks_of(plan(gang_of("g", 4, topology=asked), sizes=(2, 1, 2, 1, 1, 1))) == {"a", "b"}


def test_a_soft_gang_lies_close_together_and_apart_only_where_it_must() -> None:
    assert racks_of(plan(gang_of("g", 3, topology=SOFT), sizes=(1, 1, 2, 1, 1, 1))) == {"b"}
    assert len(plan(gang_of("g", 7, topology=SOFT), sizes=(1, 1, 2, 1, 1, 1)).nodes("g")) == 7
    outcome = plan(gang_of("g", 8, topology=SOFT), sizes=(1, 1, 2, 1, 1, 1))
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES


def test_a_place_is_not_taken_out_of_its_domain() -> None:
    outcome = plan(
        gang_of("g", 2, topology=hard(1)),
        gang_of("s", 4, topology=SOFT),
        gang_of("p", 1),
        sizes=(1, 1, 2, 1, 3, 3),
    )
    classes = {
        name: {p.exchange for d in outcome.decisions(name) for p in d.placements} for name in "gsp"
    }
    assert classes == {
        "g": {Exchange(frozenset({"domain a"}))},
        "s": {Exchange(frozenset({"domain c"}))},
        "p": {ANY_EQUAL},
    }


def test_a_limit_of_the_queue_is_told_as_such() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=2))
    gang = gang_of("g", 3, queue=queue.name, topology=hard(1))
    outcome = plan(gang, sizes=(9,) * 6, queues=[queue], by=policies((("gang",), ("capacity",))))
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA


def running(*on: str, waiting: int = 1, minimum: int = 0, topology: Any) -> dict[str, Any]:
    """A gang with members on nodes, of which others are lost or came later."""
    gang = make_gang(
        "g",
        waiting=members("g", waiting),
        min_member=minimum or len(on) + waiting,
        allocated=vector(cpu=len(on)),
        topology=topology,
    )
    gang = replace(gang, counts=counts_of(gang.waiting, running=len(on)))
    places = tuple(MemberPlace(NodeName(node), "", vector(cpu=1)) for node in on)
    return {"gang": gang, "places": {gang.key: places}}


def test_a_lost_member_is_replaced_in_the_domain_of_the_others() -> None:
    story = running("n2", "n3", topology=hard(1))
    outcome = plan(story["gang"], sizes=(9, 9, 1, 2, 9, 9), places=story["places"])
    assert racks_of(outcome) == {"b"}


def test_a_lost_member_goes_to_the_next_higher_domain_that_is_allowed() -> None:
    full: dict[str, Any] = {"sizes": (9, 9, 1, 1, 9, 9), "used": used(cores(*(9,) * 6), n2=1, n3=1)}
    narrow, wide = running("n2", "n3", topology=hard(1)), running("n2", "n3", topology=hard(2))
    assert racks_of(plan(wide["gang"], places=wide["places"], **full)) == {"a"}
    refused = plan(narrow["gang"], places=narrow["places"], **full)
    assert refused.text("g").endswith(
        "no domain of tier <= 1 has room for 1 pod of cpu 1; b lacks cpu 1"
    )


def test_members_in_no_common_domain_are_told_of() -> None:
    story = running("n0", "n4", topology=hard(2))
    outcome = plan(story["gang"], sizes=(9,) * 6, places=story["places"])
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 2 has the nodes of all its running members"
    )


def test_members_beyond_the_minimum_stay_in_the_domain() -> None:
    gang = gang_of("g", 6, topology=hard(1), min_member=2)
    outcome = plan(gang, sizes=(1, 1, 2, 1, 1, 1))
    assert racks_of(outcome) == {"b"}
    assert len(outcome.nodes("g")) == 3
    story = running("n2", waiting=3, minimum=1, topology=hard(1))
    outcome = plan(story["gang"], sizes=(9, 9, 1, 1, 9, 9), places=story["places"])
    assert sorted(outcome.nodes("g").values()) == ["n2", "n3"]


def test_members_of_several_shapes_are_packed_where_one_by_one_leaves_gaps() -> None:
    waiting = (*members("g", 2, cpu=2, role="a"), *members("g", 2, cpu=3, role="b"))
    gang = make_gang("g", waiting=waiting, topology=hard(1))
    outcome = plan(gang, sizes=(5, 5, 1, 1, 1, 1))
    assert Counter(outcome.nodes("g").values()) == {"n0": 2, "n1": 2}


def parted(sub: int, *, size: int, count: int, **fields: Any) -> Gang:
    """``count`` sub-groups of ``size``, each in a domain of tier ``sub`` at most."""
    waiting = members("g", size * count)
    of = {task.uid: SubGroup("s", str(at // size)) for at, task in enumerate(waiting)}
    policy = SubGroupPolicy("s", keys=("k",), size=size, least=count, topology=hard(sub))
    return make_gang(
        "g",
        waiting=waiting,
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
        **fields,
    )


def test_sub_groups_have_their_domains_inside_that_of_the_gang() -> None:
    gang = parted(1, size=2, count=2, topology=hard(2))
    outcome = plan(gang, sizes=(1, 1, 2, 1, 9, 0))
    assert racks_of(outcome) == {"c"}
    outcome = plan(gang, sizes=(1, 1, 2, 1, 3, 0))
    by_part: dict[SubGroup, set[str]] = {}
    for name, node in outcome.nodes("g").items():
        part = gang.sub_group_of[PodUid(f"uid-{name}")]
        by_part.setdefault(part, set()).add("aabb"[int(node[1:])])
    assert sorted(map(sorted, by_part.values())) == [["a"], ["b"]]
    classes = {p.exchange.inside for d in outcome.decisions("g") for p in d.placements}
    assert classes == {
        frozenset({"domain z", "domain a"}),
        frozenset({"domain z", "domain b"}),
    }


def test_a_gang_whose_sub_groups_find_no_domain_waits_whole() -> None:
    gang = parted(1, size=2, count=2, topology=hard(2))
    outcome = plan(gang, sizes=(1, 1, 1, 0, 1, 1))
    assert not outcome.nodes("g")
    assert outcome.refusal("g").cause is Cause.NO_DOMAIN


def test_sub_groups_of_a_gang_that_may_lie_anywhere_have_domains_of_their_own() -> None:
    gang = parted(1, size=2, count=2)
    outcome = plan(gang, sizes=(1, 1, 1, 0, 1, 1))
    assert racks_of(outcome) == {"a", "c"}
    outcome = plan(gang, sizes=(1, 1, 1, 0, 1, 0))
    assert outcome.refusal("g").cause is Cause.NO_DOMAIN
    assert outcome.text("g") == (
        "group default/g, s: domains of tier <= 1 would have room for 1 of 2 sub-groups of 2 pods "
        "of cpu 1 if nothing ran there; never: more than any domain has that the group may be in"
    )


@pytest.mark.parametrize("topology", [None, SOFT, hard(2)], ids=["none", "soft", "hard"])
def test_sub_groups_that_all_domains_together_cannot_hold_now_may_fit_later(topology: Any) -> None:
    gang = parted(1, size=2, count=2, topology=topology)
    outcome = plan(gang, sizes=(1, 1, 1, 1, 1, 0), used=filled(n3=1))
    assert outcome.text("g") == (
        "group default/g, s: domains of tier <= 1 have room for 1 of 2 sub-groups of 2 pods of "
        "cpu 1"
    )
    assert outcome.refusal("g").never is None
    assert not outcome.plan.set_aside


def test_sub_groups_that_no_domain_of_the_gang_could_hold_even_empty_are_told_so() -> None:
    """There are domains for each of them, and too few below any domain of the gang."""
    tree = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"), zone("y", "c"))
    gang = parted(1, size=2, count=2, topology=hard(2))
    sizes = (1, 1, 1, 0, 1, 1)
    outcome = plan(gang, sizes=sizes, tree=tree)
    assert outcome.refusal("g").never is Never.DOMAINS
    outcome = plan(gang, sizes=(2, 1, 1, 0, 1, 1), tree=tree)
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 2 has room for 4 pods of cpu 1; z would have room "
        "for 1 of 2 sub-groups if nothing ran there; never: more than any domain has that the "
        "group may be in"
    )
    sizes = (2, 1, 2, 1, 1, 1)
    outcome = plan(gang, sizes=sizes, tree=tree, used=filled(n3=1, n2=1))
    assert outcome.refusal("g").never is None
    assert outcome.text("g") == (
        "group default/g: no domain of tier <= 2 has room for 4 pods of cpu 1; z has room for 1 of "
        "2 sub-groups"
    )


def test_sub_groups_of_several_shapes_that_no_empty_domain_holds_are_told_so() -> None:
    """Each of its members would fit, and not all of one sub-group."""
    waiting = (*members("g", 1, cpu=2, role="a"), *members("g", 1, cpu=3, role="b"))
    of = {task.uid: SubGroup("s", "0") for task in waiting}
    policy = SubGroupPolicy("s", keys=("k",), size=2, least=1, topology=hard(1))
    gang = make_gang(
        "g",
        waiting=waiting,
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    outcome = plan(gang, sizes=(3, 1, 3, 1, 4, 0))
    assert outcome.refusal("g").never is Never.DOMAINS
    assert outcome.refusal("g").where == "default/g, s/0"
    assert plan(gang, sizes=(3, 2, 3, 1, 4, 0)).nodes("g")


def test_a_tier_of_sub_groups_that_there_is_not_is_told() -> None:
    asked = NetworkTopology(highest_tier_name="row")
    gang = parted(1, size=2, count=2, topology=hard(2))
    gang = replace(gang, sub_groups=(replace(gang.sub_groups[0], topology=asked),))
    outcome = plan(gang, sizes=(9,) * 6)
    assert "the network has no tier row; its tiers are rack, zone" in outcome.text("g")


def test_without_hyper_nodes_the_whole_cluster_is_of_tier_one() -> None:
    assert len(cycle(gang_of("g", 3, topology=hard(1)), nodes=cores(1, 1, 1)).nodes("g")) == 3


def test_soft_is_not_hard_without_a_tier() -> None:
    asked = NetworkTopology(TopologyMode.HARD)
    assert len(plan(gang_of("g", 7, topology=asked), sizes=(1, 1, 2, 1, 1, 1)).nodes("g")) == 7
