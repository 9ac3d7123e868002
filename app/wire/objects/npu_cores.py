"""How MindCluster's device plugin tells of Ascend chips that it cuts, and how pods are told theirs.

A node names its chips by an annotation, and says by a label how many AI cores each has. Which of
them do not work stands in a ConfigMap of the node. A pod is told a chip and a template, or whole
chips; afterwards the device plugin writes what the pod has got.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from msgspec import Raw, Struct

from app.model.devices import Device, Slot, Use
from app.model.npu_cores import (
    CHIP,
    CHIPS,
    CORES,
    PARTS,
    REAL,
    SERVED_FROM,
    SERVER_TYPE,
    WHOLE_CHIP,
)
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

HEALTH_NAMESPACE: Final = "kube-system"
HEALTH_LABELS: Final = "mx-consumer-cim=true"
HEALTH_PREFIX: Final = "mindx-dl-deviceinfo-"
"""The ConfigMaps that tell of the health of chips; the name of the node follows."""
HEALTH_KEY: Final = "DeviceInfoCfg"

_CHIP: Final = re.compile(rf"{CHIP.type}-([0-9]{{1,4}})")
_ILL: Final = (f"huawei.com/{CHIP.type}-Unhealthy", f"huawei.com/{CHIP.type}-Recovering")
_TOLD: Final = re.compile(r"([0-9]{1,4})(?:-(vir[0-9a-z_]{1,20}))?")
_GOT: Final = re.compile(
    rf"{CHIP.type}-([0-9])c((?:[.][0-9a-z]+)*)-([0-9]{{1,9}})-([0-9]{{1,4}})(?:_([0-9]{{1,2}}))?"
)


class ChipHealth(NamedTuple):
    """A ConfigMap by namespace and name, and the chips of its node that do not work, by name."""

    key: str
    ill: frozenset[str]


def node_of(key: str) -> str:
    """The node that the ConfigMap is about; empty: it is about none."""
    return key.partition(f"/{HEALTH_PREFIX}")[2]


class _ListsJson(Struct, rename="pascal", gc=False):
    device_list: dict[str, str] | None = None


class _InfoJson(Struct, rename="pascal", gc=False):
    device_info: _ListsJson | None = None


class _ConfigMapJson(Struct, gc=False):
    metadata: MetaJson
    data: dict[str, str] | None = None


_read: Reader[_ConfigMapJson] = Reader(_ConfigMapJson)
_read_info: Reader[_InfoJson] = Reader(_InfoJson)
_read_chips: Reader[dict[str, Raw] | None] = Reader(dict[str, Raw] | None)


def decode_chip_health(text: Bytes) -> ChipHealth:
    """What a ConfigMap of the device plugin says; raises `DecodeError`."""
    json = _read(text)
    key = f"{json.metadata.namespace or ''}/{meta.named(json.metadata)}"
    if not node_of(key):
        return ChipHealth(key, frozenset())
    said = (json.data or {}).get(HEALTH_KEY)
    if said is None:
        raise DecodeError(f"data.{HEALTH_KEY}", "is missing")
    info = _read_info(said.encode(), f"data.{HEALTH_KEY}").device_info or _ListsJson()
    lists = info.device_list or {}
    ill = (chip.strip() for key in _ILL for chip in lists.get(key, "").split(","))
    return ChipHealth(key, frozenset(filter(None, ill)))


def chips(said: Mapping[str, str]) -> list[Device]:
    """The chips that a node names, in the order of their numbers; parts that are cut are none."""
    if not f"{said.get(SERVER_TYPE, '')}-".startswith(f"{CHIP.type}-{CHIP.cores}-"):
        return []
    try:
        names = _read_chips(said.get(CHIPS, "").encode()) or {}
    except DecodeError:
        return []
    numbers = sorted(int(found[1]) for name in names if (found := _CHIP.fullmatch(name)))
    return [Device(f"{CHIP.type}-{number}", number, CHIP) for number in numbers]


def told(uses: Sequence[Use], on: Sequence[Device], *, now: float) -> dict[str, str]:
    """The annotations that tell a pod what it gets of these chips, as the device plugin reads them.

    ``now`` is seconds since the epoch.
    """
    template = next((name for name, part in PARTS.items() if part[1:] == _amounts(uses[0])), "")
    numbers = ",".join(str(device.index) for device in on)
    return {
        CORES: f"{numbers}-{template}" if template else numbers,
        SERVED_FROM: str(int(now * 1e9)),
    }


def decided(annotations: Mapping[str, str]) -> list[tuple[str, Use]]:
    """The chips that a pod has, and what of each: as the device plugin says, or as it was told."""
    got = [_got(each.strip()) for each in annotations.get(REAL, "").split(",")]
    found = [each for each in got if each is not None]
    if found and len(found) == len(got):
        return found
    said = [_TOLD.fullmatch(each.strip()) for each in annotations.get(CORES, "").split(",")]
    return [(f"{CHIP.type}-{each[1]}", _of_template(each[2] or "")) for each in said if each]


def _got(text: str) -> tuple[str, Use] | None:
    """``Ascend310P-2``, or ``Ascend310P-4c.3cpu.ndvpp-100-2_1``: part 100, chip 2, group 1."""
    if _CHIP.fullmatch(text):
        return text, _of_template("")
    found = _GOT.fullmatch(text)
    if found is None:
        return None
    cores, rest, number, chip, group = found.groups()
    template = f"vir0{cores}{rest.replace('.', '_').replace('cpu', 'c')}"
    use = _of_template(template)
    if group:
        use = replace(use, slots=frozenset({Slot(group, int(number))}))
    return f"{CHIP.type}-{chip}", use


def _of_template(name: str) -> Use:
    """Nothing where there is no such template: no pod asks for that."""
    part = PARTS.get(name) if name else WHOLE_CHIP
    return Use() if part is None else Use(1, cores=part.cores, cpus=part.cpus, video=part.video)


def _amounts(use: Use) -> tuple[int, int, int]:
    return use.cores, use.cpus, use.video
