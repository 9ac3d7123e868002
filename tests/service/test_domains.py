"""Gangs in a domain of the network, from the watch to the bindings."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from app.kit.workqueue import Again
from app.model.exchange import Exchange
from app.model.ids import NodeName
from app.model.reason import Cause
from app.model.topology import ALLOCATED, PREFERRED, REQUIRED, NetworkTopology
from app.model.workload import PodGroup, PriorityClass
from app.service.calls.filtering import Chosen
from app.service.cycle.changed_domains import APART
from tests.builders import make_shape
from tests.service.evicting import TWO, Contended
from tests.service.rig import Rig, working
from tests.service.statuses import writer_of
from tests.service.virtual_time import advance
from tests.topology import hard, racks

RACK = hard(1)


def network(rig: Rig) -> None:
    rig.node("n0", "n1", "n2", "n3")
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"))


def gang(
    rig: Rig, name: str, *, cpu: int, count: int = 2, topology: NetworkTopology = RACK
) -> PodGroup:
    group = rig.group(name, minimum=count, topology=topology)
    for at in range(count):
        rig.pod(f"{name}-{at}", group=name, shape=make_shape(cpu=cpu))
    return group


async def test_a_gang_that_no_rack_takes_waits_until_a_hyper_node_does() -> None:
    rig = Rig()
    rig.node("n0", "n1")
    rig.see("hypernodes", *racks(a="n0", b="n1"))
    gang(rig, "g", cpu=6000)
    await rig.cycle()
    assert rig.refusals[rig.key("g")].cause is Cause.NO_DOMAIN
    rig.see("hypernodes", *racks(a="n0 n1"))
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n1"}


async def test_a_place_is_not_exchanged_for_one_outside_of_the_domain() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "g", cpu=6000)
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n1"}
    assert not isinstance(rig.filter("g-0", ["n2", "n3"]), Chosen)
    assert rig.refusals[rig.key("g")].cause is Cause.NO_DOMAIN


async def test_a_veto_on_one_member_sends_the_whole_gang_to_another_domain() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "g", cpu=6000)
    await rig.cycle()
    rack = {rig.place("g-0"), rig.place("g-1")}
    rig.filter("g-0", sorted({"n0", "n1", "n2", "n3"} - {rig.place("g-0")}))
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n1", "n2", "n3"} - rack


async def test_what_a_gang_holds_in_a_domain_without_room_for_its_rest_is_given_back_at_once() -> (
    None
):
    rig = Rig()
    network(rig)
    gang(rig, "g", cpu=6000)
    rig.pod("other", shape=make_shape(cpu=3000), node="n2", phase="Running")
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n1"}
    rig.filter("g-0", sorted({"n0", "n1", "n2", "n3"} - {rig.place("g-0")}))
    await rig.cycle()
    assert rig.place("g-1") == ""
    assert not rig.cache.groups[rig.key("g")].has_reservations


async def test_a_gang_that_has_its_minimum_keeps_it_when_its_domain_lacks_room_for_one_more() -> (
    None
):
    rig = Rig()
    network(rig)
    rig.pod("other", shape=make_shape(cpu=3000), node="n1", phase="Running")
    rig.group("g", minimum=2, topology=hard(1))
    for at in range(3):
        rig.pod(f"g-{at}", group="g", shape=make_shape(cpu=4000))
    await rig.cycle()
    places = {name: rig.place(name) for name in ("g-0", "g-1", "g-2")}
    assert sorted(places.values()) == ["n0", "n0", "n1"]
    last = next(name for name, node in places.items() if node == "n0")
    rig.filter(last, ["n1", "n2", "n3"])
    await rig.cycle()
    assert {name: rig.place(name) for name in places} == places | {last: ""}
    assert rig.refusals[rig.key("g")].cause is Cause.NO_DOMAIN


async def test_a_lost_member_comes_back_into_the_domain_of_the_others() -> None:
    rig = Rig()
    network(rig)
    gang(rig, "g", cpu=5000)
    await rig.cycle()
    first = rig.place("g-0")
    rack = {"n0", "n1"} if first in {"n0", "n1"} else {"n2", "n3"}
    for name in ("g-0", "g-1"):
        rig.land(name)
    rig.delete("g-1")
    rig.pod("g-2", group="g", shape=make_shape(cpu=6000))
    await rig.cycle()
    assert rig.place("g-2") in rack - {first}


async def test_the_domain_is_written_with_the_decision_and_goes_with_the_places() -> None:
    rig = Rig()
    network(rig)
    group = gang(rig, "g", cpu=6000)
    statuses = writer_of(rig)
    await rig.cycle()
    await statuses.write_group(group.key)
    assert annotations(rig) == {ALLOCATED: "a"}
    rig.see("podgroups", replace(group, annotations={ALLOCATED: "a"}, topology=hard(0)))
    await rig.cycle()
    statuses.forget()
    with suppress(Again):
        await statuses.write_group(group.key)
    assert annotations(rig) == {ALLOCATED: None}


def annotations(rig: Rig) -> Mapping[str, object]:
    """What the last write of the PodGroup's annotations says."""
    written = [write.body for write in rig.api.of("group-status")]
    found = [body["metadata"]["annotations"] for body in written if "metadata" in body]
    last: Mapping[str, object] = found[-1]
    return last


