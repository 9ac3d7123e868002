"""What MindCluster's device plugin writes of chips, and what it reads on pods."""

from __future__ import annotations

import json

import pytest

from app.core.placement.devices import Share
from app.model.device_families import DEFAULT_DEVICES, NPU_CORES, need_of
from app.model.devices import Device, DeviceNotes, Slot, Use
from app.model.npu_cores import CHIP, PARTS, WHOLE_CHIP
from app.wire.errors import DecodeError
from app.wire.objects.devices import decided, devices, told
from app.wire.objects.nodes import decode_node
from app.wire.objects.npu_cores import ChipHealth, decode_chip_health, node_of
from app.wire.objects.pods import decode_pod
from tests.npu_cores import asking, names
from tests.wire.manifests import encode, metadata

NOW = 1_700_000_000.5
CORES, REAL = "huawei.com/npu-core", "huawei.com/AscendReal"


def of(template: str, *, slot: Slot | None = None) -> Use:
    part = PARTS.get(template, WHOLE_CHIP)
    slots = frozenset({slot} if slot else ())
    return Use(1, 0, part.cores, slots, part.cpus, part.video)


def listed(chips: str, *, server: str = "Ascend310P-8", cores: str = "24") -> tuple[Device, ...]:
    head = metadata("n1") | {
        "annotations": {"baseDeviceInfos": chips},
        "labels": {"servertype": server},
    }
    status = {"allocatable": {CORES: cores}}
    node = decode_node(encode({"metadata": head, "status": status}))
    return devices(NPU_CORES, node.devices or DeviceNotes(), node.allocatable, DEFAULT_DEVICES)


def test_a_node_names_its_chips() -> None:
    assert listed(names(2)) == (
        Device("Ascend310P-0", 0, CHIP),
        Device("Ascend310P-1", 1, CHIP),
    )


def test_chips_stand_in_the_order_of_their_numbers() -> None:
    said = json.dumps({f"Ascend310P-{at}": {} for at in (10, 9)})
    assert [device.index for device in listed(said)] == [9, 10]


@pytest.mark.parametrize(
    ("chips", "server", "cores"),
    [
        ("", "Ascend310P-8", "24"),
        ("nonsense", "Ascend310P-8", "24"),
        ("null", "Ascend310P-8", "24"),
        (names(2), "Ascend310P-10-dual", "24"),
        (names(2), "Ascend910-8", "24"),
        (names(2), "", "24"),
        (names(2), "Ascend310P-8", "0"),
        ('{"Ascend910-0": {}}', "Ascend310P-8", "24"),
        ('{"Ascend310P-2c-100-0": {}}', "Ascend310P-8", "24"),
    ],
)
def test_other_nodes_have_no_such_chips(chips: str, server: str, cores: str) -> None:
    assert listed(chips, server=server, cores=cores) == ()


def test_a_server_of_two_boards_has_the_same_chips() -> None:
    assert len(listed(names(2), server="Ascend310P-8-dual")) == 2


def health(lists: object, *, name: str = "mindx-dl-deviceinfo-n1") -> ChipHealth:
    data = {} if lists is None else {"DeviceInfoCfg": lists}
    head = metadata(name) | {"namespace": "kube-system"}
    return decode_chip_health(encode({"metadata": head, "data": data}))


@pytest.mark.parametrize(
    ("lists", "ill"),
    [
        ({}, set()),
        ({"huawei.com/Ascend310P": "Ascend310P-0"}, set()),
        ({"huawei.com/Ascend310P-Unhealthy": "Ascend310P-1,Ascend310P-2"}, {1, 2}),
        ({"huawei.com/Ascend310P-Recovering": "Ascend310P-0"}, {0}),
        ({"huawei.com/Ascend910-Unhealthy": "Ascend910-0"}, set()),
    ],
)
def test_the_config_map_of_a_node_tells_which_chips_do_not_work(
    lists: dict[str, str], ill: set[int]
) -> None:
    said = json.dumps({"DeviceInfo": {"DeviceList": lists, "UpdateTime": 1}, "CheckCode": "x"})
    key = "kube-system/mindx-dl-deviceinfo-n1"
    assert health(said) == ChipHealth(key, frozenset(f"Ascend310P-{at}" for at in ill))
    assert node_of(key) == "n1"


