"""A gang that lost members on a node gets room for these before any new job, until released."""

import pytest

from app.model.ids import QueueName
from app.model.workload import STRANDED_RELEASED, PriorityClass
from tests.builders import make_node, make_queue, make_shape
from tests.service.rig import Rig

WHOLE = make_shape(cpu=4000)


class Stranded(Rig):
    """``g`` needs three nodes whole and has lost one; ``new`` waits with a higher priority.

    ``new`` is older than the room, and is in a queue that holds nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.node("n1", "n2", "n3", cpu=4000)
        self.queue(make_queue("other"))
        self.see("priorityclasses", PriorityClass("urgent", 1000))
        self.group("g", minimum=3)
        for name, node in (("g-0", "n1"), ("g-1", "n2"), ("g-2", "n3")):
            self.running(name, node)
        self.group("new", minimum=1, queue=QueueName("other"), priority_class="urgent")
        self.pod("new-0", group="new", shape=WHOLE, priority=1000)

    def running(self, name: str, node: str) -> None:
        self.pod(name, group="g", node=node, phase="Running", shape=WHOLE)

    def lose_node(self) -> None:
        """The node of ``g-2`` goes for good, and its pod with it; then another one comes."""
        self.unsee("nodes", make_node("n3", cpu=4000))
        self.delete("g-2")
        self.node("n4", cpu=4000)

    def kept(self) -> list[str]:
        """Nodes on which room is kept for members of ``g`` to come."""
        return [slot.node for slot in self.cache.groups[self.key("g")].slots.values()]

    def release(self, **more: str) -> None:
        self.group("g", minimum=3, annotations={STRANDED_RELEASED: "now"} | more)


@pytest.mark.parametrize("made", ["before the room", "after the room"])
async def test_the_missing_member_has_its_room_before_any_new_job(made: str) -> None:
    rig = Stranded()
    await rig.cycle()
    rig.lose_node()
    if made == "before the room":
        rig.pod("g-3", group="g", shape=WHOLE)
    await rig.cycle()
    assert rig.place("new-0") == ""
    if made == "after the room":
        assert rig.kept() == ["n4"]
        rig.pod("g-3", group="g", shape=WHOLE)
        await rig.cycle()
    assert (rig.place("g-3"), rig.place("new-0")) == ("n4", "")


async def test_the_room_is_kept_where_the_member_was_if_the_node_stays() -> None:
    rig = Stranded()
    rig.node("n4", cpu=4000)
    rig.pod("foreign", node="n4", scheduler="default-scheduler", phase="Running", shape=WHOLE)
    await rig.cycle()
    rig.delete("g-2")
    await rig.cycle()
    assert (rig.kept(), rig.place("new-0")) == (["n3"], "")


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "waiting"])
async def test_a_released_gang_goes_before_no_other_job(exists: bool) -> None:
    rig = Stranded()
    await rig.cycle()
    rig.release()
    rig.lose_node()
    if exists:
        rig.pod("g-3", group="g", shape=WHOLE)
    await rig.cycle()
    assert rig.kept() == []
    assert rig.place("new-0") == "n4"


async def test_room_that_is_kept_is_given_up_with_the_release() -> None:
    rig = Stranded()
    await rig.cycle()
    rig.lose_node()
    await rig.cycle()
    assert rig.kept() == ["n4"]
    rig.release()
    assert rig.kept() == []
    await rig.cycle()
    assert (rig.kept(), rig.place("new-0")) == ([], "n4")


async def test_a_released_gang_still_takes_room_that_no_other_job_wants() -> None:
    rig = Stranded()
    await rig.cycle()
    rig.release()
    rig.lose_node()
    rig.node("n5", cpu=4000)
    rig.pod("g-3", group="g", shape=WHOLE)
    await rig.cycle()
    assert {rig.place("new-0"), rig.place("g-3")} == {"n4", "n5"}
