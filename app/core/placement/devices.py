"""Which devices of a node the containers of a pod get, or what it lacks.

Containers that stay get their devices at the same time; an init container that ends before the next
one begins takes what is free at its moment, and rather a device that its pod has later anyway. A
device is charged with the largest moment of the pod.

A container takes the first devices that do in the order of the policy, as in Volcano. Where later
containers then get nothing, others are tried, so a pod is refused only if there is no way at all,
or none among the first :data:`MOST_TRIES`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from app.model.device_families import NodeDevices
from app.model.devices import (
    UNUSED,
    Ask,
    DeviceKind,
    DeviceNeed,
    DeviceOrder,
    Geometry,
    Part,
    Slot,
    Use,
)
from app.model.ids import GroupKey
from app.model.npu_cores import groups_allow

MOST_TRIES = 2_000
"""Ways to give a container its devices that are tried for one pod on one node."""


@dataclass(frozen=True, slots=True)
class OfNode:
    """The devices of a node by position: what they are, what is taken, which ones may be used."""

    kinds: tuple[DeviceKind, ...]
    used: tuple[Use, ...]
    usable: tuple[bool, ...]


def on_node(
    node: NodeDevices, need: DeviceNeed, group: GroupKey | None, *, ahead: bool = False
) -> OfNode:
    """The devices of a node as a pod of that group finds them.

    ``ahead``: once terminating pods are gone.
    """
    usable = tuple(
        device.healthy
        and need.wanted.takes_id(device.id)
        and not (need.spread and group is not None and group in groups)
        and (bool(device.kind.geometries) or not any(m in groups for m in need.exclusive))
        for device, groups in zip(node.devices, node.groups, strict=True)
    )
    used = node.ahead if ahead else node.used
    return OfNode(tuple(device.kind for device in node.devices), used, usable)


class Share(NamedTuple):
    """What a container gets of the device at a position."""

    at: int
    use: Use


@dataclass(frozen=True, slots=True)
class Given:
    """``containers`` has the shares of each ask, ``charges`` what each device is charged."""

    containers: tuple[tuple[Share, ...], ...]
    charges: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A container asks for devices of which the node has only ``found`` that would do.

    ``memory``, ``cores``, ``sharers``, ``cpus`` and ``video`` are what is free, by device, of those
    it may use.
    """

    ask: Ask
    found: int
    memory: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    sharers: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    video: tuple[int, ...] = ()


@lru_cache(maxsize=8_192)
def assign(node: OfNode, need: DeviceNeed, order: DeviceOrder) -> Given | Lacking:
    """What becomes of a pod on a node with these devices."""
    search = _Search(node, need, order)
    if not need.flaw and search.goes_on(0):
        return search.given()
    return search.lacking()


