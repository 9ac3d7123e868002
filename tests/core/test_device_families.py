"""What pods ask of the families of devices."""

from __future__ import annotations

import pytest

from app.core.placement.devices import Given, Lacking, OfNode, assign
from app.model.device_families import (
    ASCEND_310P,
    GPU_SHARE,
    VGPU,
    DeviceConfig,
    DeviceSetting,
    GpuShare,
    need_of,
)
from app.model.devices import (
    UNUSED,
    Ask,
    ContainerLimits,
    DeviceAsk,
    DeviceKind,
    DeviceOrder,
    Wanted,
)

NUMBER, MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
PERCENT, CORES = "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"
CHIP, CHIP_MEMORY = "huawei.com/Ascend310P", "huawei.com/Ascend310P-memory"


def container(limits: dict[str, int], *, init: bool = False) -> ContainerLimits:
    return ContainerLimits(tuple(sorted(limits.items())), init=init)


def asked(*limits: dict[str, int], said: dict[str, str] | None = None) -> DeviceAsk:
    return DeviceAsk(tuple(map(container, limits)), tuple(sorted((said or {}).items())))


@pytest.mark.parametrize(
    ("limits", "ask"),
    [
        ({}, None),
        ({"nvidia.com/gpu": 1}, None),
        ({NUMBER: 0}, None),
        ({CORES: 50}, None),
        ({NUMBER: 2}, Ask(2, percent=100)),
        ({MEMORY: 3000}, Ask(1, 3000)),
        ({NUMBER: 2, MEMORY: 3000, CORES: 50}, Ask(2, 3000, cores=50)),
        ({NUMBER: 1, PERCENT: 40}, Ask(1, percent=40)),
        ({NUMBER: 1, PERCENT: 40, MEMORY: 9}, Ask(1, 9, percent=40)),
        ({NUMBER: 1, PERCENT: 101, MEMORY: 9}, Ask(1, 9)),
        ({NUMBER: 1, PERCENT: 101}, Ask(1, percent=100)),
        ({NUMBER: 1, MEMORY: 0}, Ask(1, percent=100)),
        ({NUMBER: 1, PERCENT: 0, MEMORY: 9}, Ask(1, 9, percent=0)),
    ],
    ids=str,
)
def test_what_a_container_asks_of_vgpus(limits: dict[str, int], ask: Ask | None) -> None:
    need = need_of(VGPU, asked(limits))
    assert (need and need.asks) == (None if ask is None else (ask,))


def test_containers_that_ask_for_nothing_are_left_out() -> None:
    need = need_of(VGPU, asked({MEMORY: 1}, {"cpu": 1}, {MEMORY: 2}))
    assert need is not None
    assert [ask.memory for ask in need.asks] == [1, 2]


@pytest.mark.parametrize(("containers", "gets"), [(128, Given), (129, Lacking), (1_500, Lacking)])
def test_only_so_many_containers_of_a_pod_get_devices(containers: int, gets: type) -> None:
    need = need_of(VGPU, asked(*[{MEMORY: 1}] * containers))
    assert need is not None
    on = OfNode((DeviceKind("V100", 32_768, 2_000),), (UNUSED,), (True,))
    assert isinstance(assign(on, need, DeviceOrder.LAST), gets)
    assert need.flaw == ("" if gets is Given else "more than 128 of its containers ask for devices")


def test_a_percentage_is_of_the_memory_of_each_device() -> None:
    kinds = [DeviceKind("NVIDIA", memory, 1) for memory in (32768, 999)]
    assert [Ask(1, 9, percent=40).memory_of(kind) for kind in kinds] == [13107, 399]


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        ("nvidia.com/use-gputype", "a100, V100,", Wanted(types=("A100", "V100"))),
        ("nvidia.com/nouse-gputype", "p40", Wanted(not_types=("P40",))),
        ("volcano.sh/vgpu-use-gpuuuid", "GPU-a, GPU-b", Wanted(ids=("GPU-a", "GPU-b"))),
        ("volcano.sh/vgpu-nouse-gpuuuid", "GPU-a", Wanted(not_ids=("GPU-a",))),
        ("volcano.sh/vgpu-mode", "mig", Wanted(mode="mig")),
        ("volcano.sh/vgpu-use-gpuuuid", " , ", Wanted()),
    ],
)
def test_annotations_by_which_a_pod_chooses(key: str, text: str, wanted: Wanted) -> None:
    need = need_of(VGPU, asked({NUMBER: 1}, said={key: text}))
    assert need is not None
    assert need.wanted == wanted


