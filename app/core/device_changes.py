"""Changes of what pods ask of shared devices that might let a waiting gang run now.

An amount is the largest one with which the devices alone would do for the members that the gang
lacks, and then smaller ones: what else nodes lack is the matter of the planner.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.placement.devices import Given, OfNode, assign, on_node
from app.model.amounts import amounts
from app.model.device_families import (
    CHOOSING,
    USE_TYPES,
    DeviceSetting,
    Family,
    Form,
    need_of,
    needs_of,
)
from app.model.devices import WHOLE, ContainerLimits, DeviceAsk, DeviceKind, DeviceNeed, Use
from app.model.gang import Gang
from app.model.resources import ResourceAxis
from app.model.shape import PodShape
from app.model.snapshot import Snapshot

MOST_AMOUNTS: Final = 3
"""Amounts of one resource that are told at most."""
MOST_TYPES: Final = 4
"""Types of devices that are told at most."""
_MOST_PARTS: Final = 16
"""Equal parts of what a device has free that are looked at."""


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """``text`` is what to do, ``changed`` makes it of a shape.

    ``lowers`` is the resource of which pods ask for less; empty: they take more devices than they
    did.
    """

    text: str
    changed: Callable[[PodShape], PodShape]
    lowers: str = ""


def device_changes(
    snapshot: Snapshot, gang: Gang, setting: DeviceSetting
) -> Iterator[DeviceChange]:
    """Changes of the devices that members of ``gang`` ask for: first less of them, then others."""
    families, share = setting.families(snapshot.device_config), setting.gpu_share
    asking = dict.fromkeys(task.shape.devices for task in gang.waiting)
    for asked in asking:
        if asked is None:
            continue
        count = sum(task.shape.devices == asked for task in gang.waiting)
        lacking = min(count, max(gang.min_member - gang.counts.ready, 1))
        for family, need in needs_of(families, asked, share):
            nodes = _nodes(snapshot, gang, family, need)
            looking = _Looking(setting, family, need, asked, nodes, lacking, snapshot.axis)
            yield from looking.less()
            yield from looking.others()


def _nodes(
    snapshot: Snapshot, gang: Gang, family: Family, need: DeviceNeed
) -> Mapping[OfNode, int]:
    """The devices of the nodes that take pods, and how many nodes have the same."""
    return Counter(
        on_node(each, need, gang.key)
        for node in snapshot.table.nodes
        if node.ready and not node.unschedulable
        for each in snapshot.devices.get(node.name, ())
        if each.family.name == family.name
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Looking:
    """What pods that ``asked`` need of a family that ``nodes`` have: ``lacking`` have no place."""

    setting: DeviceSetting
    family: Family
    need: DeviceNeed
    asked: DeviceAsk
    nodes: Mapping[OfNode, int]
    lacking: int
    axis: ResourceAxis

    def less(self) -> Iterator[DeviceChange]:
        """Less memory of each device, fewer cores of it, fewer devices."""
        family, each = self.family, f"of each {self.family.unit}"
        for amount in self._that_do(family.memory, self._memory()):
            told = each if amount % 1024 else f"{each}, which are {amount // 1024} GiB"
            yield self._ask(family.memory, amount, told)
        for amount in self._that_do(family.percent, self._percents()):
            yield self._ask(family.percent, amount, each)
        for amount in self._that_do(family.cores, self._cores()):
            yield self._ask(family.cores, amount, each)
        fewer = range(1, max(ask.devices for ask in self.need.asks))
        for amount in self._that_do(family.count, fewer):
            yield self._ask(family.count, amount, "per container")

    def others(self) -> Iterator[DeviceChange]:
        """Devices of another type, and each annotation that keeps pods from some left out."""
        said = self.asked.annotations
        wanted = self.need.wanted.types
        types = sorted({kind.type for node in self.nodes for kind in node.kinds}) if wanted else ()
        refused = [each for each in types if not any(word in each.upper() for word in wanted)]
        for type_ in refused[:MOST_TYPES]:
            also = tuple(
                (key, f"{text},{type_}" if key == USE_TYPES else text) for key, text in said
            )
            yield self._say(f"allow the type {type_} too (annotation {USE_TYPES})", also)
        for key, text in said:
            if key in CHOOSING:
                left = tuple(pair for pair in said if pair[0] != key)
                yield self._say(f"leave out the annotation {key}: {text}", left)

    # --- amounts that may do ---------------------------------------------------------------------

    def _memory(self) -> Iterable[int]:
        """MiB; of chips that are given in parts the memory of a part."""
        asks = [ask for ask in self.need.asks if not ask.whole and ask.percent in (None, WHOLE)]
        if self.family.form is Form.HAMI and not self.need.wanted.mode:
            tried = {template.memory for template in self.family.templates}
        else:
            tried = self._parts(lambda kind, use: kind.memory - use.memory)
        if any(ask.percent == WHOLE for ask in asks):
            return tried
        return _below(tried, max((ask.memory for ask in asks), default=0))

    def _percents(self) -> Iterable[int]:
        asked = [dict(each.limits).get(self.family.percent, 0) for each in self.asked.containers]
        tried = self._parts(lambda kind, use: WHOLE * (kind.memory - use.memory) // kind.memory)
        return _below(tried, min(max(asked), WHOLE))

    def _cores(self) -> Iterable[int]:
        tried = self._parts(lambda kind, use: min(kind.cores - use.cores, kind.cores - 1))
        return _below(tried, max(ask.cores for ask in self.need.asks))

    def _names(self, resource: str) -> bool:
        return any(resource in dict(each.limits) for each in self.asked.containers)

    def _parts(self, free: Callable[[DeviceKind, Use], int]) -> set[int]:
        """What devices have free that pods may use, and equal parts of it."""
        there = {
            free(kind, use)
            for node in self.nodes
            for kind, use, usable in zip(node.kinds, node.used, node.usable, strict=True)
            if usable and kind.memory and self.need.wanted.takes_kind(kind)
        }
        return {amount // parts for amount in there for parts in range(1, _MOST_PARTS + 1)}

    def _that_do(self, resource: str, tried: Iterable[int]) -> Sequence[int]:
        """The largest of the amounts with which the devices do, the largest first.

        None of a resource that neither nodes nor pods name: kube-scheduler would find no node.
        """
        if resource not in self.axis.index and not self._names(resource):
            return ()
        amounts_tried = sorted((each for each in tried if each > 0), reverse=True)
        first = bisect_left(amounts_tried, True, key=lambda each: self._does(resource, each))
        return amounts_tried[first : first + MOST_AMOUNTS]

    def _does(self, resource: str, amount: int) -> bool:
        """Whether the devices do for the members that lack them when these ask for no more."""
        need = need_of(self.family, self._less(resource, amount), self.setting.gpu_share)
        if need is None or need.flaw:
            return False
        lacking = self.lacking
        for node, count in self.nodes.items():
            lacking -= count * self._takes(node, need, most=-(-lacking // count))
            if lacking <= 0:
                return True
        return False

    def _takes(self, node: OfNode, need: DeviceNeed, *, most: int) -> int:
        """How many pods a node with these devices takes."""
        apart = need.spread or bool(need.exclusive)
        for number in range(most):
            found = assign(node, need, self.setting.order)
            if not isinstance(found, Given):
                return number
            used, usable = list(node.used), list(node.usable)
            for at, use in found.charges:
                used[at] = used[at].plus(use)
                usable[at] = usable[at] and not apart
            node = OfNode(node.kinds, tuple(used), tuple(usable))
        return most

    # --- the changes -----------------------------------------------------------------------------

    def _less(self, resource: str, amount: int) -> DeviceAsk:
        limited = (
            _limited(each, resource, amount, family=self.family) for each in self.asked.containers
        )
        return replace(self.asked, containers=tuple(limited))

    def _ask(self, resource: str, amount: int, of: str) -> DeviceChange:
        text = f"ask for {resource} {amount} {of}"
        return DeviceChange(text, self._with(self._less(resource, amount)), resource)

    def _say(self, text: str, annotations: tuple[tuple[str, str], ...]) -> DeviceChange:
        said = replace(self.asked, annotations=annotations)
        return DeviceChange(text, self._with(said))

    def _with(self, asked: DeviceAsk) -> Callable[[PodShape], PodShape]:
        before = self.asked

        def changed(shape: PodShape) -> PodShape:
            if shape.devices != before:
                return shape
            requests = dict(shape.requests)
            counted = self.family.count in requests or self.family.memory in requests
            for resource in (self.family.count, self.family.memory, self.family.cores):
                amount = _requested(asked, resource)
                if counted and amount:
                    requests[resource] = amount
            return replace(shape, devices=asked, requests=amounts(requests))

        return changed


def _below(tried: Iterable[int], most: int) -> set[int]:
    return {amount for amount in tried if amount < most}


def _limited(
    container: ContainerLimits, resource: str, amount: int, *, family: Family
) -> ContainerLimits:
    """The container with no more of ``resource``; memory that it did not limit it limits now."""
    limits = dict(container.limits)
    of_all = resource == family.memory and family.count in limits and family.percent not in limits
    if resource in limits or of_all:
        limits[resource] = min(limits.get(resource) or amount, amount)
    return replace(container, limits=tuple(sorted(limits.items())))


def _requested(asked: DeviceAsk, resource: str) -> int:
    """What the pod requests, as Kubernetes counts containers that end before others begin."""
    staying = most = 0
    for container in asked.containers:
        amount = dict(container.limits).get(resource, 0)
        if container.init:
            most = max(most, staying + amount)
        else:
            staying += amount
    return max(most, staying)