class _Search:
    """The choice of devices, ask after ask: those that stay first, then the others."""

    def __init__(self, node: OfNode, need: DeviceNeed, order: DeviceOrder) -> None:
        self._node = node
        self._need = need
        self._order = DeviceOrder.BINPACK if need.packed else order
        self._at = [
            at
            for at, (kind, usable) in enumerate(zip(node.kinds, node.usable, strict=True))
            if usable and need.wanted.takes_kind(kind)
        ]
        asks = need.asks
        self._turns = sorted(range(len(asks)), key=lambda number: (asks[number].init, number))
        self._classes = {kind: number for number, kind in enumerate(dict.fromkeys(node.kinds))}
        self._chosen: dict[int, tuple[Share, ...]] = {}
        self._tries = 0
        self._failed: set[tuple[object, ...]] = set()
        self._stuck: tuple[int, Lacking] | None = None
        """The furthest turn at which nothing did, and what lacked there."""

    def goes_on(self, turn: int) -> bool:
        """Give devices to the asks from that turn on; False: there is no way."""
        if turn == len(self._turns):
            return True
        state = self._state(turn) if turn else ()
        if state in self._failed:
            return False
        number = self._turns[turn]
        ask = self._need.asks[number]
        candidates = self._candidates(number, ask)
        found = len({share.at for share in candidates})
        if found < ask.devices:
            if self._stuck is None or self._stuck[0] < turn:
                self._stuck = turn, self._lacking(number, ask, found)
            return False
        for shares in combinations(candidates, ask.devices):
            self._tries += 1
            if self._tries > MOST_TRIES:
                return False
            if len({share.at for share in shares}) < len(shares):
                continue
            self._chosen[number] = shares
            if self.goes_on(turn + 1):
                return True
            del self._chosen[number]
        self._failed.add(state)
        return False

    def given(self) -> Given:
        """What was chosen."""
        shares = tuple(self._chosen[number] for number in range(len(self._need.asks)))
        touched = {share.at: None for each in shares for share in each}
        return Given(shares, tuple(Share(at, self._peak(at)) for at in touched))

    def lacking(self) -> Lacking:
        """What lacked where the search came furthest."""
        if self._stuck is not None:
            return self._stuck[1]
        return self._lacking(0, self._need.asks[0], 0)

    def _lacking(self, number: int, ask: Ask, found: int) -> Lacking:
        free = [(self._node.kinds[at], self._base(at, number, ask)) for at in self._at]
        return Lacking(
            ask,
            found,
            tuple(kind.memory - base.memory for kind, base in free),
            tuple(kind.cores - base.cores for kind, base in free),
            tuple(kind.sharers - base.sharers for kind, base in free),
            tuple(kind.cpus - base.cpus for kind, base in free),
            tuple(kind.video - base.video for kind, base in free),
        )

    # --- one container ---------------------------------------------------------------------------

    def _candidates(self, number: int, ask: Ask) -> list[Share]:
        """The devices that do, those to be taken first in front."""
        ranked = []
        for at in self._at:
            base = self._base(at, number, ask)
            if self._need.apart and not ask.init and base is not self._node.used[at]:
                continue
            peak = self._peak(at)
            uses = shares_of(self._node.kinds[at], base, ask, beside=peak.slots)
            for way, use in enumerate(uses):
                more = self._more(at, base, use, peak) if ask.init else 0
                less = is_less(ask, use)
                ranked.append(((less, more, *self._rank(at, base), way), Share(at, use)))
        ranked.sort(key=lambda each: each[0])
        return [share for _, share in ranked]

    def _rank(self, at: int, base: Use) -> tuple[int, int]:
        match self._order:
            case DeviceOrder.BINPACK:
                return -_filled(self._node.kinds[at], base), at
            case DeviceOrder.SPREAD:
                return base.sharers, at
        return -at, 0

    def _more(self, at: int, base: Use, use: Use, peak: Use) -> int:
        """Whether the device has to be charged more for an init container than it is by now."""
        own = base.plus(use).minus(self._node.used[at])
        return int(own.peak(peak) != peak)

    def _base(self, at: int, number: int, ask: Ask) -> Use:
        """What is taken of a device when a container starts."""
        base = self._node.used[at]
        for other, shares in self._chosen.items():
            if not self._need.asks[other].init and (not ask.init or other < number):
                for share in shares:
                    if share.at == at:
                        base = base.plus(share.use)
        return base

    def _peak(self, at: int) -> Use:
        """The largest moment of the pod on a device, as far as it was chosen."""
        return peak_of(
            (self._need.asks[number], share.use)
            for number in sorted(self._chosen)
            for share in self._chosen[number]
            if share.at == at
        )

    def _state(self, turn: int) -> tuple[object, ...]:
        """What the rest of the search depends on: devices in equal states are exchangeable."""
        states = sorted(
            (
                self._classes[self._node.kinds[at]],
                _plain(self._node.used[at]),
                tuple(
                    (number, _plain(share.use))
                    for number in sorted(self._chosen)
                    for share in self._chosen[number]
                    if share.at == at
                ),
            )
            for at in self._at
        )
        return turn, tuple(states)


