"""Volumes of pods: what pods claim, which volumes there are, and what nodes can attach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.model.ids import NO_NODE, NodeName
from app.model.shape import ClaimSpec, LabelSelector, NodeTerm, Requirement, VolumeAsk

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes an administrator makes."""
ONE_POD: Final = "ReadWriteOncePod"

VolumeId = tuple[str, str]
"""The CSI driver of a volume, and its name there."""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim; ``key`` is ``namespace/name``.

    ``volume`` is the volume that the claim names, ``bound`` tells whether it has that for good.
    ``lost``: its volume is gone. ``selected`` is the node that a volume is being made for.
    """

    key: str
    spec: ClaimSpec
    volume: str = ""
    bound: bool = False
    lost: bool = False
    deleting: bool = False
    selected: NodeName = NO_NODE

    @property
    def is_for_one_pod(self) -> bool:
        """Whether one pod of the cluster may use it at a time."""
        return ONE_POD in self.spec.modes


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume; ``size`` in bytes.

    ``terms`` are its node affinity (None: it has none), ``zones`` its labels that name zones and
    regions, with their values. ``id`` is None for a volume of no CSI driver. ``claim`` is the key
    of the claim that it is kept for; ``available``: it waits for one.
    """

    name: str
    storage_class: str = ""
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    id: VolumeId | None = None
    claim: str = ""
    available: bool = False
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass; ``waits``: its claims get volumes once a pod that uses them has a node.

    ``topologies`` are alternatives (none: volumes can be made for every node).
    """

    name: str
    provisioner: str
    waits: bool = False
    topologies: tuple[tuple[Requirement, ...], ...] = ()
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class CsiNode:
    """What CSI drivers say of a node, by driver.

    ``limits``: how many volumes can be attached; drivers without a limit are not there.
    ``segments``: the labels of nodes that tell from where a volume can be reached.
    """

    name: NodeName
    limits: tuple[tuple[str, int], ...] = ()
    segments: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """A CSIDriver; ``tells_capacity``: it says how much storage is left where."""

    name: str
    tells_capacity: bool = False


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """What a driver has left for volumes of a class, on the nodes that ``nodes`` selects; in bytes.

    ``nodes`` None selects no node. ``left`` None: it does not say; ``largest``: of one volume.
    """

    key: str
    storage_class: str
    nodes: LabelSelector | None
    left: int | None = None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A VolumeAttachment: the PersistentVolume called ``volume`` is, or is being, attached there.

    A volume stays attached for a while after the last pod that used it has gone. ``volume`` empty:
    the volume is inside a pod.
    """

    name: str
    node: NodeName
    volume: str


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The storage of the cluster: claims by key; volumes, classes, attachments and so on by name.

    ``known``: False while claims cannot be read; then nothing is known of volumes.
    """

    claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    drivers: Mapping[str, CsiDriver] = field(default_factory=dict)
    nodes: Mapping[NodeName, CsiNode] = field(default_factory=dict)
    capacities: Mapping[str, StorageCapacity] = field(default_factory=dict)
    attachments: Mapping[str, VolumeAttachment] = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """A pod with a place uses volumes.

    ``going``: it terminates. ``bound``: it is bound to its node, and so are its claims by then.
    """

    ask: VolumeAsk
    going: bool = False
    bound: bool = True


class Users(NamedTuple):
    """How many pods with a place use something: ``now``, and once pods that terminate are gone."""

    now: int = 0
    ahead: int = 0

    def plus(self, other: "Users") -> "Users":
        """Both together."""
        return Users(self.now + other.now, self.ahead + other.ahead)

    def minus(self, other: "Users") -> "Users":
        """The users that are left without ``other``."""
        return Users(self.now - other.now, self.ahead - other.ahead)


@dataclass(frozen=True, slots=True, eq=False)
class NodeVolumes:
    """What pods with a place on a node use.

    ``attached``: volumes of CSI drivers; ``own``: how many were made for single pods, by driver.
    ``claims``: by key, those that are not bound yet, or that one pod may use at a time.
    ``to_make``: claims that are made for single pods and not bound yet, with how many use each.
    """

    attached: Mapping[VolumeId, Users] = field(default_factory=dict)
    own: Mapping[str, Users] = field(default_factory=dict)
    claims: Mapping[str, Users] = field(default_factory=dict)
    to_make: tuple[tuple[ClaimSpec, Users], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Volumes:
    """The storage of the cluster, and what is used of it on nodes that have some in use."""

    storage: Storage = Storage()
    on_nodes: Mapping[NodeName, NodeVolumes] = field(default_factory=dict)


NO_VOLUMES: Final = Volumes()
