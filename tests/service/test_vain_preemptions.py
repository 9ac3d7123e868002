"""No eviction for a pod that Filter refuses afterwards."""

from app.model.pod import Pod
from app.service.filtering import Everything, Some
from app.service.preemption import Strike
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import run

STOCK = "default-scheduler"


def foreign(rig: Rig, name: str, *, cpu: int, node: str = "") -> Pod:
    """A pod of the stock scheduler's; running when it has a node."""
    phase = "Running" if node else "Pending"
    shape = make_shape(cpu=cpu)
    return rig.pod(name, scheduler=STOCK, node=node, phase=phase, shape=shape)


# Room on the node


def test_room_that_is_promised_to_a_gang_is_not_free_for_others() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", cpu=4000)
        foreign(rig, "victim", cpu=2000, node="n1")
        rig.gang("g", size=2)
        await rig.cycle()
        assert rig.place("g-0") == "n1"
        foreign(rig, "big", cpu=3000)
        assert rig.preempt("big", n1=["victim"]) is Strike.NO_ROOM
        rig.delete("victim")
        assert rig.filter("big") == Some((), "room is promised to a gang")

    run(scenario())


def test_what_the_victims_give_back_is_enough() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", cpu=4000)
        foreign(rig, "victim", cpu=2000, node="n1")
        rig.gang("g", size=2)
        await rig.cycle()
        foreign(rig, "small", cpu=2000)
        assert rig.preempt("small", n1=["victim"]) is None
        rig.delete("victim")
        assert rig.filter("small") == Everything()

    run(scenario())


def test_what_the_pod_itself_was_promised_is_its_own() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", cpu=4000)
        foreign(rig, "victim", cpu=2000, node="n1")
        rig.pod("mine", shape=make_shape(cpu=2000))
        await rig.cycle()
        assert rig.place("mine") == "n1"
        assert rig.preempt("mine", n1=["victim"]) is None, "kube-scheduler has found no room there"

    run(scenario())


def test_a_node_may_lack_what_is_not_asked_for() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", cpu=4000, memory=1)
        foreign(rig, "victim", cpu=2000, node="n1")
        rig.pod("asking", scheduler=STOCK, shape=make_shape(cpu=2000, memory=0))
        assert rig.preempt("asking", n1=["victim"]) is None

    run(scenario())


def test_nothing_can_be_said_for_a_node_that_nobody_knows() -> None:
    async def scenario() -> None:
        rig = Rig()
        foreign(rig, "victim", cpu=2000, node="n1")
        foreign(rig, "asking", cpu=1000)
        assert rig.preempt("asking", n1=["victim"]) is Strike.NO_ROOM

    run(scenario())
