"""Nodes as the scheduler sees them."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.model.amounts import Amounts
from app.model.devices import DeviceNotes
from app.model.ids import NodeName
from app.model.load import NodeLoad


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint; ``NoSchedule`` and ``NoExecute`` repel, ``PreferNoSchedule`` only scores."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class of devices, and the resources by whose names pods may ask for them.

    ``selectors`` are CEL expressions that each device of the class satisfies.
    """

    name: str
    resources: frozenset[str]
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node; not ``ready`` means it takes no new pods, and only what runs there counts."""

    name: NodeName
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    allocatable: Amounts
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    images: Mapping[str, int] | None = None
    """Image name -> size in bytes; None when the node reports none."""
    devices: DeviceNotes | None = None
    """The notes of the node about devices that pods share; None: it has none."""
    load: NodeLoad | None = None
    """The load that the annotation of the node tells; None: it tells nothing that can be read."""

    @property
    def is_cordoned(self) -> bool:
        """Whether the node is ready and takes only pods that tolerate its cordon."""
        return self.ready and self.unschedulable

    def may_take_more(self, before: "Node | None") -> bool:
        """Whether pods may fit that did not fit as it was ``before`` (None: it was not there).

        Were nothing running there, and whatever its state is.
        """
        if before is None or (self.labels, self.taints) != (before.labels, before.taints):
            return True
        if self.devices != before.devices:
            return True
        had = dict(before.allocatable)
        return any(amount > had.get(name, 0) for name, amount in self.allocatable)

    def places_like(self, other: "Node") -> bool:
        """Whether every placement rule sees the same node (usage apart)."""
        return (
            self.labels == other.labels
            and self.allocatable == other.allocatable
            and self.taints == other.taints
            and self.unschedulable == other.unschedulable
            and self.ready == other.ready
            and self.images == other.images
            and self.devices == other.devices
        )
