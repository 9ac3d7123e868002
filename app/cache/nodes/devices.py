"""The devices that pods share on nodes, reserved places included.

A pod gets its devices when it has a place, and is told when it is bound. After a restart its
annotations tell; those count only where they are what the pod asks for and the node has, as its
owner may write them too. A pod of ours that tells nothing credible is given devices anew, and a
foreign one has none.

Charges are followed lazily, as nothing is asked of them between two snapshots.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from app.cache.nodes.gpu_rules import GpuRules
from app.cache.nodes.said_devices import Charges, charges_of, credible
from app.cache.nodes.usage import NodeUsage
from app.core.placement.devices import Given, Share, assign, on_node
from app.model.device_families import (
    DEFAULT_DEVICES,
    GPU_SHARE,
    NPU_CORES,
    DeviceConfig,
    DeviceSetting,
    DevicesTaken,
    Family,
    GpuShare,
    NodeDevices,
    need_of,
    needs_of,
)
from app.model.devices import UNUSED, Device, DeviceAsk, DeviceNeed
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.node import Node
from app.model.npu_cores import REAL
from app.model.pod import Pod
from app.wire.objects.devices import decided, devices, told


@dataclass(frozen=True, slots=True)
class DeviceOccupant:
    """A pod or slot that may ask for devices.

    ``said`` are the annotations of a pod that is bound, ``ours`` tells whether its devices are for
    us to choose.
    """

    asked: DeviceAsk
    group: GroupKey
    said: Mapping[str, str] | None = None
    ours: bool = True


@dataclass(frozen=True, slots=True)
class _Given:
    """What a pod has of one family, by container and in all."""

    need: DeviceNeed
    containers: tuple[Charges, ...]
    charges: Charges


@dataclass(frozen=True, slots=True)
class _Held:
    node: NodeName
    group: GroupKey
    given: Mapping[str, _Given]


class DeviceUsage:
    """Devices of nodes, and those of holders of charges; ``occupant`` tells of a holder.

    It tells None of one that asks for no devices.
    """

    def __init__(
        self, node_usage: NodeUsage, *, occupant: Callable[[str], DeviceOccupant | None]
    ) -> None:
        self._usage = node_usage
        self._occupant = occupant
        self._setting = DeviceSetting()
        self._families: tuple[Family, ...] = ()
        self.ill_chips: dict[str, frozenset[str]] = {}
        self._listed: dict[NodeName, Mapping[str, tuple[Device, ...]]] = {}
        self._held: dict[str, _Held] = {}
        self._on: dict[NodeName, dict[str, None]] = {}
        self._changed: dict[str, None] = {}
        self._told: dict[NodeName, tuple[NodeDevices, ...]] = {}
        self._stale: set[NodeName] = set()
        self.config = DEFAULT_DEVICES
        self._configs: dict[str, DeviceConfig] = {}
        self._config_map = ""
        self.rules = GpuRules()
        node_usage.moved.append(self._note)

    # --- what counts -----------------------------------------------------------------------------

    def set_setting(self, setting: DeviceSetting) -> bool:
        """Let these families count; returns whether that is news."""
        if setting == self._setting:
            return False
        self._setting = setting
        self._begin_anew()
        return True

    def set_config(self, key: str, config: DeviceConfig | None) -> bool:
        """Take over what a ConfigMap of device plugins says; returns whether it is news.

        ``key`` is its ``namespace/name``, None: it is gone.
        """
        self._configs.pop(key, None)
        if config is not None:
            self._configs[key] = config
        return self.use_config(self._config_map)

    def use_config(self, key: str) -> bool:
        """Let the ConfigMap of that ``namespace/name`` count; returns whether that is news."""
        self._config_map = key
        config = self._configs.get(key, DEFAULT_DEVICES)
        if config == self.config:
            return False
        self.config = config
        self._begin_anew()
        return True

    @property
    def unlisted(self) -> frozenset[str]:
        """The resources that no node lists though pods ask for devices by them."""
        return frozenset(each.percent for each in self._families if each.percent)

    @property
    def locks(self) -> bool:
        """Whether a node is locked while a pod with devices is bound to it."""
        return self._setting.lock

    def set_node(self, node: Node) -> None:
        """Take over what a node says of its devices."""
        if self._families:
            self._list(node)

    def set_chip_health(self, node: str, ill: frozenset[str] | None) -> bool:
        """Take over which chips of a node do not work; returns whether that is news.

        None: nothing tells, so no chip of it counts.
        """
        if ill == self.ill_chips.get(node):
            return False
        self.ill_chips.pop(node, None)
        if ill is not None:
            self.ill_chips[node] = ill
        if (there := self._usage.nodes.get(NodeName(node))) is not None:
            self.set_node(there)
        return True

    def drop_node(self, name: NodeName) -> None:
        """Forget the devices of a node; those of its pods stay until these go."""
        self._listed.pop(name, None)
        self._told.pop(name, None)

    def _begin_anew(self) -> None:
        self._families = self._setting.families(self.config)
        self._held.clear()
        self._on.clear()
        self._listed.clear()
        self._told.clear()
        self._stale.clear()
        if not self._families:
            self._changed.clear()
            return
        self._changed = dict.fromkeys(sorted(self._usage.charges))
        for node in self._usage.nodes.values():
            self._list(node)

    def _list(self, node: Node) -> None:
        found: dict[str, tuple[Device, ...]] = {}
        if node.devices is not None:
            for family in self._families:
                each = devices(family, node.devices, node.allocatable, self.config)
                if family is NPU_CORES:
                    ill, tells = self.ill_chips.get(node.name, ()), node.name in self.ill_chips
                    each = tuple(replace(d, healthy=d.id not in ill) for d in each if tells)
                if each:
                    found[family.name] = each
        if found == self._listed.get(node.name, {}):
            return
        self._listed[node.name] = found
        self._stale.add(node.name)
        for holder in [each for each in self._on.get(node.name, {}) if self._is_void(each)]:
            self._drop(holder, node.name)
        without = self._usage.holders(node.name) - self._on.get(node.name, {}).keys()
        self._changed.update(dict.fromkeys(sorted(without)))

    def _is_void(self, holder: str) -> bool:
        """Whether a place was reserved with a device that is gone, or does not work any more."""
        held, charge = self._held[holder], self._usage.charges.get(holder)
        if charge is None or not charge.reserved:
            return False
        listed = self._listed[held.node]
        works = {
            (name, device.id) for name, each in listed.items() for device in each if device.healthy
        }
        return not works.issuperset(
            (name, id_) for name, given in held.given.items() for id_, _ in given.charges
        )

    # --- what is asked ---------------------------------------------------------------------------

    def needs(self, asked: DeviceAsk | None) -> tuple[tuple[Family, DeviceNeed], ...]:
        """What a pod needs of the families that count."""
        return needs_of(self._families, asked, self._setting.gpu_share)

    def locks_of(self, asked: DeviceAsk | None) -> tuple[str, ...]:
        """The annotations of a node by which it is locked while such a pod is bound to it."""
        found = (family.lock for family, _ in self.needs(asked)) if self.locks else ()
        return tuple(filter(None, found))

    def decision(self, uid: PodUid, *, now: float) -> Mapping[str, str] | None:
        """The annotations that tell a pod with a place its devices; None: it has none yet."""
        self._follow()
        held = self._held.get(uid)
        if held is None:
            return None
        found: dict[str, str] = {}
        for family in self._families:
            given = held.given.get(family.name)
            if given is not None:
                on = self._listed.get(held.node, {}).get(family.name, ())
                at = {device.id: position for position, device in enumerate(on)}
                if any(id_ not in at for shares in given.containers for id_, _ in shares):
                    return None
                shares = [[Share(at[id_], use) for id_, use in each] for each in given.containers]
                found |= told(family, given.need, shares, on, node=held.node, now=now)
        return found

    def nodes(self) -> dict[NodeName, tuple[NodeDevices, ...]]:
        """The devices of each node that has some, and what is taken of them."""
        self._follow()
        for name in self._stale:
            self._told.pop(name, None)
            found = self._node(name)
            if found:
                self._told[name] = found
        self._stale.clear()
        return dict(self._told)

    def taken(self) -> dict[PodUid, tuple[DevicesTaken, ...]]:
        """What pods have of these devices."""
        self._follow()
        found = {}
        for holder, held in self._held.items():
            listed = self._listed.get(held.node, {})
            each = []
            for name, given in held.given.items():
                at = {device.id: number for number, device in enumerate(listed.get(name, ()))}
                charges = tuple((at[id_], use) for id_, use in given.charges if id_ in at)
                each.append(DevicesTaken(name, held.group, charges, given.need.exclusive))
            found[PodUid(holder)] = tuple(each)
        return found

    def _node(self, name: NodeName) -> tuple[NodeDevices, ...]:
        found = []
        for family in self._families:
            listed = self._listed.get(name, {}).get(family.name, ())
            if not listed:
                continue
            used = dict.fromkeys((device.id for device in listed), UNUSED)
            ahead = dict(used)
            groups: dict[str, list[str]] = {device.id: [] for device in listed}
            for holder in self._on.get(name, {}):
                held = self._held[holder]
                given = held.given.get(family.name)
                going = self._is_going(holder)
                for id_, use in given.charges if given is not None else ():
                    if id_ in used:
                        used[id_] = used[id_].plus(use)
                        marks = given.need.exclusive if given is not None else ()
                        groups[id_] += (held.group, *marks)
                        if not going:
                            ahead[id_] = ahead[id_].plus(use)
            found.append(
                NodeDevices(
                    family,
                    listed,
                    tuple(used.values()),
                    tuple(ahead.values()),
                    tuple(tuple(each) for each in groups.values()),
                )
            )
        return tuple(found)

    # --- following charges -----------------------------------------------------------------------

    def _note(self, holder: str) -> None:
        if self._families:
            self._changed[holder] = None

    def _follow(self) -> None:
        """Take up changed charges: what is given back, what pods say, and then what is decided."""
        changed, self._changed = self._changed, {}
        for holder in changed:
            held, charge = self._held.get(holder), self._usage.charges.get(holder)
            if held is not None:
                self._stale.add(held.node)  # it may be about to go
                if charge is None or charge.node != held.node:
                    self._drop(holder, held.node)
        open_: list[tuple[str, NodeName, DeviceOccupant]] = []
        for holder in changed:
            charge = self._usage.charges.get(holder)
            if charge is None or holder in self._held or charge.node not in self._listed:
                continue
            occupant = self._occupant(holder)
            if occupant is not None and not self._recover(holder, charge.node, occupant):
                open_.append((holder, charge.node, occupant))
        for holder, node, occupant in open_:
            if occupant.ours:
                self._decide(holder, node, occupant)

    def _recover(self, holder: str, node: NodeName, occupant: DeviceOccupant) -> bool:
        """Let a pod have what its annotations say, as far as that is credible."""
        if occupant.said is None:
            return False
        given: dict[str, _Given] = {}
        for family, need in self._needs_of_bound(occupant.asked):
            containers = self._said(family, need, node, occupant.said)
            if containers is None:
                return False
            given[family.name] = _Given(need, containers, charges_of(need, containers))
        if given:
            self._hold(holder, node, occupant.group, given)
        return True

    def _said(
        self, family: Family, need: DeviceNeed, node: NodeName, said: Mapping[str, str]
    ) -> tuple[Charges, ...] | None:
        found = decided(family, need, said)
        listed = {each.id: each.kind for each in self._listed[node].get(family.name, ())}
        return None if found is None else credible(need, found, listed)

    def heed(self, pod: Pod) -> None:
        """Take up what a device plugin says that it has given to a pod."""
        held = self._held.get(pod.uid)
        given = None if held is None else held.given.get(NPU_CORES.name)
        if held is None or given is None or REAL not in pod.annotations:
            return
        if held.node not in self._listed:
            return
        containers = self._said(NPU_CORES, given.need, held.node, pod.annotations)
        if containers is not None and containers != given.containers:
            now = _Given(given.need, containers, charges_of(given.need, containers))
            self._held[pod.uid] = replace(held, given={**held.given, NPU_CORES.name: now})
            self._stale.add(held.node)

    def _needs_of_bound(self, asked: DeviceAsk) -> list[tuple[Family, DeviceNeed]]:
        """The needs of a pod that may be older than the choice of what GPUs are given by."""
        found = list(self.needs(asked))
        if GPU_SHARE in self._families and all(family is not GPU_SHARE for family, _ in found):
            for share in GpuShare:
                need = need_of(GPU_SHARE, asked, share)
                if need is not None:
                    found.append((GPU_SHARE, need))
                    break
        return found

    def _decide(self, holder: str, node: NodeName, occupant: DeviceOccupant) -> None:
        """Choose devices for a pod or slot: of all families, or none."""
        here = {each.family.name: each for each in self._node(node)}
        given: dict[str, _Given] = {}
        for family, need in self.needs(occupant.asked):
            there = here.get(family.name)
            if there is None:
                return
            of_node = on_node(there, need, occupant.group)
            found = assign(of_node, need, self._setting.order)
            if not isinstance(found, Given):
                return
            containers = tuple(
                tuple((there.devices[share.at].id, share.use) for share in shares)
                for shares in found.containers
            )
            given[family.name] = _Given(need, containers, charges_of(need, containers))
        if given:
            self._hold(holder, node, occupant.group, given)

    def _hold(
        self, holder: str, node: NodeName, group: GroupKey, given: Mapping[str, _Given]
    ) -> None:
        self._held[holder] = _Held(node, group, given)
        self._on.setdefault(node, {})[holder] = None
        self._stale.add(node)

    def _drop(self, holder: str, node: NodeName) -> None:
        del self._held[holder]
        del self._on[node][holder]
        self._stale.add(node)

    def _is_going(self, holder: str) -> bool:
        charge = self._usage.charges.get(holder)
        return charge is not None and charge.releasing
