"""Places that a gang has in its domain of the network stay there, whoever comes to take them."""

from collections.abc import Sequence

import pytest

from app.model.ids import NodeName
from app.model.parts import SubGroupPolicy
from app.model.pod import Pod
from app.model.reason import Cause
from app.model.topology import HyperNode
from app.model.workload import GroupPhase
from app.service.calls.filtering import Chosen
from tests.builders import make_shape
from tests.service.calls.test_front_reservations import Front
from tests.service.cycle.test_planning_cycle import ALWAYS_YIELD, during_a_cycle
from tests.service.rig import Rig
from tests.service.virtual_time import advance
from tests.topology import hard, racks

LARGE = make_shape(cpu=5000)
"""One fits on a node of eight cores."""
RACKS = racks(a="n0 n1 n2", b="n3 n4 n5")
OF_RACK = {"a": {"n0", "n1", "n2"}, "b": {"n3", "n4", "n5"}}


def network(rig: Rig, tree: Sequence[HyperNode] = RACKS) -> None:
    rig.node(*(f"n{at}" for at in range(6)))
    rig.see("hypernodes", *tree)


def runs(rig: Rig, *nodes: str, name: str = "g", minimum: int | None = None) -> None:
    """A gang with a member on each of these nodes."""
    rig.group(name, minimum=minimum or len(nodes), topology=hard(1), phase=GroupPhase.RUNNING)
    for at, node in enumerate(nodes):
        member(rig, f"{name}-{at}", group=name, node=NodeName(node), phase="Running")


def member(rig: Rig, name: str, *, group: str = "g", **fields: object) -> Pod:
    return rig.pod(name, group=group, shape=LARGE, **fields)


def is_led_out(rig: Rig, name: str, rack: str) -> bool:
    """Whether Filter gives the pod a node when it is offered those outside of the rack only."""
    return isinstance(
        rig.filter(name, sorted({f"n{at}" for at in range(6)} - OF_RACK[rack])), Chosen
    )


async def test_a_member_that_comes_into_a_slot_is_not_led_out_of_the_domain() -> None:
    rig = Rig()
    network(rig)
    rig.group("g", minimum=3, topology=hard(1))
    for at in range(2):
        member(rig, f"g-{at}")
    await rig.cycle()
    [slot] = rig.cache.groups[rig.key("g")].slots.values()
    assert {rig.place("g-0"), rig.place("g-1"), slot.node} == OF_RACK["a"]
    member(rig, "g-2")
    assert rig.place("g-2") == slot.node
    assert not is_led_out(rig, "g-2", "a")


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "comes later"])
async def test_a_member_in_the_stead_of_a_lost_one_is_not_led_out_of_the_domain(
    *, waits: bool
) -> None:
    """Also where this process has found the lost one on its node."""

    rig = Rig()
    network(rig)
    runs(rig, "n3", "n4", "n5")
    await rig.cycle()
    if waits:
        member(rig, "g-3")
    rig.delete("g-2")
    if not waits:
        member(rig, "g-3")
    assert rig.place("g-3") == "n5"
    assert not is_led_out(rig, "g-3", "b")


async def test_a_pin_decides_on_the_domain_of_the_whole_gang() -> None:
    rig = Rig()
    network(rig)
    rig.group("g", minimum=3, topology=hard(1))
    member(rig, "g-0", pinned=NodeName("n4"))
    for at in (1, 2):
        member(rig, f"g-{at}")
    await rig.cycle()
    assert {rig.place(f"g-{at}") for at in range(3)} == OF_RACK["b"]
    assert rig.place("g-0") == "n4"


async def test_equal_members_of_two_gangs_exchange_places_in_one_domain_only() -> None:
    rig = Rig()
    network(rig)
    for name in "gh":
        rig.group(name, minimum=2, topology=hard(1))
        for at in range(2):
            member(rig, f"{name}-{at}", group=name)
    await rig.cycle()
    reservations = rig.cache.reservations
    g, h = ([rig.member(f"{name}-{at}") for at in range(2)] for name in "gh")
    assert {m.node for m in g} < OF_RACK["a"]
    assert {m.node for m in h} < OF_RACK["b"]
    assert not reservations.change_places(g[0].pod.uid, h[0].pod.uid, now=0.0)
    assert reservations.change_places(g[0].pod.uid, g[1].pod.uid, now=0.0)