def peak_of(shares: Iterable[tuple[Ask, Use]]) -> Use:
    """What a device is charged for containers of a pod, in the order in which they start."""
    staying = peak = UNUSED
    for ask, use in shares:
        if ask.init:
            peak = peak.peak(staying.plus(use))
        else:
            staying = staying.plus(use)
    return peak.peak(staying)


def shares_of(
    kind: DeviceKind, base: Use, ask: Ask, *, beside: frozenset[Slot] = frozenset()
) -> list[Use]:
    """What a container may get of a device of which ``base`` is taken, the best first.

    ``beside`` are instances that its pod has at other times.
    """
    if ask.parts:
        return [_part(part) for part in ask.parts if _has_room(kind, base, part)]
    memory = ask.memory_of(kind)
    if base.sharers >= kind.sharers or memory > kind.memory - base.memory:
        return []
    if ask.cores > kind.cores - base.cores:
        return []
    alone = ask.whole or (ask.cores and ask.cores == kind.cores)
    if alone and base.sharers:
        return []
    if kind.cores and base.cores == kind.cores:  # another container has the device to itself
        return []
    if not kind.geometries:
        return [Use(1, memory, ask.cores)]
    cut = {slot.group for slot in base.slots | beside}
    slots = (
        _instance(kind, geometry, memory, base=base, beside=beside)
        for geometry in kind.geometries
        if not cut or geometry.group in cut
    )
    return [
        Use(1, size, ask.cores, frozenset((slot,)))
        for size, slot in (found for found in slots if found is not None)
    ]


def is_less(ask: Ask, use: Use) -> bool:
    """Whether that is a smaller part of a chip than the container gets where there is room."""
    return bool(ask.parts) and use.cpus < ask.parts[0].cpus


def _part(part: Part) -> Use:
    return Use(1, cores=part.cores, cpus=part.cpus, video=part.video)


def _has_room(kind: DeviceKind, base: Use, part: Part) -> bool:
    return (
        part.cores <= kind.cores - base.cores
        and part.cpus <= kind.cpus - base.cpus
        and part.video <= kind.video - base.video
        and groups_allow(part, len({slot.group for slot in base.slots}))
    )


def _instance(
    kind: DeviceKind, geometry: Geometry, memory: int, *, base: Use, beside: frozenset[Slot]
) -> tuple[int, Slot] | None:
    """The smallest instance that does, rather one that the pod has at another time."""
    best: tuple[int, bool, Slot] | None = None
    first = 0
    for instance in geometry.instances:
        if memory <= instance.memory <= kind.memory - base.memory:
            for position in range(first, first + instance.number):
                slot = Slot(geometry.group, position)
                here = (instance.memory, slot not in beside, slot)
                if slot not in base.slots and (best is None or here < best):
                    best = here
        first += instance.number
    return None if best is None else (best[0], best[2])


def _filled(kind: DeviceKind, use: Use) -> int:
    """By what a device is the fuller: its memory, or the cores where nothing is said of memory."""
    return use.memory if kind.memory else use.cores


def _plain(use: Use) -> tuple[int, int, int, int, int, tuple[Slot, ...]]:
    return use.sharers, use.memory, use.cores, use.cpus, use.video, tuple(sorted(use.slots))


def total_score(node: OfNode, need: DeviceNeed, given: Given, order: DeviceOrder) -> float:
    """How well that packs, or spreads, 0 to 100 for each device that a container gets.

    Nothing for a smaller part of a chip than there is elsewhere.
    """
    packs = need.packed or order is DeviceOrder.BINPACK
    score = 0.0
    for ask, share in _each(need, given.containers):
        kind, used = node.kinds[share.at], node.used[share.at]
        most = kind.memory or kind.cores
        if packs and most and not is_less(ask, share.use):
            score += 100 * (_filled(kind, used) + _filled(kind, share.use)) / most
        elif not packs and order is DeviceOrder.SPREAD and not used.sharers:
            score += 100
    return score


def _each(need: DeviceNeed, containers: Sequence[Sequence[Share]]) -> Iterator[tuple[Ask, Share]]:
    for ask, shares in zip(need.asks, containers, strict=True):
        yield from ((ask, share) for share in shares)
