"""Pods that go though no group waits: a queue beyond its capability, and pods that are shuffled."""

import pytest

from app.model.amounts import Amounts
from app.model.ids import NodeName, PodUid
from app.model.workload import EVICT_OVER_CAPABILITY
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance, settle

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
"""
TWO = make_shape(cpu=2000)


class Cut(Rig):
    """Six pods of two cores of one gang, all but one beyond its minimum; no group waits."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.parts.configuration.load(CONF)
        self.node("n1", cpu=12_000)
        self.group("g", minimum=1)
        there = {"node": NodeName("n1"), "phase": "Running", "shape": TWO, "started": 1.0}
        for number in range(6):
            self.pod(f"g-{number}", group="g", **there)

    def cut(self, capability: Amounts, *, says: str = "true") -> None:
        said = {EVICT_OVER_CAPABILITY: says}
        self.queue(make_queue("default", capability=capability, annotations=said))

    def evicted(self) -> list[str]:
        return [write.target.partition("/")[2] for write in self.api.of("evict")]


SHUFFLE = """
actions: "enqueue, allocate, backfill, shuffle"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
  - name: rescheduling
    arguments:
      strategies:
      - name: lowNodeUtilization
        params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 70}}
"""


@pytest.mark.parametrize("conf", [CONF, SHUFFLE])
async def test_pods_are_shuffled_although_no_group_waits(conf: str) -> None:
    rig = Cut()
    rig.parts.configuration.load(conf)
    rig.node("n2", cpu=12_000)
    with working(rig):
        await advance(5.0)
        assert bool(rig.evicted()) is (conf is SHUFFLE)


async def test_pods_go_although_no_group_waits() -> None:
    rig = Cut()
    with working(rig):
        rig.cut(make_amounts(cpu=8000))
        await rig.cycle()
        await advance(1.0)
        assert len(rig.evicted()) == 2
        assert all(name.startswith("pumice-over-capability-uid-g-") for name in rig.api.intents)
        rig.delete(*rig.evicted())
        await rig.cycle()
        await advance(5.0)
        assert len(rig.evicted()) == 2
        assert rig.api.intents == {}
    text = "because of over-capability: pumice.sh/evict-over-capability allows it"
    told = {(e.reason, e.message) for e in rig.api.events if e.about.startswith("Pod ")}
    assert told == {("Evict", f"Pod is evicted, {text}")}


async def test_no_pod_is_decided_on_twice_while_the_first_ones_go() -> None:
    rig = Cut()
    with working(rig):
        rig.cut(make_amounts(cpu=8000))
        for _ in range(3):
            await rig.cycle()
            rig.cache.signals.note_dirty()
            await advance(1.0)
        assert len(rig.evicted()) == len(set(rig.evicted())) == 2


async def test_no_pod_goes_while_the_annotation_does_not_ask_for_it() -> None:
    rig = Cut()
    with working(rig):
        rig.cut(make_amounts(cpu=4000), says="false")
        await rig.cycle()
        await advance(5.0)
        assert rig.evicted() == []
        rig.cut(make_amounts(cpu=4000))
        await rig.cycle()
        await settle()
        await advance(5.0)
        assert len(rig.evicted()) == 4


async def test_where_a_pod_does_not_go_another_one_is_taken() -> None:
    rig = Cut(Limits(victim_s=10.0))
    with working(rig):
        rig.cut(make_amounts(cpu=10_000))
        rig.api.fails["evict"] = [WriteError(Reaction.BUDGET, "429: budget")] * 3
        await rig.cycle()
        await advance(11.0)
        [begun] = rig.planning.evictions.decided
        first = PodUid(begun.intent.victims[0].uid)
        for _ in range(3):
            await rig.cycle()
            await advance(6.0)
        assert len(rig.evicted()) == 1
        assert rig.evicted() != [first.removeprefix("uid-")]
