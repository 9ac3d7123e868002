"""A gang with a member behind a gate of others is not whole, whatever room was kept for it."""

from itertools import permutations

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE
from app.model.reason import Cause
from tests.builders import make_amounts
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

THEIRS = "example.com/quota"


def awaited(rig: Rig) -> None:
    """A group of three with room for all of them, before any of its pods is there."""
    rig.node("n1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))


def comes(rig: Rig, name: str) -> None:
    rig.pod(name, group="g", gates=(THEIRS, GATE) if name == "held" else (GATE,))


@pytest.mark.parametrize("order", list(permutations(["held", "b", "c"])))
async def test_its_room_is_given_back_at_once_and_the_reason_is_the_gate(
    order: tuple[str, ...],
) -> None:
    rig = Rig()
    awaited(rig)
    await rig.cycle()
    assert len(rig.cache.groups[rig.key("g")].slots) == 3
    for name in order:
        comes(rig, name)
    assert rig.has_reservations() == 0
    await rig.cycle()
    assert rig.has_reservations() == 0
    reason = rig.parts.reasons.of(rig.cache.groups[rig.key("g")])
    assert reason is not None
    assert reason.cause is Cause.GATED


async def test_the_others_stay_behind_our_gate() -> None:
    rig = Rig()
    awaited(rig)
    with working(rig):
        await advance(1)
        for name in ("held", "b", "c"):
            comes(rig, name)
        await advance(60)
        assert rig.api.of("patch") == []
        rig.pod("held", group="g", gates=(GATE,))
        await advance(1)
    assert {write.target for write in rig.api.of("patch")} == {
        "default/held",
        "default/b",
        "default/c",
    }


async def test_a_member_beyond_the_minimum_holds_up_nobody() -> None:
    rig = Rig()
    awaited(rig)
    await rig.cycle()
    for name in ("held", "b", "c", "d"):
        comes(rig, name)
    await rig.cycle()
    assert [rig.place(name) for name in ("b", "c", "d")] == ["n1"] * 3


async def test_room_of_a_lost_member_is_kept_for_one_behind_a_gate() -> None:
    """The rest of its gang runs, and is of no use without it."""

    rig = Rig()
    rig.node("n1", cpu=3000)
    rig.group("g", minimum=3)
    for name in ("a", "b", "c"):
        rig.pod(name, group="g", node=NodeName("n1"), phase="Running")
    rig.pod("waiter")
    await rig.cycle()
    rig.delete("a")
    comes(rig, "held")
    await rig.cycle()
    assert rig.place("waiter") == ""
    rig.pod("held", group="g", gates=(GATE,))
    assert rig.place("held") == "n1"
