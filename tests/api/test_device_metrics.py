"""Volcano's metrics of vGPUs, scraped from the extender."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.model.device_families import DeviceSetting, GpuShare
from app.model.ids import NodeName
from app.service.activity import Activity
from tests.api.stand import Stand, stand
from tests.api.test_access import asked_by
from tests.devices import GPU_MIB, gpu_node, vgpu_shape
from tests.service.rig import Rig
from tests.service.virtual_time import clock


def sharing() -> Rig:
    """Two pods share a GPU of ``n1``, the other one is empty."""
    rig = Rig()
    rig.cache.set_device_setting(DeviceSetting(vgpu=True))
    rig.see("nodes", gpu_node("n1", "GPU-a", "GPU-b"))
    rig.group("g", minimum=2)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", shape=vgpu_shape(8, cores=20, ids="GPU-a"))
    return rig


async def scraped(at: Stand) -> dict[tuple[str, ...], float]:
    """Value by name and labels' values, of all about vGPUs."""
    text = (await at.get("/metrics")).text
    return {
        (sample.name.removeprefix("volcano_vgpu_device_"), *_values(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("volcano_vgpu")
    }


def _values(labels: Mapping[str, str]) -> list[str]:
    return [labels[name] for name in ("devID", "NodeName", "podName") if name in labels]


async def test_each_gpu_shows_what_is_taken_of_it_and_by_which_pods() -> None:
    rig = sharing()
    async with stand(rig) as at:
        await rig.cycle()
        seen = await scraped(at)
    of_a = {(name, "GPU-a", "n1"): value for name, value in _PER_DEVICE.items()}
    of_b = {(name, "GPU-b", "n1"): 0.0 for name in _PER_DEVICE} | {
        ("memory_limit", "GPU-b", "n1"): GPU_MIB
    }
    of_pods = {
        (f"{what}_allocation_for_a_certain_pod", "GPU-a", "n1", pod): value
        for what, value in (("memory", 8192.0), ("core", 20.0))
        for pod in ("g-0", "g-1")
    }
    assert seen == of_a | of_b | of_pods


_PER_DEVICE = {
    "shared_number": 2.0,
    "allocated_memory": 16384.0,
    "allocated_cores": 40.0,
    "memory_limit": GPU_MIB,
}


async def test_pods_are_named_to_operators_only() -> None:
    rig = sharing()
    for token, names in (("", 0), ("toms", 0), ("olgas", 4)):
        async with asked_by(token, rig) as at:
            await rig.cycle()
            seen = await scraped(at)
            assert sum("certain_pod" in name[0] for name in seen) == names, token
            assert seen["shared_number", "GPU-a", "n1"] == 2.0, token


async def test_what_is_gone_leaves_nothing_behind() -> None:
    rig = sharing()
    async with stand(rig) as at:
        await rig.cycle()
        rig.cache.drop_node(NodeName("n1"))
        assert await scraped(at) == {}


@pytest.mark.parametrize("setting", [DeviceSetting(), DeviceSetting(gpu_share=GpuShare.NUMBER)])
async def test_without_vgpus_there_are_none(setting: DeviceSetting) -> None:
    rig = sharing()
    rig.cache.set_device_setting(setting)
    async with stand(rig) as at:
        assert await scraped(at) == {}


async def test_a_replica_that_does_not_lead_tells_of_none() -> None:
    standing_by = Activity(clock=clock, elected=True, namespace="n", name="lease", identity="other")
    rig = Rig(activity=standing_by)
    async with stand(rig) as at:
        assert await scraped(at) == {}
