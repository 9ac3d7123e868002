"""What pods might ask of shared devices instead: amounts that the devices would do for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.device_changes import DeviceChange, device_changes
from app.model.device_families import (
    ASCEND_310P,
    GPU_SHARE,
    VGPU,
    DeviceSetting,
    Family,
    GpuShare,
    NodeDevices,
)
from app.model.devices import UNUSED, ContainerLimits, Device, DeviceAsk, DeviceKind, Use
from app.model.shape import PodShape
from tests.builders import make_amounts, make_gang, make_node, make_shape, make_snapshot
from tests.core.actions.rigs import members
from tests.devices import MEMORY, NUMBER, asking, vgpu_shape
from tests.scale import examples

GIB = 1024
VGPUS = DeviceSetting(vgpu=True)
PERCENT = VGPU.percent


def node_devices(
    *free: int, family: Family = VGPU, size: int = 32 * GIB, sharers: int = 10
) -> NodeDevices:
    """Devices with so much memory free."""
    kind = DeviceKind("NVIDIA-V100", size, sharers)
    used = tuple(Use(1, size - mib) if mib < size else UNUSED for mib in free)
    devices = tuple(Device(f"D-{at}", at, kind) for at in range(len(free)))
    return NodeDevices(family, devices, used, used, ((),) * len(free))


def changes(
    shape: PodShape,
    count: int,
    *nodes: NodeDevices,
    setting: DeviceSetting = VGPUS,
    closed: Sequence[int] = (),
) -> list[DeviceChange]:
    """For a gang of ``count`` pods of that shape."""
    table = tuple(make_node(f"n{at}", unschedulable=at in closed) for at in range(len(nodes)))
    devices = {node.name: (each,) for node, each in zip(table, nodes, strict=True)}
    gang = make_gang("g", waiting=members("g", count, shape=shape), min_member=count)
    snapshot = make_snapshot(nodes=table, gangs=(gang,), devices=devices)
    return list(device_changes(snapshot, gang, setting))


def texts(*arguments: object, **options: object) -> list[str]:
    return [change.text for change in changes(*arguments, **options)]  # type: ignore[arg-type]


def test_several_pods_share_what_one_device_has_free() -> None:
    told = texts(vgpu_shape(8), 3, node_devices(12 * GIB))
    assert told[0] == "ask for volcano.sh/vgpu-memory 4096 of each GPU, which are 4 GiB"


def test_memory_in_percent_is_lowered_in_percent() -> None:
    shape = make_shape(devices=asking({NUMBER: 1, PERCENT: 50}))
    told = texts(shape, 1, node_devices(8 * GIB))
    assert told[0] == "ask for volcano.sh/vgpu-memory-percentage 25 of each GPU"


def test_a_chip_is_asked_for_in_one_of_its_parts() -> None:
    family = ASCEND_310P
    chips = node_devices(7_000, family=family, size=21_527)
    shape = make_shape(devices=asking({family.count: 1, family.memory: 12_288}))
    told = texts(shape, 1, chips, setting=DeviceSetting(ascend=True))
    assert told[0] == (
        "ask for huawei.com/Ascend310P-memory 6144 of each Ascend310P, which are 6 GiB"
    )


def test_a_gpu_is_shared_by_memory_alone_where_it_is_given_so() -> None:
    gpus = node_devices(4 * GIB, family=GPU_SHARE)
    shape = make_shape(devices=asking({GPU_SHARE.memory: 8 * GIB}))
    told = texts(shape, 1, gpus, setting=DeviceSetting(gpu_share=GpuShare.MEMORY))
    assert told[0] == "ask for volcano.sh/gpu-memory 4096 of each GPU, which are 4 GiB"


def test_whole_gpus_are_asked_for_by_number_alone() -> None:
    gpus = node_devices(32 * GIB, 32 * GIB, family=GPU_SHARE)
    shape = make_shape(devices=asking({GPU_SHARE.count: 3}))
    told = texts(shape, 1, gpus, setting=DeviceSetting(gpu_share=GpuShare.NUMBER))
    assert told == [f"ask for volcano.sh/gpu-number {number} per container" for number in (2, 1)]


def test_devices_of_nodes_that_take_no_pods_are_not_counted() -> None:
    assert texts(vgpu_shape(8), 1, node_devices(4 * GIB), closed=[0]) == []


def test_a_gang_without_devices_has_nothing_to_change_of_them() -> None:
    assert texts(make_shape(cpu=1000), 1, node_devices(4 * GIB)) == []


def test_no_resource_is_proposed_that_neither_nodes_nor_pods_name() -> None:
    shape = make_shape(devices=asking({NUMBER: 1}))
    assert texts(shape, 1, node_devices(4 * GIB)) == []


def test_what_the_pod_requests_goes_down_with_the_limits_of_its_containers() -> None:
    """An init container ends before the others begin, so the larger of both sums counts."""
    limits = (
        ContainerLimits(((MEMORY, 8 * GIB), (NUMBER, 1)), init=True),
        ContainerLimits(((MEMORY, 6 * GIB), (NUMBER, 1))),
        ContainerLimits(((MEMORY, 6 * GIB), (NUMBER, 1))),
    )
    requests = make_amounts(cpu=1000, **{NUMBER: 2, MEMORY: 12 * GIB})
    shape = PodShape(requests, devices=DeviceAsk(limits))
    alike = make_shape(devices=shape.devices)
    made = changes(alike, 1, node_devices(7 * GIB, 7 * GIB))[0].changed(shape)
    assert made.devices is not None
    assert [dict(each.limits)[MEMORY] for each in made.devices.containers] == [7 * GIB] + [
        6 * GIB
    ] * 2
    assert dict(made.requests) == {"cpu": 1000, NUMBER: 2, MEMORY: 12 * GIB}


@given(
    free=st.lists(st.integers(0, 32), min_size=1, max_size=4),
    gib=st.integers(1, 32),
    count=st.integers(1, 3),
    cores=st.sampled_from((0, 30, 100)),
    pods=st.integers(1, 6),
)
@examples(300)
def test_less_is_asked_for_and_nothing_else_of_the_pod_changes(
    *, free: list[int], gib: int, count: int, cores: int, pods: int
) -> None:
    shape = vgpu_shape(gib, count=count, cores=cores)
    gpus = node_devices(*(each * GIB for each in free))
    for change in changes(shape, pods, gpus):
        made = change.changed(shape)
        assert made.devices is not None
        before, after = asked_of(shape), asked_of(made)
        assert before != after
        assert all(0 < after[name] <= before[name] for name in before)
        assert replace(made, devices=shape.devices) == shape


def asked_of(shape: PodShape) -> dict[str, int]:
    """The limits of its one container."""
    assert shape.devices is not None
    [container] = shape.devices.containers
    return dict(container.limits)