async def test_the_front_exchanges_places_inside_one_domain_only() -> None:
    rig = Rig()
    front = Front(rig)
    network(rig)
    for name in "gh":
        rig.group(name, minimum=2, topology=hard(1))
        for at in range(2):
            member(rig, f"{name}-{at}", group=name)
    await rig.cycle()
    kinds = front.kinds("g-0", "g-1", "h-0", "h-1")
    assert kinds[0] == kinds[1] != kinds[2] == kinds[3]


PAIRS = SubGroupPolicy("pairs", keys=("pair",), size=2, least=1, topology=hard(1))


async def test_what_a_sub_group_has_lost_is_not_given_to_a_member_of_another() -> None:
    rig = Rig()
    network(rig)
    rig.group("g", minimum=2, sub_groups=(PAIRS,), phase=GroupPhase.RUNNING)
    for name, node in {"x-0": "n0", "x-1": "n1"}.items():
        member(rig, name, labels={"pair": "x"}, node=NodeName(node), phase="Running")
    for node in ("n2", "n3", "n4", "n5"):
        rig.pod(f"other-{node}", shape=LARGE, node=NodeName(node), phase="Running")
    for name in ("y-0", "y-1"):
        member(rig, name, labels={"pair": "y"})
    await rig.cycle()
    rig.delete("x-1")
    assert rig.place("y-0") == rig.place("y-1") == ""
    member(rig, "y-2", labels={"pair": "y"})
    assert rig.place("y-2") == ""
    member(rig, "x-2", labels={"pair": "x"})
    await rig.cycle()
    assert rig.place("x-2") == "n1"


@pytest.mark.parametrize("part", [False, True], ids=["gang", "sub-group"])
async def test_a_gang_that_is_planned_is_planned_anew_when_its_nodes_are_in_no_common_domain(
    *, part: bool
) -> None:
    rig = Rig()
    network(rig)
    if part:
        rig.group("g", minimum=2, sub_groups=(PAIRS,))
    else:
        rig.group("g", minimum=2, topology=hard(1))
    for at in range(2):
        member(rig, f"g-{at}", labels={"pair": "x"})
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n1"}
    rig.see("hypernodes", *racks(a="n0 n3 n4", b="n1 n2 n5"))
    await rig.cycle()
    nodes = {rig.place("g-0"), rig.place("g-1")}
    assert nodes < {"n0", "n3", "n4"} or nodes < {"n1", "n2", "n5"}


async def test_a_gang_that_is_planned_keeps_its_places_while_some_domain_has_them_all() -> None:
    rig = Rig()
    network(rig)
    rig.group("g", minimum=2, topology=hard(1))
    for at in range(2):
        member(rig, f"g-{at}")
    await rig.cycle()
    before = rig.member("g-0").since, rig.place("g-0"), rig.place("g-1")
    rig.see("hypernodes", *racks(a="n4", c="n0 n1 n5"))
    await advance(1)
    await rig.cycle()
    assert (rig.member("g-0").since, rig.place("g-0"), rig.place("g-1")) == before


async def test_members_that_run_stay_where_they_are_when_the_tree_changes() -> None:
    rig = Rig()
    network(rig)
    runs(rig, "n3", "n4", minimum=2)
    member(rig, "g-2")
    await rig.cycle()
    assert rig.place("g-2") == "n5"
    rig.see("hypernodes", *racks(b="n3", c="n4 n5"))
    await rig.cycle()
    assert rig.place("g-2") == ""
    assert rig.member("g-0").charged_node == "n3"
    assert rig.refusals[rig.key("g")].cause is Cause.NO_DOMAIN
    rig.see("hypernodes", *racks(b="n0 n3 n4"))
    await rig.cycle()
    assert rig.place("g-2") == "n0"


TORN = racks(a="n0 n3 n4", b="n1 n2 n5")
"""The racks with their nodes exchanged: no three of those that were in one are in one now."""


def gang_of_three(rig: Rig, name: str = "g") -> None:
    rig.group(name, minimum=3, topology=hard(1))
    for at in range(3):
        member(rig, f"{name}-{at}", group=name)


def places(rig: Rig, name: str = "g") -> set[str]:
    return {rig.place(f"{name}-{at}") for at in range(3)}