@pytest.mark.parametrize(("text", "spread"), [("spread", True), ("binpack", False), ("", False)])
def test_pods_of_a_group_may_ask_for_devices_apart(text: str, spread: bool) -> None:
    need = need_of(VGPU, asked({NUMBER: 1}, said={"volcano.sh/vgpu-podgroup-policy": text}))
    assert need is not None
    assert need.spread is spread


@pytest.mark.parametrize(
    ("share", "limits", "ask"),
    [
        (None, {"gpu-memory": 5}, None),
        (GpuShare.MEMORY, {"gpu-memory": 5}, Ask(1, 5)),
        (GpuShare.MEMORY, {"gpu-number": 2}, None),
        (GpuShare.NUMBER, {"gpu-memory": 5}, None),
        (GpuShare.NUMBER, {"gpu-number": 2}, Ask(2, whole=True)),
    ],
    ids=str,
)
def test_gpus_are_shared_by_memory_or_given_by_number(
    share: GpuShare | None, limits: dict[str, int], ask: Ask | None
) -> None:
    need = need_of(GPU_SHARE, asked({f"volcano.sh/{k}": n for k, n in limits.items()}), share)
    assert (need and need.asks) == (None if ask is None else (ask,))


@pytest.mark.parametrize(("app", "init", "memory"), [((3, 4), 5, 7), ((3, 4), 9, 9)])
def test_all_containers_of_a_pod_share_one_gpu(
    app: tuple[int, ...], init: int, memory: int
) -> None:
    name = "volcano.sh/gpu-memory"
    each = (container({name: init}, init=True), *(container({name: n}) for n in app))
    need = need_of(GPU_SHARE, DeviceAsk(each), GpuShare.MEMORY)
    assert need is not None
    assert need.asks == (Ask(1, memory),)


@pytest.mark.parametrize(
    ("limits", "memory", "flawed"),
    [
        ({CHIP: 1, CHIP_MEMORY: 3072}, 3072, False),
        ({CHIP: 1, CHIP_MEMORY: 3073}, 6144, False),
        ({CHIP: 1, CHIP_MEMORY: 12289}, 21527, False),
        ({CHIP: 1}, 21527, False),
        ({CHIP: 2}, 21527, False),
        ({CHIP_MEMORY: 100}, 3072, False),
        ({CHIP: 2, CHIP_MEMORY: 3072}, 3072, True),
        ({CHIP: 1, CHIP_MEMORY: 24577}, 0, True),
    ],
    ids=str,
)
def test_chips_are_given_in_parts(limits: dict[str, int], memory: int, flawed: bool) -> None:
    need = need_of(ASCEND_310P, asked(limits))
    assert need is not None
    assert (need.asks[0].memory, bool(need.flaw)) == (memory, flawed)
    assert need.apart


def test_chips_that_are_shared_by_software_have_no_parts() -> None:
    said = {"huawei.com/vnpu-mode": "hami-core"}
    limits = {CHIP: 2, CHIP_MEMORY: 4000, f"{CHIP}-core": 30}
    need = need_of(ASCEND_310P, asked(limits, said=said))
    assert need is not None
    assert need.asks == (Ask(2, 4000, cores=30),)
    assert (need.wanted.mode, need.flaw) == ("hami-core", "")


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (DeviceSetting(), []),
        (DeviceSetting(gpu_share=GpuShare.MEMORY), ["GpuShare"]),
        (DeviceSetting(vgpu=True, ascend=True), ["hamivgpu", "Ascend310P"]),
    ],
)
def test_families_that_count(setting: DeviceSetting, names: list[str]) -> None:
    assert [family.name for family in setting.families(DeviceConfig())] == names