@pytest.mark.parametrize("said", [None, "nonsense", '{"DeviceInfo": {"DeviceList": [1]}}'])
def test_a_config_map_that_cannot_be_read_is_refused_with_its_key(said: str | None) -> None:
    with pytest.raises(DecodeError) as refused:
        health(said)
    assert refused.value.path.startswith("data.DeviceInfoCfg")


def test_other_config_maps_are_of_no_node() -> None:
    other = health(None, name="volcano-vgpu-device-config")
    assert (node_of(other.key), other.ill) == ("", frozenset())


@pytest.mark.parametrize(
    ("uses", "at", "text"),
    [
        ([of("vir01")], (1,), "1-vir01"),
        ([of("vir02_1c")], (0,), "0-vir02_1c"),
        ([of("vir04_3c_ndvpp")], (2,), "2-vir04_3c_ndvpp"),
        ([of("vir04_4c_dvpp")], (2,), "2-vir04_4c_dvpp"),
        ([of("whole")], (2,), "2"),
        ([of("whole"), of("whole")], (0, 2), "0,2"),
    ],
)
def test_a_pod_is_told_its_chips_and_its_template(
    uses: list[Use], at: tuple[int, ...], text: str
) -> None:
    """As the device plugin reads them: the time has nanoseconds, as a whole number."""
    need = need_of(NPU_CORES, asking(8 * len(at)))
    assert need is not None
    shares = [Share(position, use) for position, use in zip(at, uses, strict=True)]
    found = told(NPU_CORES, need, [shares], listed(names(3)), node="n1", now=NOW)
    assert found == {CORES: text, "predicate-time": "1700000000500000000"}


@pytest.mark.parametrize(
    ("cores", "annotations", "has"),
    [
        (1, {CORES: "1-vir01"}, [(1, of("vir01"))]),
        (2, {CORES: "0-vir02_1c"}, [(0, of("vir02_1c"))]),
        (8, {CORES: "3"}, [(3, of("whole"))]),
        (16, {CORES: "0,2"}, [(0, of("whole")), (2, of("whole"))]),
        (2, {CORES: "0-vir02", REAL: ""}, [(0, of("vir02"))]),
        (
            2,
            {CORES: "0-vir02_1c", REAL: "Ascend310P-2c.1cpu-105-1_3"},
            [(1, of("vir02_1c", slot=Slot("3", 105)))],
        ),
        (4, {REAL: "Ascend310P-4c-100-0"}, [(0, of("vir04"))]),
        (4, {REAL: "Ascend310P-4c.3cpu.ndvpp-100-0"}, [(0, of("vir04_3c_ndvpp"))]),
        (
            4,
            {REAL: "Ascend310P-4c.4cpu.dvpp-7-0_0"},
            [(0, of("vir04_4c_dvpp", slot=Slot("0", 7)))],
        ),
        (16, {REAL: "Ascend310P-1,Ascend310P-0"}, [(1, of("whole")), (0, of("whole"))]),
        (4, {CORES: "0-vir99"}, [(0, Use())]),
    ],
)
def test_what_a_pod_has_stands_in_its_annotations(
    cores: int, annotations: dict[str, str], has: list[tuple[int, Use]]
) -> None:
    """What the device plugin has given goes before what the pod was told."""
    need = need_of(NPU_CORES, asking(cores))
    assert need is not None
    expected = tuple((f"Ascend310P-{at}", use) for at, use in has)
    assert decided(NPU_CORES, need, annotations) == (expected,)


@pytest.mark.parametrize(
    ("cores", "text"), [(2, ""), (2, "x-vir02"), (2, "0,1"), (16, "0"), (16, "0,0"), (2, "-vir02")]
)
def test_annotations_that_name_other_chips_than_are_asked_for_tell_nothing(
    cores: int, text: str
) -> None:
    need = need_of(NPU_CORES, asking(cores))
    assert need is not None
    assert decided(NPU_CORES, need, {CORES: text}) is None


def test_a_pod_chooses_by_labels_and_keeps_what_it_is_told() -> None:
    container = {"name": "c", "resources": {"limits": {CORES: "2"}}}
    head = metadata("p") | {
        "namespace": "default",
        "labels": {"vnpu-level": "high", "app": "infers"},
        "annotations": {CORES: "0-vir02", "other": "text"},
    }
    pod = decode_pod(encode({"metadata": head, "spec": {"containers": [container]}}))
    assert pod.shape.devices == asking(2, level="high")
    assert pod.annotations == {CORES: "0-vir02"}
