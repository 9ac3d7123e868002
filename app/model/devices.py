"""Devices of nodes that pods share, such as GPUs, and what pods ask of them.

A device has memory (in the units of its family, mostly MiB), cores (percent of a GPU) and a number
of containers that may share it. One that is cut into *instances* (MIG) gives each container an
instance of one of its *geometries*; what is in use at a time is of one geometry. A chip of which
containers get *parts* by template has AI cores, AI CPUs and units that process video instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

ALL_CORES: Final = 100
WHOLE: Final = 100
"""Percent of a device's memory."""


class Instance(NamedTuple):
    """``number`` equal instances of a geometry, with so much memory each."""

    name: str
    memory: int
    number: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """A way to cut a device: a position is the number of an instance, counted over all of them."""

    group: str
    instances: tuple[Instance, ...]

    def memory_at(self, position: int) -> int | None:
        """The memory of the instance there; None: there is none."""
        for instance in self.instances:
            if 0 <= position < instance.number:
                return instance.memory
            position -= instance.number
        return None


class Slot(NamedTuple):
    """An instance of a device that is in use: its geometry and its position there.

    Of a part of a chip it is the group of cores that it lies in, and the number of the part.
    """

    group: str
    position: int


class Part(NamedTuple):
    """A part of a chip, by the name of its template; the whole chip has no name.

    ``video`` are the shares that it has of the units that process video (DVPP).
    """

    name: str
    cores: int
    cpus: int
    video: int


class DeviceMode(StrEnum):
    """How containers are kept apart on a device."""

    SOFTWARE = "hami-core"
    MIG = "mig"


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """What a device is, whichever it is: devices of equal kinds serve equally.

    ``geometries`` are those that it may be cut into; none: it is not cut. ``cpus`` are AI CPUs, and
    ``video`` shares of the units that process video.
    """

    type: str
    memory: int
    sharers: int
    cores: int = ALL_CORES
    mode: str = ""
    geometries: tuple[Geometry, ...] = ()
    cpus: int = 0
    video: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a node; ``id`` is its UUID, ``index`` its number there."""

    id: str
    index: int
    kind: DeviceKind
    numa: int = 0
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class Use:
    """What is taken of a device."""

    sharers: int = 0
    memory: int = 0
    cores: int = 0
    slots: frozenset[Slot] = frozenset()
    cpus: int = 0
    video: int = 0

    def plus(self, other: "Use") -> "Use":
        """Both together."""
        return Use(
            self.sharers + other.sharers,
            self.memory + other.memory,
            self.cores + other.cores,
            self.slots | other.slots,
            self.cpus + other.cpus,
            self.video + other.video,
        )

    def minus(self, other: "Use") -> "Use":
        """What is left when ``other``, which is part of it, is given back."""
        return Use(
            self.sharers - other.sharers,
            self.memory - other.memory,
            self.cores - other.cores,
            self.slots - other.slots,
            self.cpus - other.cpus,
            self.video - other.video,
        )

    def peak(self, other: "Use") -> "Use":
        """What serves both at different times."""
        return Use(
            max(self.sharers, other.sharers),
            max(self.memory, other.memory),
            max(self.cores, other.cores),
            self.slots | other.slots,
            max(self.cpus, other.cpus),
            max(self.video, other.video),
        )


UNUSED: Final = Use()


class DeviceOrder(StrEnum):
    """Which devices of a node are taken first (Volcano's ``SchedulePolicy``)."""

    LAST = ""
    """The one with the highest number."""
    BINPACK = "binpack"
    """The one of which most memory is taken."""
    SPREAD = "spread"
    """The one with the fewest sharers."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container asks: so many ``devices``, and of each of them the rest.

    ``percent`` of the memory is meant where it is not None. ``init``: an init container that ends
    before the next container begins; others stay. ``whole``: a device that is shared with no other
    container. ``parts``: one of these parts of a chip, the first that can be had.
    """

    devices: int
    memory: int = 0
    percent: int | None = None
    cores: int = 0
    init: bool = False
    whole: bool = False
    parts: tuple[Part, ...] = ()

    def memory_of(self, kind: DeviceKind) -> int:
        """The memory that it takes of such a device."""
        if self.whole:
            return kind.memory
        return self.memory if self.percent is None else kind.memory * self.percent // WHOLE


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which devices a pod takes, as its annotations say: parts of types, UUIDs, the mode.

    Types that are wanted make those that are not wanted of no account, as in Volcano.
    """

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    not_ids: tuple[str, ...] = ()
    mode: str = ""

    def takes_id(self, id_: str) -> bool:
        """Whether that device is one of those."""
        return (not self.ids or id_ in self.ids) and id_ not in self.not_ids

    def takes_kind(self, kind: DeviceKind) -> bool:
        """Whether a device of that kind may be."""
        if self.mode and self.mode != kind.mode:
            return False
        type_ = kind.type.upper()
        if self.types:
            return any(word in type_ for word in self.types)
        return not any(word in type_ for word in self.not_types)


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """What a pod needs of the devices of one family.

    ``asks`` are of the containers that ask, in the order in which they start. ``apart``: no two
    containers that stay share a device. ``spread``: nor do two pods of a group. ``exclusive``: nor
    do pods that have one of these marks in common, unless the device is cut. ``packed``: whatever
    the policy, the fullest device that does is taken. ``flaw`` says why no device will ever do;
    empty: nothing is wrong.
    """

    family: str
    asks: tuple[Ask, ...]
    wanted: Wanted = Wanted()
    apart: bool = False
    spread: bool = False
    exclusive: tuple[str, ...] = ()
    packed: bool = False
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """The extended resources that a container is limited to, and when it runs.

    ``init``: it ends before the next container begins.
    """

    limits: tuple[tuple[str, int], ...]
    init: bool = False


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    """What a pod says of devices: limits of containers in starting order, and how it chooses.

    ``annotations`` has labels too where pods choose by these. What that means is the matter of a
    family (:mod:`app.model.device_families`).
    """

    containers: tuple[ContainerLimits, ...]
    annotations: tuple[tuple[str, str], ...] = ()
    exclusive: tuple[str, ...] = ()
    """Rules that the pod matches: it shares no GPU with another pod that matches one of them."""

    def said(self) -> Mapping[str, str]:
        """The annotations by key."""
        return dict(self.annotations)


@dataclass(frozen=True, slots=True)
class ExclusiveRule:
    """Labels: of the pods that have all of them no two share a GPU."""

    labels: tuple[tuple[str, str], ...]

    @property
    def mark(self) -> str:
        """What tells the rule apart from others, and from groups of pods."""
        return "rule " + ",".join(f"{key}={value}" for key, value in self.labels)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is one of them."""
        return all(labels.get(key) == value for key, value in self.labels)


@dataclass(frozen=True, slots=True)
class DeviceNotes:
    """What a node says of its devices: annotations, and resources that it has, healthy or not.

    ``annotations`` has a label too where a device plugin says something by it.

    What that means is the matter of a family, as of :class:`DeviceAsk`.
    """

    annotations: tuple[tuple[str, str], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
