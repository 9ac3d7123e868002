"""What pods say of their devices, as far as that is credible, and what devices are charged for it.

The owner of a pod may write its annotations too. They count where they are what the pod asks for,
and the node has those devices.
"""

from collections.abc import Iterable, Mapping

from app.core.placement.devices import peak_of
from app.model.devices import Ask, DeviceKind, DeviceNeed, Use

Charges = tuple[tuple[str, Use], ...]
"""Devices by UUID, and how much of each."""


def charges_of(need: DeviceNeed, containers: Iterable[Charges]) -> Charges:
    """What devices are charged for the containers of a pod, which have these."""
    by_device: dict[str, list[tuple[Ask, Use]]] = {}
    for ask, shares in zip(need.asks, containers, strict=True):
        for id_, use in shares:
            by_device.setdefault(id_, []).append((ask, use))
    return tuple((id_, peak_of(shares)) for id_, shares in by_device.items())


def credible(
    need: DeviceNeed, said: tuple[Charges, ...], kinds: Mapping[str, DeviceKind]
) -> tuple[Charges, ...] | None:
    """What each container has of which device; None: it is not what the pod asks for."""
    found = []
    for ask, shares in zip(need.asks, said, strict=True):
        uses = []
        for id_, use in shares:
            kind = kinds.get(id_)
            checked = None if kind is None else _checked(ask, kind, use)
            if checked is None:
                return None
            uses.append((id_, checked))
        found.append(tuple(uses))
    return tuple(found)


def _checked(ask: Ask, kind: DeviceKind, use: Use) -> Use | None:
    if ask.parts:
        fits = any((use.cores, use.cpus, use.video) == part[1:] for part in ask.parts)
        return use if fits else None
    memory = ask.memory_of(kind)
    if not kind.geometries:
        return Use(1, memory, ask.cores) if not use.slots else None
    for slot in use.slots:
        for geometry in kind.geometries:
            size = geometry.memory_at(slot.position) if geometry.group == slot.group else None
            if size is not None and size >= memory:
                return Use(1, size, ask.cores, use.slots)
    return None
