"""Sub-groups that are together in a domain, or apart in different ones."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.exchange import Exchange
from app.model.gang import Gang, Task
from app.model.ids import NodeName, PodUid
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause
from app.model.snapshot import MemberPlace
from app.model.topology import PartTerm, Tier, TopologyAffinity
from tests.builders import make_gang
from tests.core.actions.rigs import (
    Outcome,
    cores,
    cycle,
    gang_of,
    members,
    policies,
    sized,
    vector,
)
from tests.core.contended import contended, eviction_for, places, running_gang, victims
from tests.topology import hard, make_domains, racks, zone

RACKS = (
    *racks(a="n0 n1", b="n2 n3", c="n4 n5", d="n6 n7"),
    zone("y", "a", "b"),
    zone("z", "c", "d"),
)
"""Two zones of two racks each."""
RACK, ZONE = Tier(1), Tier(2)


def apart(*policies: str, tier: Tier = RACK, weight: int = 0) -> TopologyAffinity:
    return TopologyAffinity(parts_apart=(PartTerm(policies, tier, weight),))


def near(*policies: str, tier: Tier = RACK, weight: int = 0) -> TopologyAffinity:
    return TopologyAffinity(parts_near=(PartTerm(policies, tier, weight),))


def both(*of: TopologyAffinity) -> TopologyAffinity:
    return TopologyAffinity(
        parts_near=tuple(term for each in of for term in each.parts_near),
        parts_apart=tuple(term for each in of for term in each.parts_apart),
    )


def parted(
    affinity: TopologyAffinity, *, size: int = 2, cpu: int = 1, p: int = 0, q: int = 0, **f: Any
) -> Gang:
    """So many sub-groups of the policies ``p`` and ``q``, of ``size`` members each."""
    waiting: list[Task] = []
    of: dict[PodUid, SubGroup] = {}
    shape = sized(1)
    for policy, count in (("p", p), ("q", q)):
        for number in range(count):
            mine = members(f"{policy}{number}", size, shape=shape)
            waiting += mine
            of.update({task.uid: SubGroup(policy, str(number)) for task in mine})
    known = tuple(
        SubGroupPolicy(name, keys=("k",), size=size, least=count)
        for name, count in (("p", p), ("q", q))
    )
    fields: dict[str, Any] = {
        "sub_groups": known,
        "sub_group_of": of,
        "sub_group_valid": Counter(of.values()),
        "affinity": affinity,
    }
    return make_gang("g", waiting=tuple(waiting), **(fields | f))


def plan(*gangs: Gang, sizes: Sequence[int] = (2,) * 8, **fields: Any) -> Outcome:
    nodes = cores(*sizes)
    return cycle(*gangs, nodes=nodes, **({"domains": make_domains(nodes, RACKS)} | fields))


def racks_of(outcome: Outcome) -> Mapping[str, str]:
    """The racks of each sub-group, in one word."""
    found = defaultdict(set)
    for member, node in outcome.nodes("g").items():
        found[member.partition("-")[0]].add("aabbccdd"[int(node[1:])])
    return {part: "".join(sorted(some)) for part, some in found.items()}


def test_sub_groups_of_one_policy_are_in_different_domains() -> None:
    found = racks_of(plan(parted(apart("p"), p=4)))
    assert sorted(found.values()) == ["a", "b", "c", "d"]
    assert racks_of(plan(parted(apart("p"), p=5))) == {}
    assert len(racks_of(plan(parted(apart("q"), p=5)))) == 5


def test_sub_groups_of_two_policies_are_apart_from_each_other_and_not_among_themselves() -> None:
    found = racks_of(plan(parted(apart("p", "q"), p=3, q=4)))
    of_p = {found[part] for part in found if part.startswith("p")}
    of_q = {found[part] for part in found if part.startswith("q")}
    assert len(found) == 7
    assert not set("".join(of_p)) & set("".join(of_q))


def test_sub_groups_are_in_one_domain_though_the_first_fits_elsewhere_better() -> None:
    gang = parted(near("p", "q"), p=1, q=1)
    found = racks_of(plan(gang, sizes=(2, 1, 2, 1, 2, 2, 1, 0)))
    assert found == {"p0": "c", "q0": "c"}


def test_what_is_together_in_a_zone_is_apart_in_its_racks() -> None:
    gang = parted(both(near("p", "q", tier=ZONE), apart("p"), apart("q")), p=2, q=2)
    found = racks_of(plan(gang, sizes=(9, 9, 1, 0, 4, 0, 4, 0)))
    assert {found["p0"], found["p1"]} == {found["q0"], found["q1"]} == {"c", "d"}


def test_a_sub_group_that_fits_anywhere_leaves_the_one_domain_of_another() -> None:
    """The first is smaller; placed where it leaves the least room, it would take the last rack."""
    large = parted(apart("p", "q"), size=3, p=1, q=1)
    found = racks_of(plan(large, sizes=(3, 0, 0, 0, 2, 1, 0, 0)))
    assert sorted(found.values()) == ["a", "c"]


def test_a_sub_group_may_span_domains_that_it_has_to_itself() -> None:
    found = racks_of(plan(parted(apart("p"), size=4, p=2), sizes=(1,) * 8))
    assert sorted(map(len, found.values())) == [2, 2]
    assert not set(found["p0"]) & set(found["p1"])


def test_members_that_run_are_what_the_others_are_apart_from() -> None:
    gang = parted(apart("p"), p=2, min_member=2)
    gang = replace(gang, sub_groups=(replace(gang.sub_groups[0], least=2),))
    held = MemberPlace(NodeName("n0"), "", vector(cpu=1), SubGroup("p", "9"))
    found = racks_of(plan(gang, places={gang.key: (held,)}))
    assert len(found) == 2
    assert "a" not in "".join(found.values())


def test_sub_groups_beyond_the_minimum_obey_terms_too() -> None:
    gang = parted(apart("p"), p=6, min_member=2)
    gang = replace(gang, sub_groups=(replace(gang.sub_groups[0], least=1),))
    found = racks_of(plan(gang))
    assert sorted(found.values()) == ["a", "b", "c", "d"]


def test_the_first_sub_group_beyond_no_minimum_takes_a_domain_that_has_room_for_it() -> None:
    gang = parted(near("p"), size=3, p=1, min_member=0)
    gang = replace(gang, sub_groups=(replace(gang.sub_groups[0], least=0),))
    assert racks_of(plan(gang, sizes=(1, 1, 2, 0, 2, 1, 1, 0))) == {"p0": "c"}


def test_why_sub_groups_wait_is_told() -> None:
    outcome = plan(parted(apart("p"), p=5))
    assert outcome.refusal("g").cause is Cause.TOPOLOGY_AFFINITY
    assert "8 node(s) didn't match the group's subGroupAntiAffinity" in outcome.text("g")
    assert "subGroupAntiAffinity: [p] have a, b, c and 1 more (4 of 4 domains)" in outcome.text("g")


@pytest.mark.parametrize("weight", [1, 100])
def test_preferred_terms_count_where_there_is_room_and_bar_nothing(weight: int) -> None:
    found = racks_of(plan(parted(apart("p", weight=weight), p=4)))
    assert sorted(found.values()) == ["a", "b", "c", "d"]
    assert len(racks_of(plan(parted(apart("p", weight=weight), p=8)))) == 8
    together = racks_of(plan(parted(near("p", "q", weight=weight), size=1, p=2, q=2)))
    assert len(set(together.values())) == 1


def test_places_are_exchanged_inside_a_sub_group_only() -> None:
    outcome = plan(parted(apart("p"), p=1, q=1))
    found = {p.task.name[:2]: p.exchange for d in outcome.decisions("g") for p in d.placements}
    assert found["p0"] == Exchange(frozenset({"affinity of default/g 0"}))
    assert found["q0"].is_open


def test_pods_go_for_sub_groups_in_domains_that_keep_them_apart() -> None:
    nodes = cores(*(1,) * 8)
    gang = replace(parted(apart("p"), p=2), priority=9)
    running = [running_gang(f"low{row}", [row], priority=0) for row in range(8)]
    by = policies(
        (("priority", PluginConf("gang", switches={"enablePreemptable": False})), ("predicates",)),
        ("enqueue", "allocate", "preempt", "backfill"),
    )
    outcome = contended(
        gang, running=running, nodes=nodes, by=by, domains=make_domains(nodes, RACKS)
    )
    found = defaultdict(set)
    for member, node in places(eviction_for(outcome, "g")).items():
        found[member[:2]].add("aabbccdd"[int(node[1:])])
    assert len(victims(outcome)) == 4
    assert not found["p0"] & found["p1"]


def test_a_gang_in_one_domain_has_its_sub_groups_apart_inside() -> None:
    gang = parted(apart("p"), p=2, topology=hard(2))
    found = racks_of(plan(gang, sizes=(4, 4, 1, 0, 1, 1, 2, 2)))
    assert sorted(found.values()) == ["c", "d"]


def test_a_thousand_sub_groups_of_which_two_have_no_domains_apart_wait() -> None:
    """The two racks are in one zone, and every zone takes one sub-group."""
    gang = parted(apart("p", tier=ZONE), size=3, p=1000)
    policy = replace(gang.sub_groups[0], least=2, topology=hard(1))
    nodes = cores(*(4,) * 4)
    domains = make_domains(nodes, RACKS[:2] + RACKS[4:5])
    outcome = cycle(
        replace(gang, sub_groups=(policy,), min_member=6),
        gang_of("other", 2),
        nodes=nodes,
        domains=domains,
    )
    assert outcome.nodes("g") == {}
    assert outcome.refusal("g").cause is Cause.NO_DOMAIN
    assert len(outcome.nodes("other")) == 2


def test_a_sub_group_behind_a_thousand_that_fit_nowhere_is_placed() -> None:
    gang = parted(apart("p"), size=3, p=1000, q=1)
    known = [replace(each, least=int(each.name == "q")) for each in gang.sub_groups]
    pinned = {task.uid: replace(task, pinned=NodeName("none")) for task in gang.waiting[:3000]}
    waiting = tuple(pinned.get(task.uid, task) for task in gang.waiting)
    gang = replace(gang, sub_groups=tuple(known), waiting=waiting, min_member=3)
    assert racks_of(plan(gang, sizes=(3, 0, 0, 0, 0, 0, 0, 0))) == {"q0": "a"}