async def test_labels_of_nodes_are_domains_as_soon_as_the_configuration_names_them() -> None:
    rig = Rig()
    for name, rack in {"n0": "a", "n1": "b", "n2": "a"}.items():
        rig.node(name, labels={"rack": rack})
    gang(rig, "g", cpu=6000, topology=NetworkTopology(highest_tier_name="rack"))
    await rig.cycle()
    assert rig.refusals[rig.key("g")].cause is Cause.NO_DOMAIN
    rig.cache.set_network_labels(("rack",))
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n2"}


async def test_a_group_is_placed_in_one_rack_because_its_pods_say_so_as_for_kueue() -> None:
    rig = Rig()
    for name, rack in {"n0": "a", "n1": "b", "n2": "a"}.items():
        rig.node(name, labels={"rack": rack})
    rig.cache.set_network_labels(("rack",))
    for name, says in {"g": REQUIRED, "h": PREFERRED}.items():
        rig.group(name, minimum=2)
        for at in range(2):
            shape = make_shape(cpu=6000 if name == "g" else 1000)
            rig.pod(f"{name}-{at}", group=name, shape=shape, annotations={says: "rack"})
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n0", "n2"}
    assert {rig.place("h-0"), rig.place("h-1")} in ({"n0"}, {"n1"}, {"n2"}, {"n0", "n2"})
    rig.group("i", minimum=2)
    for at in range(2):
        rig.pod(f"i-{at}", group="i", annotations={REQUIRED: "row"})
    await rig.cycle()
    assert rig.refusals[rig.key("i")].cause is Cause.NO_DOMAIN


PREEMPTING = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: predicates
"""


def contended() -> Contended:
    """Two racks of one node, full of pods that go for a gang which needs a rack."""
    rig = Contended(taken=False)
    rig.parts.configuration.load(PREEMPTING)
    rig.see("hypernodes", *racks(a="n1", b="n2"))
    for number in range(4):
        name = f"low-{number}"
        node = NodeName(f"n{number % 2 + 1}")
        rig.group(name, minimum=1)
        rig.pod(name, group=name, node=node, phase="Running", shape=TWO)
    rig.see("priorityclasses", PriorityClass("urgent", 1000, False))
    rig.group("high", minimum=2, topology=hard(1), priority_class="urgent")
    return rig


async def test_pods_of_one_domain_go_for_a_gang_and_its_places_stay_there() -> None:
    rig = contended()
    with working(rig):
        await rig.cycle()
        await advance(1.0)
        gone = rig.evicted()
        assert sorted(gone) in (["low-0", "low-2"], ["low-1", "low-3"])
        for name in gone:
            rig.delete(name)
        await rig.cycle()
        await rig.cycle()
        place, rack = ("n1", "a") if "low-0" in gone else ("n2", "b")
        assert {rig.place("high-0"), rig.place("high-1")} == {place}
        classes = {rig.member(f"high-{at}").exchange_class for at in range(2)}
        assert classes == {Exchange(frozenset({f"domain {rack}"}))}


async def test_an_eviction_for_a_domain_that_is_no_more_is_given_up() -> None:
    rig = contended()
    await rig.cycle()
    begun = rig.evictions.of(rig.key("high"))
    node = begun.intent.places[0].node
    rig.unsee("hypernodes", *racks(**{"a" if node == "n1" else "b": node}))
    await rig.cycle()
    assert begun.why == APART
    again = rig.evictions.of(rig.key("high"))
    assert {place.node for place in again.intent.places} == {"n1", "n2"} - {node}
