"""The devices that ResourceSlices offer, and which CEL expressions they satisfy."""

from collections.abc import Iterable, Mapping

from app.model.amounts import DEVICE_CLASS, LARGEST, OF_CLASS
from app.model.device_slices import DeviceSlice, PoolDevice
from app.wire.device_selectors import holds


class DevicePools:
    """ResourceSlices by name; of each pool the slices of its latest generation count."""

    def __init__(self) -> None:
        self.slices: dict[str, DeviceSlice] = {}
        self._devices: tuple[PoolDevice, ...] | None = None
        self._incomplete: frozenset[tuple[str, str]] = frozenset()
        self._satisfying: dict[str, frozenset[int]] = {}

    def set_slice(self, slice_: DeviceSlice) -> bool:
        """Add or replace a ResourceSlice; returns whether it offers something else than before."""
        if self.slices.get(slice_.name) == slice_:
            return False
        self.slices[slice_.name] = slice_
        self._devices = None
        return True

    def drop_slice(self, name: str) -> bool:
        """Forget a ResourceSlice; returns whether it was known."""
        self._devices = None
        return self.slices.pop(name, None) is not None

    def devices(self) -> tuple[PoolDevice, ...]:
        """All devices, the same object until slices change."""
        if self._devices is None:
            self._gather()
        return self._devices or ()

    @property
    def incomplete(self) -> frozenset[tuple[str, str]]:
        """Drivers and pools of which slices are still to come, as of the last ``devices()``."""
        return self._incomplete

    def satisfying(self, expressions: Iterable[str]) -> Mapping[str, frozenset[int]]:
        """The positions in ``devices()`` that satisfy each expression; an empty one: all."""
        devices = self.devices()
        found = {}
        for each in expressions:
            if each not in self._satisfying:
                self._satisfying[each] = frozenset(
                    at for at, device in enumerate(devices) if not each or holds(each, device)
                )
            found[each] = self._satisfying[each]
        return found

    def offered(self, classes: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        """What there is of each class, whose expressions are given: devices, and their capacities.

        The names are those by which queues are limited.
        """
        found: dict[str, int] = {}
        devices = self.devices()
        for name, expressions in classes.items():
            of_class = self.satisfying(expressions).values()
            at = frozenset(range(len(devices))).intersection(*of_class)
            found[f"{DEVICE_CLASS}{name}"] = len(at)
            for device in (devices[position] for position in at):
                for dimension, capacity in device.capacity:
                    key = f"{dimension}{OF_CLASS}{name}"
                    found[key] = min(found.get(key, 0) + capacity.amount, LARGEST)
        return found

    def _gather(self) -> None:
        latest: dict[tuple[str, str], int] = {}
        for each in self.slices.values():
            pool = each.driver, each.pool
            latest[pool] = max(latest.get(pool, each.generation), each.generation)
        current = [
            each
            for _, each in sorted(self.slices.items())
            if each.generation == latest[each.driver, each.pool]
        ]
        seen: dict[tuple[str, str], int] = {}
        for each in current:
            seen[each.driver, each.pool] = seen.get((each.driver, each.pool), 0) + 1
        self._incomplete = frozenset(
            (each.driver, each.pool)
            for each in current
            if seen[each.driver, each.pool] != each.slices
        )
        unique = {device.id: device for each in current for device in each.devices}
        self._devices = tuple(unique.values())
        self._satisfying.clear()
