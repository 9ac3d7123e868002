"""How busy the cluster is, for an operator's dashboard and alarm."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.model.ids import NodeName, QueueName
from app.model.workload import GroupPhase
from tests.api.stand import Stand, stand
from tests.builders import make_queue, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import clock

A = QueueName("a")
N1 = NodeName("n1")
IDLE = "pumice_cluster_idle_while_waiting"


async def scraped(at: Stand) -> dict[tuple[str, str], float]:
    """Shares of cpu by metric and cause."""
    text = (await at.get("/metrics")).text
    return {
        (sample.name, sample.labels.get("cause", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("pumice_cluster_") and sample.labels["resource"] == "cpu"
    }


def half_busy(*, waits_long: bool) -> Rig:
    """A node of 8 cores; queue ``a`` holds 6, a gang of ``b`` asks for 4 and waits."""
    rig = Rig()
    rig.node("n1", cpu=8000)
    for name in "ab":
        rig.queue(make_queue(name))
    rig.group("runs", minimum=1, queue=A, phase=GroupPhase.RUNNING)
    rig.pod("runs-0", group="runs", node=N1, phase="Running", shape=make_shape(cpu=6000))
    came = 1.0 if waits_long else clock()
    rig.group("waits", minimum=1, queue=QueueName("b"), created=came)
    rig.pod("waits-0", group="waits", shape=make_shape(cpu=4000), created=came)
    return rig


async def test_what_is_in_use_borrowed_and_idle_while_a_gang_waits() -> None:
    rig = half_busy(waits_long=False)
    async with stand(rig) as at:
        await rig.cycle()
        seen = await scraped(at)
    assert seen["pumice_cluster_in_use", ""] == pytest.approx(6 / 8)
    assert seen["pumice_cluster_borrowed", ""] == pytest.approx(2 / 8)
    assert seen["pumice_cluster_collected", ""] == 0
    assert seen[IDLE, "NotEnoughResources"] == pytest.approx(2 / 8)


async def test_what_is_collected_is_not_idle() -> None:
    rig = half_busy(waits_long=True)
    async with stand(rig) as at:
        await rig.cycle()
        seen = await scraped(at)
    assert seen["pumice_cluster_collected", ""] == pytest.approx(2 / 8)
    assert all(value == 0 for key, value in seen.items() if "idle_while" in key[0] and "cpu" in key)


async def test_when_no_gang_waits_nothing_is_idle_in_vain() -> None:
    rig = Rig()
    rig.node("n1", cpu=8000)
    async with stand(rig) as at:
        await rig.cycle()
        seen = await scraped(at)
    assert seen[IDLE, ""] == 0
