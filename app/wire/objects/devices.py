"""How device plugins tell of devices, and how pods are told which they have (volcano.md §3.6).

What is not as a device plugin writes it is left out, device by device: numbers that are none, less
than nothing or beyond all bounds, and UUIDs that are there twice.
"""

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from app.core.placement.devices import Share
from app.model.amounts import Amounts
from app.model.device_families import (
    GPU_SHARE,
    GPUS,
    HAMI_CORE,
    HAMI_CORE_NODE,
    UNHEALTHY,
    DeviceConfig,
    Family,
    Form,
    is_register,
)
from app.model.devices import (
    Ask,
    Device,
    DeviceKind,
    DeviceMode,
    DeviceNeed,
    DeviceNotes,
    Slot,
    Use,
)
from app.model.npu_cores import CHIPS, SERVER_TYPE
from app.wire.errors import DecodeError, Reader
from app.wire.objects import npu_cores

_MOST_DEVICES = 256
"""Of one node."""
_LARGEST = (1 << 31) - 1
_ALLOCATING = "allocating"
_SEPARATORS = frozenset(",:;[]")

Containers = tuple[tuple[tuple[str, Use], ...], ...]
"""By ask: the UUIDs of its devices, and what it has of each."""


class _DeviceJson(Struct, gc=False):
    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    health: bool = False


_read_devices: Reader[list[_DeviceJson] | None] = Reader(list[_DeviceJson] | None)


def device_notes(
    annotations: Mapping[str, str], labels: Mapping[str, str], capacity: Mapping[str, int]
) -> DeviceNotes | None:
    """What a node with these says of devices; None: nothing."""
    found = {key: text for key, text in annotations.items() if is_register(key)}
    if CHIPS in found:
        found[SERVER_TYPE] = labels.get(SERVER_TYPE, "")
    said = tuple(sorted(found.items()))
    have = tuple((name, capacity[name]) for name in GPUS if capacity.get(name))
    return DeviceNotes(said, have) if said or have else None


def devices(
    family: Family, notes: DeviceNotes, allocatable: Amounts, config: DeviceConfig
) -> tuple[Device, ...]:
    """The devices of a family that a node tells of, unhealthy ones among them."""
    there = dict(allocatable)
    if not all(there.get(name) for name in family.listed):
        return ()
    said = dict(notes.annotations)
    match family.form:
        case Form.GPU_SHARE:
            found = _by_capacity(dict(notes.capacity), said.get(UNHEALTHY, ""))
        case Form.VGPU:
            found = _by_text(said.get(family.register, ""), family, config)
        case Form.HAMI:
            by_software = said.get(HAMI_CORE_NODE, str(config.hami_core).lower()) == "true"
            found = _by_json(said.get(family.register, ""), by_software=by_software)
        case Form.MINDCLUSTER:
            found = npu_cores.chips(said)
    known: dict[str, Device] = {}
    for device in found[:_MOST_DEVICES]:
        if _is_sound(device):
            known.setdefault(device.id, device)
    return tuple(known.values())


def _is_sound(device: Device) -> bool:
    kind = device.kind
    numbers = (device.index, kind.sharers, kind.memory, kind.cores)
    return (
        bool(device.id)
        and not _SEPARATORS.intersection(device.id)
        and all(0 <= number <= _LARGEST for number in numbers)
    )


