"""The ConfigMap of the device plugins: names of resources, geometries, families of Ascend chips.

It is read as Volcano reads it (``device-config.yaml``); keys that the device plugins alone look at
are passed over.
"""

import dataclasses
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct, field

from app.model.device_families import VGPU, DeviceConfig, Family, Models, Template, ascend
from app.model.devices import Geometry, Instance
from app.wire import go_yaml
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

DEVICE_CONFIG_KEY: Final = "device-config.yaml"
_LARGEST: Final = (1 << 31) - 1


class _InstanceYaml(Struct, gc=False):
    name: str = ""
    memory: int = 0
    count: int = 0


class _GeometryYaml(Struct, gc=False):
    group: str = ""
    geometries: list[_InstanceYaml] | None = None


class _ModelsYaml(Struct, rename="camel", gc=False):
    models: list[str] | None = None
    allowed_geometries: list[_GeometryYaml] | None = None


class _NvidiaYaml(Struct, rename="camel", gc=False):
    resource_count_name: str = ""
    resource_memory_name: str = ""
    resource_memory_percentage_name: str = ""
    resource_core_name: str = ""
    known_mig_geometries: list[_ModelsYaml] | None = None
    factor: int = field(default=1, name="gpuMemoryFactor")


class _TemplateYaml(Struct, gc=False):
    name: str = ""
    memory: int = 0


class _ChipYaml(Struct, rename="camel", gc=False):
    common_word: str = ""
    resource_name: str = ""
    resource_memory_name: str = ""
    memory_allocatable: int = 0
    memory_capacity: int = 0
    templates: list[_TemplateYaml] | None = None


class _ChipsYaml(Struct, rename="camel", gc=False):
    hami_vnpu_core: bool = False
    configs: list[_ChipYaml] | None = None


class _ConfigYaml(Struct, gc=False):
    nvidia: _NvidiaYaml | None = None
    vnpus: _ChipsYaml | list[_ChipYaml] | None = None


class _ConfigMapJson(Struct, gc=False):
    metadata: MetaJson
    data: dict[str, str] | None = None


_read: Reader[_ConfigMapJson] = Reader(_ConfigMapJson)


def decode_device_config(text: Bytes) -> tuple[str, DeviceConfig]:
    """``namespace/name`` of the ConfigMap, and what it says; raises `DecodeError`."""
    json = _read(text)
    at = f"data.{DEVICE_CONFIG_KEY}"
    said = (json.data or {}).get(DEVICE_CONFIG_KEY)
    if said is None:
        raise DecodeError(at, "is missing")
    key = f"{json.metadata.namespace}/{meta.named(json.metadata)}"
    return key, device_config(said, at)


def device_config(text: str, at: str = "") -> DeviceConfig:
    """What the YAML ``text`` says; raises `DecodeError`."""
    config = _convert(_load(text, at), at)
    chips = config.vnpus
    wrapped = _ChipsYaml(configs=chips) if isinstance(chips, list) else chips or _ChipsYaml()
    nvidia = config.nvidia or _NvidiaYaml()
    return DeviceConfig(
        vgpu=_vgpu(nvidia),
        ascend=tuple(_chip(each) for each in wrapped.configs or () if each.common_word),
        models=tuple(
            _models(each, nvidia.factor, at) for each in nvidia.known_mig_geometries or ()
        ),
        hami_core=wrapped.hami_vnpu_core,
    )


def _load(text: str, at: str) -> Any:
    try:
        return go_yaml.load_first(text)[0] or {}
    except yaml.YAMLError as error:
        raise DecodeError(at, f"not valid YAML: {go_yaml.problem(error)}") from error
    except RecursionError as error:
        raise DecodeError(at, "not valid YAML: nested too deeply") from error


def _convert(document: Any, at: str) -> _ConfigYaml:
    try:
        return msgspec.convert(document, _ConfigYaml, strict=False)
    except msgspec.ValidationError as error:
        raise DecodeError(at, str(error)) from error


def _vgpu(nvidia: _NvidiaYaml) -> Family:
    return dataclasses.replace(
        VGPU,
        count=nvidia.resource_count_name or VGPU.count,
        memory=nvidia.resource_memory_name or VGPU.memory,
        percent=nvidia.resource_memory_percentage_name or VGPU.percent,
        cores=nvidia.resource_core_name or VGPU.cores,
    )


def _chip(chip: _ChipYaml) -> Family:
    return ascend(
        chip.common_word,
        count=chip.resource_name,
        memory=chip.resource_memory_name,
        whole=chip.memory_allocatable,
        most=chip.memory_capacity,
        templates=[Template(each.name, each.memory) for each in chip.templates or ()],
    )


def _models(models: _ModelsYaml, factor: int, at: str) -> Models:
    return Models(
        tuple(models.models or ()),
        tuple(
            Geometry(
                each.group,
                tuple(_instance(instance, factor, at) for instance in each.geometries or ()),
            )
            for each in models.allowed_geometries or ()
        ),
    )


def _instance(instance: _InstanceYaml, factor: int, at: str) -> Instance:
    """Its memory is in the units that pods ask for: so many MiB (``gpuMemoryFactor``) are one."""
    if not (0 < instance.memory <= _LARGEST and 0 < instance.count <= 64):
        raise DecodeError(at, f"instance {instance.name}: memory or count is out of bounds")
    return Instance(instance.name, instance.memory // max(factor, 1), instance.count)