async def test_a_plan_of_a_tree_that_changed_meanwhile_gives_no_place_outside_of_the_domain() -> (
    None
):
    rig = Rig(ALWAYS_YIELD)
    network(rig)
    gang_of_three(rig)
    await during_a_cycle(rig, lambda: rig.see("hypernodes", *TORN))
    assert places(rig) == {""}
    await rig.cycle()
    assert places(rig) in ({"n0", "n3", "n4"}, {"n1", "n2", "n5"})


async def test_members_beyond_the_minimum_get_no_place_outside_of_a_changed_domain() -> None:
    rig = Rig(ALWAYS_YIELD)
    network(rig)
    runs(rig, "n3", "n4", minimum=2)
    member(rig, "g-2")
    await during_a_cycle(rig, lambda: rig.see("hypernodes", *TORN))
    assert rig.place("g-2") == ""
    await rig.cycle()
    assert rig.place("g-2") == "n0"


async def test_no_member_is_bound_to_a_place_that_left_its_domain_after_the_plan() -> None:
    """No cycle comes between the change and the calls of kube-scheduler."""

    rig = Rig()
    network(rig)
    gang_of_three(rig)
    await rig.cycle()
    assert places(rig) == OF_RACK["a"]
    calls = [rig.bind(f"g-{at}") for at in range(2)]
    await advance(0.01)
    rig.see("hypernodes", *TORN)
    assert places(rig) == {""}
    await advance(0.01)
    assert [bool(call.answer) for call in calls] == [True, True]
    assert rig.api.bound() == {}
    rig.filter("g-2")
    await rig.cycle()
    assert places(rig) in ({"n0", "n3", "n4"}, {"n1", "n2", "n5"})


async def test_places_of_a_domain_that_changed_are_exchanged_with_no_other() -> None:
    """Two gangs lie in one domain, of which each has a half of its own by now."""

    rig = Rig()
    front = Front(rig)
    network(rig, racks(a="n0 n1 n2 n3"))
    for name in "gh":
        rig.group(name, minimum=2, topology=hard(1))
        for at in range(2):
            member(rig, f"{name}-{at}", group=name)
    await rig.cycle()
    names = ("g-0", "g-1", "h-0", "h-1")
    assert len(set(front.kinds(*names))) == 1
    halves = [" ".join(rig.place(f"{name}-{at}") for at in range(2)) for name in "gh"]
    rig.see("hypernodes", *racks(a=halves[0], b=halves[1]))
    g, h = (rig.member(f"{name}-0") for name in "gh")
    assert not rig.cache.reservations.change_places(g.pod.uid, h.pod.uid, now=0.0)
    await rig.cycle()
    assert front.kinds(*names) == [0] * 4
    assert [" ".join(rig.place(f"{n}-{at}") for at in range(2)) for n in "gh"] == halves


async def test_a_hyper_node_that_keeps_its_name_and_has_other_nodes_is_another_class() -> None:
    rig = Rig()
    network(rig, racks(a="n0 n1"))
    rig.group("g", minimum=2, topology=hard(1))
    for at in range(2):
        member(rig, f"g-{at}")
    await rig.cycle()
    before = rig.member("g-0").exchange
    rig.see("hypernodes", *racks(a="n4 n5", c="n0 n1"))
    rig.group("h", minimum=2, topology=hard(1))
    for at in range(2):
        member(rig, f"h-{at}", group="h")
    await rig.cycle()
    assert {rig.place(f"h-{at}") for at in range(2)} == {"n4", "n5"}
    assert rig.member("h-0").exchange != before == rig.member("g-0").exchange
    g, h = (rig.member(f"{name}-0") for name in "gh")
    assert not rig.cache.reservations.change_places(g.pod.uid, h.pod.uid, now=0.0)


async def test_a_node_that_comes_to_another_rack_leaves_the_classes_of_the_others_alone() -> None:
    rig = Rig()
    network(rig, racks(a="n0 n1", b="n9"))
    rig.group("g", minimum=2, topology=hard(1))
    for at in range(2):
        member(rig, f"g-{at}")
    await rig.cycle()
    rig.node("n9")
    g = [rig.member(f"g-{at}").pod.uid for at in range(2)]
    assert rig.cache.reservations.change_places(*g, now=0.0)
