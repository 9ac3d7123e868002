"""Volumes: what there is of them, and which are used by pods with a place, node by node.

Every charge of a pod or slot that uses volumes is followed. What is used on a node is counted anew
when a pod comes or goes there, or when something is said of a claim that its pods use.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.cache.nodes.usage import NodeUsage
from app.core.placement.volumes import node_volumes
from app.model.ids import NodeName
from app.model.shape import VolumeAsk
from app.model.volumes import (
    CsiDriver,
    CsiNode,
    NodeVolumes,
    PersistentVolume,
    PodVolumes,
    Storage,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeClaim,
    Volumes,
)


@dataclass(frozen=True, slots=True)
class _Held:
    node: NodeName
    pod: PodVolumes


class VolumeUsage:
    """The storage of the cluster; ``ask_of`` tells the volumes of a holder of a charge.

    ``told`` is called when something is news by which pods may fit that did not fit before.
    """

    def __init__(
        self,
        node_usage: NodeUsage,
        *,
        ask_of: Callable[[str], VolumeAsk | None],
        told: Callable[[], None],
    ) -> None:
        self._usage = node_usage
        self._ask_of = ask_of
        self._tell = told
        self._claims: dict[str, VolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._drivers: dict[str, CsiDriver] = {}
        self._nodes: dict[NodeName, CsiNode] = {}
        self._capacities: dict[str, StorageCapacity] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._known = False
        self._held: dict[str, _Held] = {}
        self._on: dict[NodeName, dict[str, None]] = {}
        self._users: dict[str, set[str]] = {}
        """The holders that use a claim."""
        self._changed: dict[str, None] = {}
        self._stale: set[NodeName] = set()
        self._counted: dict[NodeName, NodeVolumes] = {}
        self._storage: Storage | None = None
        node_usage.moved.append(self._note)

    # --- what the API server says ----------------------------------------------------------------

    def set_known(self, *, known: bool) -> None:
        """Say whether claims can be read; without that nothing is said of volumes."""
        if known is not self._known:
            self._known = known
            self._news()

    def set_claim(self, claim: VolumeClaim) -> None:
        """Add or replace a claim."""
        if self._claims.get(claim.key) != claim:
            self._claims[claim.key] = claim
            self._changed_claim(claim.key)

    def drop_claim(self, key: str) -> None:
        """Forget a claim."""
        if self._claims.pop(key, None) is not None:
            self._changed_claim(key)

    def set_volume(self, volume: PersistentVolume) -> None:
        """Add or replace a volume."""
        before = self._volumes.get(volume.name)
        if before != volume:
            self._volumes[volume.name] = volume
            for key in {volume.claim, before.claim if before is not None else ""}:
                self._changed_claim(key)

    def drop_volume(self, name: str) -> None:
        """Forget a volume."""
        before = self._volumes.pop(name, None)
        if before is not None:
            self._changed_claim(before.claim)

    def set_class(self, storage_class: StorageClass) -> None:
        """Add or replace a StorageClass."""
        if self._classes.get(storage_class.name) != storage_class:
            self._classes[storage_class.name] = storage_class
            self._count_anew()

    def drop_class(self, name: str) -> None:
        """Forget a StorageClass."""
        if self._classes.pop(name, None) is not None:
            self._count_anew()

    def set_driver(self, driver: CsiDriver) -> None:
        """Add or replace a CSIDriver."""
        self._drivers[driver.name] = driver
        self._news()

    def drop_driver(self, name: str) -> None:
        """Forget a CSIDriver."""
        self._drivers.pop(name, None)
        self._news()

    def set_csi_node(self, node: CsiNode) -> None:
        """Add or replace what drivers say of a node."""
        if self._nodes.get(node.name) != node:
            self._nodes[node.name] = node
            self._news()

    def drop_csi_node(self, name: str) -> None:
        """Forget what drivers said of a node."""
        self._nodes.pop(NodeName(name), None)
        self._news()

    def set_capacity(self, capacity: StorageCapacity) -> None:
        """Add or replace what is left of a storage."""
        if self._capacities.get(capacity.key) != capacity:
            self._capacities[capacity.key] = capacity
            self._news()

    def drop_capacity(self, key: str) -> None:
        """Forget what is left of a storage."""
        self._capacities.pop(key, None)
        self._news()

    def set_attachment(self, attachment: VolumeAttachment) -> None:
        """Add or replace what is attached to a node: by that no pod fits that did not before."""
        self._attachments[attachment.name] = attachment
        self._storage = None

    def drop_attachment(self, name: str) -> None:
        """Forget what was attached to a node."""
        if self._attachments.pop(name, None) is not None:
            self._news()

    def _changed_claim(self, key: str) -> None:
        holders = (self._held[each] for each in self._users.get(key, ()))
        self._stale.update(held.node for held in holders)
        self._news()

    def _count_anew(self) -> None:
        self._stale.update(self._on)
        self._news()

    def _news(self) -> None:
        self._storage = None
        self._tell()

    # --- what is asked ---------------------------------------------------------------------------

    def volumes(self) -> Volumes:
        """The storage, and what is used of it."""
        self._follow()
        if self._storage is None:
            self._storage = Storage(
                dict(self._claims),
                dict(self._volumes),
                dict(self._classes),
                dict(self._drivers),
                dict(self._nodes),
                dict(self._capacities),
                dict(self._attachments),
                known=self._known,
            )
        for name in self._stale:
            pods = [self._held[holder].pod for holder in self._on.get(name, ())]
            if pods:
                self._counted[name] = node_volumes(pods, self._storage)
            else:
                self._counted.pop(name, None)
        self._stale.clear()
        return Volumes(self._storage, dict(self._counted))

    # --- following charges -----------------------------------------------------------------------

    def _note(self, holder: str) -> None:
        self._changed[holder] = None

    def _follow(self) -> None:
        changed, self._changed = self._changed, {}
        for holder in changed:
            charge = self._usage.charges.get(holder)
            ask = None if charge is None else self._ask_of(holder)
            if charge is None or ask is None:
                self._drop(holder)
                continue
            pod = PodVolumes(ask, going=charge.releasing, bound=not charge.reserved)
            now = _Held(charge.node, pod)
            if self._held.get(holder) != now:
                self._drop(holder)
                self._hold(holder, now)

    def _hold(self, holder: str, held: _Held) -> None:
        self._held[holder] = held
        self._on.setdefault(held.node, {})[holder] = None
        self._stale.add(held.node)
        for key in held.pod.ask.claims:
            self._users.setdefault(key, set()).add(holder)

    def _drop(self, holder: str) -> None:
        held = self._held.pop(holder, None)
        if held is None:
            return
        self._stale.add(held.node)
        _forget(self._on, held.node, holder)
        for key in held.pod.ask.claims:
            users = self._users[key]
            users.discard(holder)
            if not users:
                del self._users[key]


def _forget(on: dict[NodeName, dict[str, None]], node: NodeName, holder: str) -> None:
    there = on[node]
    del there[holder]
    if not there:
        del on[node]
