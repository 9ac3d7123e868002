"""Room that is freed by evictions, in a queue that pods are still terminating in."""

import pytest

from app.model.ids import NodeName, QueueName
from app.service.cycle.begun_eviction import Step
from app.service.limits import Limits
from tests.builders import make_amounts, make_queue
from tests.service.evicting import TWO, Contended
from tests.service.rig import working
from tests.service.virtual_time import advance, settle

FLAT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
"""
TREE = FLAT + "    enableHierarchy: true\n"
CORES = 1000


class Full(Contended):
    """Queue ``mine`` may hold four cores; two of them are of ``old``, which terminates on n3.

    ``high`` is of that queue and waits for the room of ``low``, which is of another one.
    """

    def __init__(self, conf: str = FLAT, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.parts.configuration.load(conf)
        self.node("n3", cpu=4 * CORES)
        self.queue(make_queue("top", parent=QueueName("root")))
        for name, parent in (("mine", "top"), ("theirs", "top")):
            self.queue(make_queue(name, parent=QueueName(parent)))
        self.limit("top", 12)
        self.limit("mine", 4)
        self.group("low", minimum=1, queue=QueueName("theirs"))
        self.group("high", minimum=2, queue=QueueName("mine"))
        self.group("old", minimum=1, queue=QueueName("mine"))
        self.pod("old-0", group="old", node=NodeName("n3"), phase="Running", shape=TWO)
        self.terminate("old-0")

    def limit(self, name: str, cores: int) -> None:
        parent = QueueName("root" if name == "top" else "top")
        capability = make_amounts(cpu=cores * CORES)
        self.queue(make_queue(name, parent=parent, capability=capability))

    async def victims_go(self) -> None:
        self.decide(self.plan())
        await settle()
        self.delete("low-0", "low-1")
        await advance(3.0)

    @property
    def has_places(self) -> bool:
        return self.place("high-0") == self.place("high-1") == "n1"


@pytest.mark.parametrize("conf", [FLAT, TREE], ids=["flat", "tree"])
async def test_places_wait_until_the_limit_of_their_queue_bears_them(conf: str) -> None:
    rig = Full(conf)
    with working(rig):
        await rig.victims_go()
        assert rig.has_reservations() == 0
        begun = rig.begun()
        assert begun is not None
        assert begun.step is Step.EVICTING
        rig.delete("old-0")
        await settle()
        assert rig.has_places


async def test_places_wait_until_the_limit_of_an_ancestor_bears_them() -> None:
    rig = Full(TREE)
    rig.limit("mine", 100)
    rig.limit("top", 9)  # low keeps four cores, and old has two until it is gone
    with working(rig):
        await rig.victims_go()
        assert rig.has_reservations() == 0
        rig.delete("old-0")
        await settle()
        assert rig.has_places


async def test_places_do_not_wait_for_pods_that_terminate_in_queues_with_enough_left() -> None:
    rig = Full()
    rig.limit("mine", 6)
    with working(rig):
        await rig.victims_go()
        assert rig.has_places


async def test_places_do_not_wait_for_pods_whose_end_leaves_the_queue_above_its_limit() -> None:
    rig = Full()
    with working(rig):
        rig.decide(rig.plan())
        await settle()
        rig.limit("mine", 1)
        rig.delete("low-0", "low-1")
        await advance(3.0)
        assert rig.begun() is None


async def test_a_plan_is_given_up_whose_queue_is_not_freed_by_pods_that_do_not_go() -> None:
    rig = Full(limits=Limits(victim_s=20.0))
    with working(rig):
        await rig.victims_go()
        await advance(15.0)
        assert rig.begun() is not None
        await advance(10.0)
        assert rig.begun() is None
        assert rig.has_reservations() == 0
        pause = rig.evictions.pauses.of(rig.key("high"), now=rig.clock())
        assert pause is not None
        assert "queue mine" in pause.why