def _by_capacity(capacity: Mapping[str, int], unhealthy: str) -> list[Device]:
    count, memory = capacity.get(GPU_SHARE.count, 0), capacity.get(GPU_SHARE.memory, 0)
    if not count or not memory:
        return []
    ill = {part.strip() for part in unhealthy.split(",")}
    kind = DeviceKind("", memory // count, _LARGEST)
    return [
        Device(str(at), at, kind, healthy=str(at) not in ill)
        for at in range(min(count, _MOST_DEVICES))
    ]


def _by_text(text: str, family: Family, config: DeviceConfig) -> list[Device]:
    """``UUID,sharers,memory,type,healthy,mode:`` for each device."""
    found = []
    for index, entry in enumerate(text.split(":")):
        parts = entry.split(",")
        if len(parts) < 6:
            continue
        id_, sharers, memory, type_, healthy, mode = parts[:6]
        if family.word_in_type and family.word not in type_:
            continue
        geometries = config.geometries_of(type_) if mode == DeviceMode.MIG else ()
        kind = DeviceKind(
            type_,
            memory=_number(memory),
            sharers=_number(sharers),
            mode=DeviceMode.MIG if geometries else DeviceMode.SOFTWARE,
            geometries=geometries,
        )
        found.append(Device(id_, index, kind, healthy=healthy.lower() in ("true", "t", "1")))
    return found


def _by_json(text: str, *, by_software: bool) -> list[Device]:
    try:
        read = _read_devices(text.encode()) if text else None
    except DecodeError:
        return []
    return [
        Device(
            each.id,
            each.index,
            DeviceKind(
                each.type,
                memory=each.devmem,
                sharers=each.count,
                cores=100 if by_software else each.devcore,
                mode=HAMI_CORE if by_software else "",
            ),
            numa=each.numa,
            healthy=each.health,
        )
        for each in read or ()
    ]


def _number(text: str) -> int:
    """A number without a sign; -1 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1


# --- what pods are told ---------------------------------------------------------------------------


def told(
    family: Family,
    need: DeviceNeed,
    containers: Sequence[Sequence[Share]],
    on: Sequence[Device],
    *,
    node: str,
    now: float,
) -> dict[str, str]:
    """The annotations that tell a pod its devices; ``now`` is seconds since the epoch.

    ``on`` are the devices of the node by position.
    """
    seconds = str(int(now))
    if family.form is Form.GPU_SHARE:
        indexes = ",".join(str(on[share.at].index) for shares in containers for share in shares)
        return {"volcano.sh/gpu-index": indexes, "volcano.sh/predicate-time": str(int(now * 1e9))}
    if family.form is Form.MINDCLUSTER:
        [shares] = containers
        return npu_cores.told(
            [share.use for share in shares], [on[share.at] for share in shares], now=now
        )
    lists = [
        "".join(_entry(family, ask, on[share.at], share.use) for share in shares)
        for ask, shares in zip(need.asks, containers, strict=True)
    ]
    if family.form is Form.VGPU:
        ids = ";".join(lists)
        return {
            "volcano.sh/vgpu-node": node,
            "volcano.sh/vgpu-time": seconds,
            "volcano.sh/vgpu-ids-new": ids,
            "volcano.sh/devices-to-allocate": ids,
            "volcano.sh/bind-phase": _ALLOCATING,
            "volcano.sh/bind-time": seconds,
        }
    ids = "".join(f"{each};" for each in lists)
    return {
        f"hami.io/{family.word}-devices-to-allocate": ids,
        f"hami.io/{family.word}-devices-allocated": ids,
        f"huawei.com/{family.word}": _runtime(family, containers, on),
        "predicate-time": seconds,
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": seconds,
        "hami.io/bind-phase": _ALLOCATING,
        "hami.io/bind-time": seconds,
    }


def _entry(family: Family, ask: Ask, device: Device, use: Use) -> str:
    """``UUID,word,memory,cores:``, the memory as asked for.

    Geometry and position of an instance stand behind its device.
    """
    id_ = device.id
    for slot in use.slots:
        id_ = f"{device.id}[{slot.group}-{slot.position}]"
    return f"{id_},{family.word},{ask.memory_of(device.kind)},{use.cores}:"


def _runtime(family: Family, containers: Sequence[Sequence[Share]], on: Sequence[Device]) -> str:
    said = []
    for share in (share for shares in containers for share in shares):
        device = on[share.at]
        about: dict[str, object] = {"UUID": device.id}
        if device.kind.mode == HAMI_CORE:
            about |= {"memory": share.use.memory, "core": share.use.cores}
        else:
            template = family.template_of(share.use.memory)
            if template is not None and template.name:
                about["temp"] = template.name
        said.append({key: value for key, value in about.items() if value})
    return json.dumps(said, separators=(",", ":"))


def decided(family: Family, need: DeviceNeed, annotations: Mapping[str, str]) -> Containers | None:
    """The devices that annotations of a pod name; None: they are not what the pod needs.

    Its owner may write them too, so they count only where each container has as many as it asks
    for, each once. Whether they are what the node has is for the caller to see.
    """
    match family.form:
        case Form.GPU_SHARE:
            indexes = annotations.get("volcano.sh/gpu-index", "")
            found: list[list[tuple[str, Use]]] = [
                [(part.strip(), Use(1)) for part in indexes.split(",") if part.strip()]
            ]
        case Form.VGPU:
            found = _lists(annotations.get("volcano.sh/vgpu-ids-new", ""))
        case Form.HAMI:
            found = _lists(annotations.get(f"hami.io/{family.word}-devices-allocated", ""))
        case Form.MINDCLUSTER:
            found = [npu_cores.decided(annotations)]
    if len(found) != len(need.asks) or not all(map(_names_enough, need.asks, found)):
        return None
    return tuple(tuple(each) for each in found)


def _names_enough(ask: Ask, found: Sequence[tuple[str, Use]]) -> bool:
    return len(found) == ask.devices == len({id_ for id_, _ in found})


def _lists(text: str) -> list[list[tuple[str, Use]]]:
    found = []
    for part in text.split(";"):
        entries = [each.split(",") for each in part.split(":") if each]
        if entries:
            found.append([_of_entry(entry) for entry in entries if len(entry) >= 4])
    return found


def _of_entry(entry: Sequence[str]) -> tuple[str, Use]:
    id_, slot = _of_id(entry[0])
    slots = frozenset((slot,)) if slot is not None else frozenset()
    return id_, Use(1, _number(entry[2]), _number(entry[3]), slots)


def _of_id(text: str) -> tuple[str, Slot | None]:
    """A UUID, and the instance that stands behind it in brackets."""
    id_, bracket, rest = text.partition("[")
    group, _, position = rest.rstrip("]").rpartition("-")
    return id_, Slot(group, _number(position)) if bracket else None
