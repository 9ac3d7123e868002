"""What a process before this one left on pods."""

from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance, run

TWO = make_shape(cpu=2000)


def test_a_pod_that_was_refused_before_a_restart_is_woken_when_it_gets_its_place() -> None:
    """Nothing that kube-scheduler watches changes: it would come again after five minutes."""

    async def scenario() -> None:
        rig = Rig()
        rig.queue(make_queue("default", capability=make_amounts(cpu=1000)))
        rig.node("n1", cpu=8000)
        rig.pod("asked", shape=TWO, complaint="0/1 nodes are available: 1 queue is full.")
        with working(rig):
            await advance(1)
            assert not rig.api.of("wake")
            rig.queue(make_queue("default", capability=make_amounts(cpu=4000)))
            await advance(1)
            assert rig.place("asked") == "n1"
            assert len(rig.api.of("wake")) == 1

    run(scenario())
