"""Volcano's metrics, scraped from the extender."""

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.model.ids import QueueName
from app.model.shape import PodShape
from app.model.workload import GroupPhase
from app.service.activity import Activity
from tests.api.stand import Stand, stand
from tests.builders import GIB, make_amounts, make_queue
from tests.service.rig import Rig
from tests.service.virtual_time import clock

GPU = "nvidia.com/gpu"


def busy() -> Rig:
    """A queue with a gang that runs and one that waits, on one node."""
    rig = Rig()
    rig.node("n1", cpu=8_000, memory=32 * GIB, extra={GPU: 4})
    rig.queue(make_queue("a", weight=3, capability=make_amounts(cpu=6_000, **{GPU: 3})))
    shape = PodShape(make_amounts(cpu=1_000, memory=GIB, pods=1, **{GPU: 1}))
    for name, size in (("runs", 2), ("waits", 3)):
        asked = make_amounts(cpu=size * 1_000)
        rig.group(name, minimum=size, queue=QueueName("a"), min_resources=asked)
        for i in range(size):
            rig.pod(f"{name}-{i}", group=name, shape=shape)
    return rig


async def scraped(at: Stand) -> dict[tuple[str, ...], float]:
    """Value by name and labels' values, of everything that is Volcano's."""
    text = (await at.get("/metrics")).text
    return {
        (sample.name, *_values(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("volcano_")
    }


def _values(labels: Mapping[str, str]) -> list[str]:
    return [labels[name] for name in ("queue_name", "resource", "le") if name in labels]


async def test_a_queue_shows_what_it_holds_asks_for_and_may_have() -> None:
    rig = busy()
    async with stand(rig) as at:
        await rig.cycle()
        seen = await scraped(at)
    held = {
        what: tuple(
            seen.get((f"volcano_queue_{what}_{unit}", "a", *more))
            for unit, *more in (("milli_cpu",), ("memory_bytes",), ("scalar_resources", GPU))
        )
        for what in ("allocated", "request", "capacity", "real_capacity")
    }
    assert held == {
        "allocated": (2_000, 2 * GIB, 2_000),
        "request": (5_000, 5 * GIB, 5_000),
        "capacity": (6_000, None, 3_000),  # no limit is not a limit of 0
        "real_capacity": (6_000, 32 * GIB, 3_000),
    }
    assert seen["volcano_queue_weight", "a"] == 3
    assert seen["volcano_queue_share", "a"] == pytest.approx(2 / 3)
    assert seen["volcano_queue_overused", "default"] == 0
    assert ("volcano_queue_capacity_milli_cpu", "default") not in seen
    assert seen["volcano_queue_deserved_milli_cpu", "a"] == 5_000
    assert seen["volcano_queue_inqueue_milli_cpu", "a"] == 3_000
    assert seen["volcano_unschedule_job_count",] == 1


async def test_groups_are_counted_by_phase() -> None:
    rig = Rig()
    for name, phase in (("new", GroupPhase.NEW), ("p", GroupPhase.PENDING)):
        rig.group(name, minimum=1, phase=phase)
    rig.group("r", minimum=1, phase=GroupPhase.RUNNING)
    rig.pod("alone")
    async with stand(rig) as at:
        seen = await scraped(at)
    counts = {
        phase: seen[f"volcano_queue_pod_group_{phase}_count", "default"]
        for phase in ("pending", "inqueue", "running", "unknown", "completed")
    }
    assert counts == {"pending": 2, "inqueue": 0, "running": 1, "unknown": 0, "completed": 0}
    assert seen["volcano_queue_pod_group_pending_count", "root"] == 0


async def test_a_queue_that_is_gone_leaves_nothing_behind() -> None:
    rig = busy()
    async with stand(rig) as at:
        assert ("volcano_queue_weight", "a") in await scraped(at)
        rig.unsee("queues", make_queue("a"))
        assert not [key for key in await scraped(at) if "a" in key[1:]]


async def test_cycles_are_timed_in_milliseconds() -> None:
    rig = busy()
    async with stand(rig) as at:
        before = await scraped(at)
        await rig.cycle()
        after = await scraped(at)
        seconds = (await at.get("/metrics")).text
    name = "volcano_e2e_scheduling_latency_milliseconds"
    assert after[f"{name}_count",] == before[f"{name}_count",] + 1
    assert after[f"{name}_bucket", "10000"] <= after[f"{name}_bucket", "+Inf"]
    (total,) = (
        float(line.split()[1])
        for line in seconds.splitlines()
        if line.startswith("pumice_cycle_seconds_sum ")
    )
    assert after[f"{name}_sum",] == 1000 * total


async def test_a_replica_that_does_not_lead_has_none() -> None:
    activity = Activity(clock=clock, elected=True, namespace="n", name="l", identity="me")
    async with stand(Rig(activity=activity)) as at:
        assert await scraped(at) == {}


async def test_a_scrape_changes_nothing() -> None:
    rig = busy()
    async with stand(rig) as at:
        for _ in range(3):
            await scraped(at)
        assert at.reserved() == len(rig.cache.members)
        await rig.cycle()
        assert rig.has_reservations() == 2
