"""Groups that are apart from others, or spread, from the watch to the places of their pods."""

from typing import Any

import pytest

from app.model.reason import Cause
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.topology import GroupTerm, SpreadTerm, Tier, TopologyAffinity
from app.model.workload import PodGroup
from app.service.calls.filtering import Chosen
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.topology import racks

WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
APART = TopologyAffinity(groups_apart=(GroupTerm(WEB, Tier(1)),))
NEAR = TopologyAffinity(groups_near=(GroupTerm(WEB, Tier(1)),))


def network(rig: Rig) -> None:
    rig.node("n0", "n1", "n2", "n3")
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"))


def gang(rig: Rig, name: str, count: int = 2, *, cpu: int = 4000, **fields: Any) -> PodGroup:
    group = rig.group(name, minimum=count, labels={"app": "web"}, **fields)
    for at in range(count):
        rig.pod(f"{name}-{at}", group=name, shape=make_shape(cpu=cpu))
    return group


def places(rig: Rig, name: str, count: int = 2) -> set[str]:
    return {rig.place(f"{name}-{at}") for at in range(count)}


async def test_groups_of_one_cycle_and_of_the_next_keep_apart() -> None:
    rig = Rig()
    network(rig)
    x = gang(rig, "x", affinity=APART)
    gang(rig, "y", affinity=APART)
    await rig.cycle()
    assert {frozenset(places(rig, name)) <= {"n0", "n1"} for name in "xy"} == {True, False}
    gang(rig, "z", affinity=APART)
    await rig.cycle()
    assert places(rig, "z") == {""}
    assert rig.refusals[rig.key("z")].cause is Cause.TOPOLOGY_AFFINITY
    rig.delete("x-0", "x-1")
    rig.unsee("podgroups", x)
    await rig.cycle()
    assert "" not in places(rig, "z")


async def test_a_place_is_not_exchanged_for_one_in_a_domain_of_others() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "x")
    await rig.cycle()
    gang(rig, "g", 1, affinity=APART)
    await rig.cycle()
    theirs = {"n0", "n1"} if places(rig, "x") <= {"n0", "n1"} else {"n2", "n3"}
    assert rig.place("g-0") not in theirs
    assert not isinstance(rig.filter("g-0", sorted(theirs)), Chosen)


async def test_what_others_go_by_is_not_exchanged_for_free_room() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "x", 1)
    gang(rig, "g", 1, affinity=APART)
    await rig.cycle()
    assert not isinstance(rig.filter("x-0", [rig.place("g-0")]), Chosen)


BROKEN = {
    "apart from others": (APART, {"a": "n0 n1 n2 n3"}),
    "spread": (TopologyAffinity(spread=(SpreadTerm(Tier(1), 2),)), {"a": "n0 n1 n2 n3"}),
    "of too few domains": (
        TopologyAffinity(spread=(SpreadTerm(Tier(1), 1, 2),)),
        {"a": "n0", "b": "n1", "c": "n2", "d": "n3"},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_places_are_given_back_when_the_tree_breaks_a_term(name: str) -> None:
    affinity, after = BROKEN[name]
    rig = Rig()
    network(rig)
    gang(rig, "x", 2, cpu=1000)
    for pod in ("x-0", "x-1"):
        await rig.cycle()
        rig.land(pod)
    gang(rig, "g", 4 if affinity.spread else 2, cpu=5000, affinity=affinity)
    await rig.cycle()
    assert rig.cache.groups[rig.key("g")].has_reservations
    rig.unsee("hypernodes", *racks(a="n0 n1", b="n2 n3"))
    rig.see("hypernodes", *racks(**after))
    await rig.cycle()
    assert not rig.cache.groups[rig.key("g")].has_reservations


async def test_places_that_keep_their_terms_stay_when_the_tree_changes() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "x", 2, cpu=1000)
    await rig.cycle()
    gang(rig, "g", affinity=APART)
    await rig.cycle()
    before = places(rig, "g")
    rig.see("hypernodes", *racks(z="n0"))
    await rig.cycle()
    assert places(rig, "g") == before
