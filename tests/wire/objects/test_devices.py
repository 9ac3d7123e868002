"""What device plugins write on nodes, and what they read on pods."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.placement.devices import Given, OfNode, assign
from app.model.device_families import (
    ASCEND_310P,
    GPU_SHARE,
    VGPU,
    DeviceConfig,
    Family,
    GpuShare,
    Models,
    need_of,
)
from app.model.devices import (
    UNUSED,
    Device,
    DeviceKind,
    DeviceNotes,
    DeviceOrder,
    Geometry,
    Instance,
    Slot,
    Use,
)
from app.wire.objects.devices import decided, devices, told
from app.wire.objects.nodes import decode_node
from app.wire.objects.pods import decode_pod
from tests.wire.manifests import encode, metadata

LISTED = {
    "volcano.sh/vgpu-number": "20",
    "volcano.sh/vgpu-memory": "65536",
    "volcano.sh/vgpu-cores": "200",
}
REGISTER = (
    "GPU-aa,10,32768,NVIDIA-Tesla V100,true,hami-core:"
    "GPU-bb,10,32768,NVIDIA-Tesla V100,false,hami-core:"
)
GEOMETRIES = (
    Geometry("group1", (Instance("1g.10gb", 10240, 7),)),
    Geometry("group2", (Instance("2g.20gb", 20480, 3), Instance("1g.10gb", 10240, 1))),
)
A100 = DeviceConfig(models=(Models(("A100-SXM4-80GB",), GEOMETRIES),))
NONE = DeviceConfig()
NOW = 1_700_000_000.5


def listed(
    annotations: dict[str, str],
    *,
    family: Family = VGPU,
    allocatable: dict[str, str] | None = None,
    capacity: dict[str, str] | None = None,
    config: DeviceConfig = NONE,
) -> tuple[Device, ...]:
    status = {"allocatable": LISTED if allocatable is None else allocatable, "capacity": capacity}
    head = metadata("n1") | {"annotations": annotations}
    node = decode_node(encode({"metadata": head, "status": status}))
    return devices(family, node.devices or DeviceNotes(), node.allocatable, config)


def vgpu(text: str, **more: Any) -> tuple[Device, ...]:
    return listed({"volcano.sh/node-vgpu-register": text}, **more)


def test_the_vgpu_device_plugin_lists_gpus() -> None:
    kind = DeviceKind("NVIDIA-Tesla V100", 32768, 10, mode="hami-core")
    assert vgpu(REGISTER) == (
        Device("GPU-aa", 0, kind),
        Device("GPU-bb", 1, kind, healthy=False),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "GPU-aa",
        "GPU-aa,10,32768,NVIDIA-X,true:",
        "GPU-aa,-1,32768,NVIDIA-X,true,hami-core:",
        "GPU-aa,10,-5,NVIDIA-X,true,hami-core:",
        "GPU-aa,10,99999999999999999999,NVIDIA-X,true,hami-core:",
        "GPU-aa,ten,32768,NVIDIA-X,true,hami-core:",
        ",10,32768,NVIDIA-X,true,hami-core:",
        "GPU;aa,10,32768,NVIDIA-X,true,hami-core:",
        "GPU-aa,10,32768,MLU-370,true,hami-core:",
    ],
)
def test_what_is_no_gpu_is_left_out(text: str) -> None:
    assert vgpu(text) == ()
    assert [each.id for each in vgpu(text + ":" + REGISTER)] == ["GPU-aa", "GPU-bb"]


def test_a_uuid_counts_once() -> None:
    assert len(vgpu(REGISTER + REGISTER)) == 2


@pytest.mark.parametrize("missing", LISTED)
def test_gpus_count_only_where_the_kubelet_offers_them(missing: str) -> None:
    left = {name: amount for name, amount in LISTED.items() if name != missing}
    assert vgpu(REGISTER, allocatable=left) == ()
    assert vgpu(REGISTER, allocatable=left | {missing: "0"}) == ()


@pytest.mark.parametrize(
    ("type_", "mode", "geometries"),
    [
        ("NVIDIA-A100-SXM4-80GB", "mig", GEOMETRIES),
        ("NVIDIA-H100", "mig", ()),
        ("NVIDIA-A100-SXM4-80GB", "hami-core", ()),
        ("NVIDIA-A100-SXM4-80GB", "mps", ()),
    ],
)
def test_a_gpu_is_cut_if_its_geometries_are_known(
    type_: str, mode: str, geometries: tuple[Geometry, ...]
) -> None:
    [device] = vgpu(f"GPU-aa,7,81920,{type_},true,{mode}:", config=A100)
    assert device.kind.geometries == geometries
    assert device.kind.mode == ("mig" if geometries else "hami-core")


def test_gpus_by_the_capacity_of_the_node() -> None:
    capacity = {"volcano.sh/gpu-number": "3", "volcano.sh/gpu-memory": "30000"}
    ill = {"volcano.sh/gpu-unhealthy-ids": "1, x"}
    found = listed(ill, family=GPU_SHARE, capacity=capacity)
    assert [(each.id, each.index, each.kind.memory, each.healthy) for each in found] == [
        ("0", 0, 10000, True),
        ("1", 1, 10000, False),
        ("2", 2, 10000, True),
    ]


@pytest.mark.parametrize(
    "capacity",
    [
        {},
        {"volcano.sh/gpu-number": "3"},
        {"volcano.sh/gpu-memory": "3"},
        {"volcano.sh/gpu-number": "-1", "volcano.sh/gpu-memory": "-1"},
    ],
)
def test_no_gpus_by_capacity(capacity: dict[str, str]) -> None:
    assert listed({}, family=GPU_SHARE, capacity=capacity) == ()


def test_hami_lists_chips_as_json() -> None:
    text = (
        '[{"id":"310P-0","index":2,"count":7,"devmem":21527,"devcore":8,"type":"Ascend310P",'
        '"numa":1,"health":true},{"id":"bad","count":-1,"health":true}]'
    )
    there = {"huawei.com/Ascend310P": "7"}
    key = "hami.io/node-register-Ascend310P"
    kind = DeviceKind("Ascend310P", 21527, 7, cores=8)
    assert listed({key: text}, family=ASCEND_310P, allocatable=there) == (
        Device("310P-0", 2, kind, numa=1),
    )
    [by_software] = listed(
        {key: text, "hami-vnpu-core": "true"}, family=ASCEND_310P, allocatable=there
    )
    assert (by_software.kind.mode, by_software.kind.cores) == ("hami-core", 100)
    for bad in ("", "{", '{"id": 1}', "[1]", '[{"id":"x","count":99999999999999999999}]'):
        assert listed({key: bad}, family=ASCEND_310P, allocatable=there) == ()


# --- pods ----------------------------------------------------------------------------------------


def pod(
    *containers: dict[str, str],
    init: tuple[dict[str, str], ...] = (),
    annotations: dict[str, str] | None = None,
) -> Any:
    def made(limits: dict[str, str]) -> dict[str, Any]:
        return {"name": "c", "resources": {"limits": limits}}

    spec = {"containers": [made(each) for each in containers]}
    if init:
        spec["initContainers"] = [made(each) for each in init]
    head = metadata("p", namespace="ns") | {"annotations": annotations or {}}
    return decode_pod(encode({"metadata": head, "spec": spec})).shape.devices


def annotated(
    family: Family, asked: Any, on: tuple[Device, ...], share: GpuShare | None = None
) -> dict[str, str]:
    need = need_of(family, asked, share)
    assert need is not None
    node = OfNode(tuple(d.kind for d in on), (UNUSED,) * len(on), tuple(d.healthy for d in on))
    found = assign(node, need, DeviceOrder.BINPACK)
    assert isinstance(found, Given), found
    return told(family, need, found.containers, on, node="n1", now=NOW)


def test_a_pod_is_told_its_vgpus() -> None:
    asked = pod(
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"},
        {"cpu": "1"},
        {
            "volcano.sh/vgpu-number": "1",
            "volcano.sh/vgpu-memory-percentage": "50",
            "volcano.sh/vgpu-cores": "30",
        },
    )
    ids = "GPU-aa,NVIDIA,3000,0:;GPU-aa,NVIDIA,16384,30:"
    assert annotated(VGPU, asked, vgpu(REGISTER)) == {
        "volcano.sh/vgpu-node": "n1",
        "volcano.sh/vgpu-time": "1700000000",
        "volcano.sh/vgpu-ids-new": ids,
        "volcano.sh/devices-to-allocate": ids,
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": "1700000000",
    }


def test_a_pod_is_told_its_instance_and_the_memory_that_it_asked_for() -> None:
    on = vgpu("GPU-aa,7,81920,NVIDIA-A100-SXM4-80GB,true,mig:", config=A100)
    asked = pod({"volcano.sh/vgpu-memory": "12000"}, annotations={"volcano.sh/vgpu-mode": "mig"})
    said = annotated(VGPU, asked, on)["volcano.sh/vgpu-ids-new"]
    assert said == "GPU-aa[group2-0],NVIDIA,12000,0:"


def test_a_pod_is_told_its_gpus_by_number() -> None:
    capacity = {"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "20000"}
    on = listed({}, family=GPU_SHARE, capacity=capacity)
    asked = pod({"volcano.sh/gpu-memory": "4000"}, {"volcano.sh/gpu-memory": "2000"})
    assert annotated(GPU_SHARE, asked, on, GpuShare.MEMORY) == {
        "volcano.sh/gpu-index": "0",
        "volcano.sh/predicate-time": str(int(NOW * 1e9)),
    }
    asked = pod({"volcano.sh/gpu-number": "2"})
    said = annotated(GPU_SHARE, asked, on, GpuShare.NUMBER)
    assert said["volcano.sh/gpu-index"] == "0,1"


def test_a_pod_is_told_its_chips() -> None:
    kind = DeviceKind("Ascend310P", 21527, 7, cores=8)
    asked = pod({"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "4000"})
    assert annotated(ASCEND_310P, asked, (Device("310P-0", 0, kind),)) == {
        "hami.io/Ascend310P-devices-to-allocate": "310P-0,Ascend310P,6144,0:;",
        "hami.io/Ascend310P-devices-allocated": "310P-0,Ascend310P,6144,0:;",
        "huawei.com/Ascend310P": '[{"UUID":"310P-0","temp":"vir02"}]',
        "predicate-time": "1700000000",
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": "1700000000",
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1700000000",
    }
    by_software = Device("310P-0", 0, DeviceKind("Ascend310P", 21527, 7, mode="hami-core"))
    asked = pod(
        {"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "4000"},
        annotations={"huawei.com/vnpu-mode": "hami-core"},
    )
    said = annotated(ASCEND_310P, asked, (by_software,))
    assert said["huawei.com/Ascend310P"] == '[{"UUID":"310P-0","memory":4000}]'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU-aa,NVIDIA,3000,0:", ((("GPU-aa", Use(1, 3000, 0)),),)),
        (
            "GPU-aa[group2-3],NVIDIA,3000,10:",
            ((("GPU-aa", Use(1, 3000, 10, frozenset({Slot("group2", 3)}))),),),
        ),
        ("GPU-aa,NVIDIA,-3000,0:", ((("GPU-aa", Use(1, -1, 0)),),)),
        ("", None),
        ("GPU-aa", None),
        ("GPU-aa,NVIDIA,3000:", None),
        ("GPU-aa,NVIDIA,3000,0:GPU-bb,NVIDIA,3000,0:", None),
        ("GPU-aa,NVIDIA,3000,0:;GPU-aa,NVIDIA,3000,0:", None),
    ],
)
def test_what_a_pod_says_of_its_vgpus(text: str, found: Any) -> None:
    need = need_of(VGPU, pod({"volcano.sh/vgpu-memory": "3000"}))
    assert need is not None
    assert decided(VGPU, need, {"volcano.sh/vgpu-ids-new": text}) == found


@pytest.mark.parametrize("text", ["0", "0,0", "0,1,2", ""])
def test_two_gpus_are_two_different_ones(text: str) -> None:
    need = need_of(GPU_SHARE, pod({"volcano.sh/gpu-number": "2"}), GpuShare.NUMBER)
    assert need is not None
    assert decided(GPU_SHARE, need, {"volcano.sh/gpu-index": text}) is None


def test_equal_pods_that_choose_otherwise_have_other_shapes() -> None:
    limits = {"volcano.sh/vgpu-memory": "3000"}
    plain, choosing = pod(limits), pod(limits, annotations={"nvidia.com/use-gputype": "A100"})
    assert plain != choosing
    assert plain == pod(limits, annotations={"volcano.sh/vgpu-ids-new": "GPU-aa,NVIDIA,1,0:"})


def test_a_pod_without_extended_resources_asks_for_no_devices() -> None:
    assert pod({"cpu": "1", "memory": "1Gi"}) is None
    assert pod({"pumice.sh/gang": "1"}) is None
