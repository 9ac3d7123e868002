"""The ConfigMap of the device plugins."""

from __future__ import annotations

import pytest

from app.model.device_families import VGPU, DeviceConfig, Models, Template
from app.model.devices import Geometry, Instance
from app.wire.errors import DecodeError
from app.wire.objects.device_configs import decode_device_config, device_config
from tests.wire.manifests import encode, metadata

NVIDIA = """\
nvidia:
  resourceCountName: example.com/gpu
  resourceMemoryName: "example.com/gpu-memory"
  resourceMemoryPercentageName: example.com/gpu-percentage
  resourceCoreName: example.com/gpu-cores
  overwriteEnv: false
  deviceSplitCount: 10
  deviceMemoryScaling: 1.5
  knownMigGeometries:
  - models: [ "A100-SXM4-80GB", "A100-PCIE-80GB"]
    allowedGeometries:
      - group: "group1"
        geometries:
        - name: 1g.10gb
          memory: 10240
          count: 7
      - group: "group2"
        geometries:
        - name: 2g.20gb
          memory: 20480
          count: 3
        - name: 1g.10gb
          memory: 10240
          count: 1
"""
CHIPS = """\
- chipName: 910A
  commonWord: Ascend910A
  resourceName: huawei.com/Ascend910A
  resourceMemoryName: huawei.com/Ascend910A-memory
  memoryAllocatable: 32768
  memoryCapacity: 32768
  aiCore: 30
  templates:
    - name: vir02
      memory: 2184
      aiCore: 2
"""


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_names_and_geometries_of_vgpus() -> None:
    found = device_config(NVIDIA)
    assert (found.vgpu.count, found.vgpu.memory) == ("example.com/gpu", "example.com/gpu-memory")
    assert found.vgpu.percent == "example.com/gpu-percentage"
    assert found.vgpu.cores == "example.com/gpu-cores"
    assert found.models == (
        Models(
            ("A100-SXM4-80GB", "A100-PCIE-80GB"),
            (
                Geometry("group1", (Instance("1g.10gb", 10240, 7),)),
                Geometry("group2", (Instance("2g.20gb", 20480, 3), Instance("1g.10gb", 10240, 1))),
            ),
        ),
    )
    assert found.geometries_of("NVIDIA-A100-PCIE-80GB") == found.models[0].geometries
    assert found.geometries_of("NVIDIA-H100") == ()


def test_memory_of_instances_is_in_the_units_that_pods_ask_for() -> None:
    found = device_config(NVIDIA.replace("nvidia:\n", "nvidia:\n  gpuMemoryFactor: 1024\n"))
    assert found.models[0].geometries[0].instances[0].memory == 10


@pytest.mark.parametrize(
    ("text", "by_software"),
    [
        ("vnpus:\n" + CHIPS, False),
        ("vnpus:\n  hamiVnpuCore: true\n  configs:\n" + indented(CHIPS), True),
    ],
)
def test_families_of_chips(text: str, by_software: bool) -> None:
    found = device_config(text)
    [chips] = found.ascend
    assert (chips.name, chips.count) == ("Ascend910A", "huawei.com/Ascend910A")
    assert chips.cores == "huawei.com/Ascend910A-core"
    assert chips.register == "hami.io/node-register-Ascend910A"
    assert (chips.whole, chips.most, chips.templates) == (32768, 32768, (Template("vir02", 2184),))
    assert found.hami_core is by_software
    assert found.vgpu == VGPU


def test_an_empty_text_says_nothing() -> None:
    assert device_config("") == DeviceConfig(ascend=())


@pytest.mark.parametrize(
    "text",
    [
        "nvidia: [",
        "nvidia: 5",
        "- a",
        "vnpus: text",
        NVIDIA.replace("10240", "-1"),
        NVIDIA.replace("count: 7", "count: 1000000"),
        NVIDIA.replace("memory: 10240", "memory: many"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str) -> None:
    with pytest.raises(DecodeError, match=r"data\.device-config\.yaml"):
        device_config(text, "data.device-config.yaml")


def test_a_config_map_has_a_name_and_a_text() -> None:
    head = metadata("volcano-vgpu-device-config", namespace="kube-system")
    said = encode({"metadata": head, "data": {"device-config.yaml": NVIDIA}})
    key, found = decode_device_config(said)
    assert (key, found) == ("kube-system/volcano-vgpu-device-config", device_config(NVIDIA))
    with pytest.raises(DecodeError, match="is missing"):
        decode_device_config(encode({"metadata": head, "data": {}}))
