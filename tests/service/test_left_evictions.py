"""Eviction plans that another process left: the next one gives the places that are still open."""

from dataclasses import replace

import pytest

from app.model.ids import NodeName
from app.service.cycle.begun_eviction import Step
from app.service.effects.evictions import TIDY_S
from app.service.limits import Limits
from app.telemetry import metrics
from app.wire.intents import LONGEST, read_intents, texts_of
from tests.service.evicting import TWO, Contended
from tests.service.rig import working
from tests.service.virtual_time import advance

NAME = "pumice-eviction-uid-high"
VICTIMS = ("low-0", "low-2")
"""One on each node."""
PLACES = (("high-0", "n1"), ("high-1", "n2"))


def stored_plan(*places: tuple[str, str], rule: str = "priority") -> dict[str, str]:
    """What the process before stored of a plan with these places; ``rule`` is that of a victim."""
    rig = Contended()
    if any(name.startswith("slot") for name, _ in places):
        rig.delete("high-0", "high-1")
    plan = rig.plan(VICTIMS, places)
    first, *others = plan.victims
    rig.decide(replace(plan, victims=(replace(first, rule=rule), *others)))
    begun = rig.begun()
    assert begun is not None
    return texts_of(NAME, begun.intent)


class Successor(Contended):
    """A process that finds the plan stored, and its victims gone."""

    def __init__(self, *places: tuple[str, str]) -> None:
        super().__init__()
        self.stored = stored_plan(*places)
        self.delete(*VICTIMS)
        self.evictions.loaded = False

    def now_on(self, name: str, node: str) -> None:
        """A member of the preemptor is bound."""
        self.store(replace(self.api.pods[f"default/{name}"], gates=(), node=NodeName(node)))

    async def goes_on(self) -> None:
        """Take the plan up, and see how far it has come."""
        self.api.intents |= self.stored
        self.evictions.take_up(self.stored, now=self.clock())
        self.wasted = _wasted()
        with working(self):
            await advance(1.0)

    def is_placed(self) -> bool:
        """Whether the places that were left are reserved, and none of the room went in vain."""
        [begun] = self.evictions.plans.values()
        return begun.step is Step.PLACED and _wasted() == self.wasted


def _wasted() -> float:
    samples = next(iter(metrics.EVICTIONS_WASTED.collect())).samples
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))


@pytest.mark.parametrize("node", ["n1", "n2"], ids=["as intended", "exchanged"])
async def test_the_member_that_still_waits_gets_the_place_that_is_left(node: str) -> None:
    rig = Successor(*PLACES)
    rig.now_on("high-0", node)
    await rig.goes_on()
    assert rig.is_placed()
    assert rig.place("high-1") == ("n2" if node == "n1" else "n1")


async def test_members_that_were_told_a_node_before_keep_it() -> None:
    rig = Successor(*PLACES)
    for name, node in (("high-0", "n2"), ("high-1", "n1")):
        pod = rig.api.pods[f"default/{name}"]
        rig.store(replace(pod, gates=(), nominated=NodeName(node)))
    await rig.goes_on()
    assert rig.is_placed()
    assert (rig.place("high-0"), rig.place("high-1")) == ("n2", "n1")


async def test_a_member_in_free_room_leaves_the_other_its_place() -> None:
    rig = Successor(*PLACES)
    rig.node("n3", cpu=4000)
    rig.now_on("high-0", "n3")
    await rig.goes_on()
    assert rig.is_placed()
    assert rig.place("high-1") == "n2"


@pytest.mark.parametrize("node", ["n1", "n2"])
async def test_the_slot_that_a_bound_member_came_for_is_kept_no_more(node: str) -> None:
    rig = Successor(("slot-0", "n1"), ("slot-1", "n2"))
    rig.delete("high-0", "high-1")
    rig.pod("high-2", group="high", shape=TWO, node=NodeName(node), created=rig.clock())
    await rig.goes_on()
    assert rig.is_placed()
    [slot] = rig.cache.groups[rig.key("high")].slots.values()
    assert slot.node == ("n2" if node == "n1" else "n1")


async def test_a_plan_for_slots_of_which_nothing_is_known_is_not_told_to_have_places() -> None:
    rig = Successor(("slot-0", "n1"), ("slot-1", "n2"))
    intent = read_intents(rig.stored)[NAME].intent
    places = tuple(replace(place, role="gone") for place in intent.places)
    rig.evictions.take_up(texts_of(NAME, replace(intent, places=places)), now=rig.clock())
    [begun] = rig.evictions.plans.values()
    assert (begun.step, begun.why) == (Step.GIVEN_UP, "what its slots request is not known")


LONG = "x" * 2 * LONGEST
"""A rule for which a plan is stored in three parts."""


async def test_a_long_plan_goes_on_if_all_of_it_is_stored() -> None:
    rig = Contended()
    rig.api.intents |= stored_plan(*PLACES, rule=LONG)
    rig.evictions.take_up(dict(rig.api.intents), now=rig.clock())
    with working(rig):
        await advance(3.0)
        assert sorted(rig.evicted()) == list(VICTIMS)
        assert len(rig.api.intents) == 3


@pytest.mark.parametrize("there", [1, 2])
async def test_a_long_plan_of_which_a_process_stored_a_part_only_leaves_nothing(there: int) -> None:
    rig = Contended()
    rig.api.intents |= dict(list(stored_plan(*PLACES, rule=LONG).items())[:there])
    rig.evictions.take_up(dict(rig.api.intents), now=rig.clock())
    with working(rig):
        await advance(2 * TIDY_S)
        assert rig.evicted() == []
        assert rig.api.intents == {}


async def test_parts_that_were_left_do_not_outlive_a_new_plan_of_that_name() -> None:
    stored = stored_plan(*PLACES, rule=LONG)
    del stored[NAME]
    rig = Contended()
    rig.api.intents |= stored
    with working(rig):
        rig.decide(rig.plan(VICTIMS, PLACES))
        await advance(TIDY_S + 5.0)
        assert sorted(rig.evicted()) == list(VICTIMS)
        assert set(rig.api.intents) == {NAME}


async def test_room_that_other_pods_leave_is_kept_for_the_gang_it_was_found_for() -> None:
    """A plan without victims: nothing is stored or evicted, and no other group gets the room."""
    rig = Contended()
    rig.terminate("low-0", "low-1")
    with working(rig):
        rig.decide(rig.plan(victims=()))
        begun = rig.begun()
        assert begun is not None
        await advance(1.0)
        rig.gang("late", size=1, gated=True, shape=TWO)
        rig.delete("low-0")
        await advance(5.0)
        assert rig.place("late-0") == ""
        rig.delete("low-1")
        await advance(5.0)
        assert [rig.place(name) for name in ("high-0", "high-1")] == ["n1", "n1"]
    assert rig.evicted() == []
    assert rig.api.intents == {}
    assert not [event for event in rig.api.events if event.reason == "Evicts"]


async def test_a_gang_stops_waiting_for_room_that_is_not_left() -> None:
    rig = Contended(Limits(victim_s=30.0))
    rig.terminate("low-0", "low-1")
    with working(rig):
        rig.decide(rig.plan(victims=()))
        await advance(40.0)
    assert rig.begun() is None
    assert rig.evictions.pauses.of(rig.key("high"), now=rig.clock()) is None
