"""Whatever is said meanwhile, all is planned at least once a second: time alone changes much."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.planner import plan_around_faults
from app.model.ids import NodeName
from app.service.cycle import planning_cycle
from app.service.cycle.vetoes import FIRST_S
from app.service.limits import Limits
from tests.builders import make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance, clock

N1 = NodeName("n1")


class Chatty(Rig):
    """A pod runs, and somebody goes on labelling it: news that no plan depends on."""

    def __init__(self, *, every_s: float, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.node("n1")
        self.pod("busy", node=N1, phase="Running", shape=make_shape(cpu=100))
        self._every_s = every_s

    async def chatter(self, *, until: float) -> None:
        while clock() < until:
            busy = self.api.pods["default/busy"]
            self.store(replace(busy, labels={"at": str(clock())}))
            await advance(self._every_s)


@pytest.mark.parametrize("every_s", [0.01, 0.2, 0.9])
async def test_a_veto_that_ends_is_noticed_within_a_second(every_s: float) -> None:
    rig = Chatty(every_s=every_s, limits=Limits(veto_s=FIRST_S))
    pod = rig.pod("p")
    rig.planning.vetoes.add(pod.shape, N1, now=clock())
    ends = clock() + FIRST_S
    with working(rig):
        await rig.chatter(until=ends - 0.1)
        assert not rig.place("p")
        while not rig.place("p") and clock() < ends + 60:
            await rig.chatter(until=clock() + 0.1)
        assert clock() < ends + 1 + rig.limits.cycle_gap_s + every_s


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When cycles planned something."""
    at: list[float] = []
    whole = plan_around_faults

    def noted(*given: Any, **named: Any) -> Any:
        at.append(clock())
        return whole(*given, **named)

    monkeypatch.setattr(planning_cycle, "plan_around_faults", noted)
    return at


async def test_chatter_sets_off_as_many_plans_as_silence(plans: list[float]) -> None:
    rig = Chatty(every_s=0.05)
    rig.node("n1", cpu=1500)
    rig.pod("taken", scheduler="default", node=N1)
    rig.pod("waits")
    with working(rig):
        await advance(1)
        plans.clear()
        await rig.chatter(until=clock() + 10)
    assert 9 <= len(plans) <= 11


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
async def test_room_is_planned_with_at_once_for_who_waits_for_some(scheduler: str) -> None:
    rig = Rig()
    rig.node("n1", cpu=1000)
    rig.pod("first", node=N1, phase="Running", scheduler=scheduler)
    rig.group("lacking", minimum=1)
    rig.pod("waits")
    with working(rig):
        await advance(1)
        assert not rig.place("waits")
        rig.delete("first")
        await advance(0.1)
        assert rig.place("waits") == "n1"


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
async def test_room_sets_off_no_plan_while_all_who_wait_lack_members(
    plans: list[float], scheduler: str
) -> None:
    rig = Rig()
    rig.node("n1", cpu=64_000)
    names = [
        rig.pod(f"p{i}", node=N1, phase="Running", scheduler=scheduler).name for i in range(20)
    ]
    rig.group("lacking", minimum=1)
    with working(rig):
        await advance(1)
        plans.clear()
        for name in names:
            rig.delete(name)
            await advance(0.1)
        assert len(plans) <= 3
        rig.pod("comes", group="lacking")
        await advance(0.1)
        assert rig.place("comes") == "n1"


async def test_members_that_fill_the_room_kept_for_them_set_off_no_plan(plans: list[float]) -> None:
    rig = Rig()
    rig.node("n1", cpu=64_000)
    rig.group("lacking", minimum=1)
    rig.group("g", minimum=20)
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(0.1)
        plans.clear()
        for i in range(1, 20):
            rig.pod(f"g-{i}", group="g")
            await advance(0.04)
        assert len(plans) <= 1
        assert rig.has_reservations() == 20


async def test_a_group_that_went_is_refused_no_more() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("big", shape=make_shape(cpu=1_000_000))
    with working(rig):
        await advance(0.1)
        assert rig.refusals
        rig.delete("big")
        await advance(0.1)
        assert not rig.refusals
