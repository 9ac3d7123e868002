"""Families of devices, as data: how nodes tell of them, how pods ask and how pods are told.

The families of Volcano are here (volcano.md §3.6); the ConfigMap of the device plugins renames the
resources of :data:`VGPU`, and adds families of Ascend chips (:func:`ascend`). Of chips that
MindCluster's device plugin cuts tells :mod:`app.model.npu_cores`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from app.model import npu_cores
from app.model.devices import (
    WHOLE,
    Ask,
    ContainerLimits,
    Device,
    DeviceAsk,
    DeviceNeed,
    DeviceOrder,
    ExclusiveRule,
    Geometry,
    Use,
    Wanted,
)
from app.model.ids import GroupKey

NO_PERCENT: Final = 101
"""As a percentage: none was asked for."""
HAMI_CORE: Final = "hami-core"
UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"
"""Annotation of a node: the numbers of GPUs that do not work, of :data:`GPU_SHARE`."""
HAMI_CORE_NODE: Final = "hami-vnpu-core"
"""Annotation of a node: whether its Ascend chips are shared by software."""
_HAMI_REGISTER: Final = "hami.io/node-register-"


class Form(Enum):
    """How a family tells nodes and pods of devices."""

    GPU_SHARE = "capacity of the node, numbers of GPUs"
    VGPU = "text lists of Volcano's vGPU device plugin"
    HAMI = "JSON of HAMi's device plugins, text lists for pods"
    MINDCLUSTER = "JSON of MindCluster's device plugin, numbers of chips for pods"


class Template(NamedTuple):
    """A part of a chip that pods may get: its name and its memory."""

    name: str
    memory: int


@dataclass(frozen=True, slots=True)
class Family:
    """One family of devices.

    ``count``, ``memory``, ``percent`` and ``cores`` are resources by which containers ask for
    devices, for memory of each (as an amount or in percent) and for cores of each; empty: there is
    none. ``register`` is the annotation of nodes that lists the devices; ``listed`` are resources
    that nodes with such devices have. ``lock`` is the annotation of a node that a pod is bound to;
    empty: there is none.
    ``word`` is what devices are called for pods, and part of the type of each where
    ``word_in_type``. Chips are given whole, with ``whole`` memory, or in one of the ``templates``;
    a chip has ``most`` memory at most.
    """

    name: str
    form: Form
    lock: str
    count: str = ""
    memory: str = ""
    percent: str = ""
    cores: str = ""
    register: str = ""
    listed: tuple[str, ...] = ()
    word: str = ""
    word_in_type: bool = False
    templates: tuple[Template, ...] = ()
    whole: int = 0
    most: int = 0

    @property
    def unit(self) -> str:
        """What people call such a device."""
        return self.word if self.form in (Form.HAMI, Form.MINDCLUSTER) else "GPU"

    def template_of(self, memory: int) -> Template | None:
        """The smallest part of a chip with so much memory; None: no chip has it.

        The whole chip has no name.
        """
        for template in sorted(self.templates, key=lambda each: each.memory):
            if memory <= template.memory:
                return template
        return Template("", self.whole) if memory <= self.most else None


GPU_SHARE: Final = Family(
    "GpuShare",
    Form.GPU_SHARE,
    lock="gpu",
    count="volcano.sh/gpu-number",
    memory="volcano.sh/gpu-memory",
)

GPUS: Final = (GPU_SHARE.count, GPU_SHARE.memory)

VGPU: Final = Family(
    "hamivgpu",
    Form.VGPU,
    lock="hamivgpu",
    count="volcano.sh/vgpu-number",
    memory="volcano.sh/vgpu-memory",
    percent="volcano.sh/vgpu-memory-percentage",
    cores="volcano.sh/vgpu-cores",
    register="volcano.sh/node-vgpu-register",
    listed=("volcano.sh/vgpu-number", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory"),
    word="NVIDIA",
    word_in_type=True,
)


NPU_CORES: Final = Family(
    "npu-core",
    Form.MINDCLUSTER,
    lock="",
    count=npu_cores.CORES,
    register=npu_cores.CHIPS,
    listed=(npu_cores.CORES,),
    word=npu_cores.CHIP.type,
)

TELLING: Final = (
    "^(volcano[.]sh/(gpu-index|gpu-assigned|predicate-time|vgpu-node|vgpu-time|vgpu-ids-new|"
    "devices-to-allocate|bind-phase|bind-time)|hami[.]io/(vgpu-node|vgpu-time|bind-phase|bind-time|"
    ".+-devices-to-allocate|.+-devices-allocated)|huawei[.]com/(npu-core|Ascend.*)|predicate-time)$"
)
"""Annotations that tell a pod its devices, as a pattern that Python and CEL read alike."""
_TELLING: Final = re.compile(TELLING)


def tells_devices(key: str) -> bool:
    """Whether that annotation of a pod says which devices it has: device plugins read it."""
    return _TELLING.match(key) is not None


_REGISTERS: Final = (VGPU.register, UNHEALTHY, HAMI_CORE_NODE, NPU_CORES.register)


def is_register(key: str) -> bool:
    """Whether that annotation of a node tells of devices."""
    return key in _REGISTERS or key.startswith(_HAMI_REGISTER)


def ascend(
    word: str,
    *,
    count: str,
    memory: str,
    whole: int,
    most: int,
    templates: Iterable[Template] = (),
) -> Family:
    """A family of Ascend chips as HAMi's device plugin serves them."""
    return Family(
        word,
        Form.HAMI,
        lock="hami.io/mutex.lock",
        count=count,
        memory=memory,
        cores=f"{count}-core",
        register=f"{_HAMI_REGISTER}{word}",
        listed=(count,),
        word=word,
        templates=tuple(templates),
        whole=whole,
        most=most,
    )


ASCEND_310P: Final = ascend(
    "Ascend310P",
    count="huawei.com/Ascend310P",
    memory="huawei.com/Ascend310P-memory",
    whole=21_527,
    most=24_576,
    templates=(Template("vir01", 3_072), Template("vir02", 6_144), Template("vir04", 12_288)),
)
"""The one that is there without a ConfigMap, as in Volcano."""


class Models(NamedTuple):
    """The geometries that GPUs may be cut into whose type has one of these names in it."""

    names: tuple[str, ...]
    geometries: tuple[Geometry, ...]


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """What the ConfigMap of the device plugins says: ``hami_core`` chips are shared by software."""

    vgpu: Family = VGPU
    ascend: tuple[Family, ...] = (ASCEND_310P,)
    models: tuple[Models, ...] = ()
    hami_core: bool = False

    def geometries_of(self, type_: str) -> tuple[Geometry, ...]:
        """The geometries of a GPU of that type; none where it is not known."""
        for models in self.models:
            if any(name in type_ for name in models.names):
                return models.geometries
        return ()


DEFAULT_DEVICES: Final = DeviceConfig()
"""What holds where there is no ConfigMap."""


class GpuShare(Enum):
    """By what GPUs of :data:`GPU_SHARE` are given."""

    MEMORY = "memory"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class DeviceSetting:
    """The settings of the plugin ``deviceshare``: families that count, the choice of devices."""

    gpu_share: GpuShare | None = None
    vgpu: bool = False
    ascend: bool = False
    npu_cores: bool = False
    lock: bool = False
    order: DeviceOrder = DeviceOrder.LAST
    exclusive: tuple[ExclusiveRule, ...] = ()

    def families(self, config: DeviceConfig) -> tuple[Family, ...]:
        """The families that count."""
        found: list[Family] = []
        if self.gpu_share is not None:
            found.append(GPU_SHARE)
        if self.vgpu:
            found.append(config.vgpu)
        if self.ascend:
            found += config.ascend
        if self.npu_cores:
            found.append(NPU_CORES)
        return tuple(found)


# --- annotations by which pods choose -------------------------------------------------------------

USE_TYPES: Final = "nvidia.com/use-gputype"
_NOUSE_TYPES = "nvidia.com/nouse-gputype"
_USE_IDS = "volcano.sh/vgpu-use-gpuuuid"
_NOUSE_IDS = "volcano.sh/vgpu-nouse-gpuuuid"
_MODE = "volcano.sh/vgpu-mode"
_GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"
_SPREAD = "spread"
_CHIP_MODE = "huawei.com/vnpu-mode"

CHOOSING: Final = frozenset(
    {USE_TYPES, _NOUSE_TYPES, _USE_IDS, _NOUSE_IDS, _MODE, _GROUP_POLICY, _CHIP_MODE}
)


MOST_ASKING: Final = 128
"""Containers of a pod that may ask for devices of a family: more are too many to search for."""


def needs_of(
    families: Iterable[Family], asked: DeviceAsk | None, share: GpuShare | None
) -> tuple[tuple[Family, DeviceNeed], ...]:
    """What a pod needs of each family of which it needs something."""
    if asked is None:
        return ()
    each = ((family, need_of(family, asked, share)) for family in families)
    return tuple((family, need) for family, need in each if need is not None)


@lru_cache(maxsize=4_096)
def need_of(family: Family, asked: DeviceAsk, share: GpuShare | None = None) -> DeviceNeed | None:
    """What a pod needs of a family; None: nothing. ``share`` tells what :data:`GPU_SHARE` gives."""
    match family.form:
        case Form.GPU_SHARE:
            return _gpu_share(family, asked, share)
        case Form.MINDCLUSTER:
            return npu_cores.need_of_cores(family.name, asked)
    return _shared(family, asked)


def _shared(family: Family, asked: DeviceAsk) -> DeviceNeed | None:
    said = asked.said()
    by_software = family.form is Form.HAMI and said.get(_CHIP_MODE) == HAMI_CORE
    asks, flaw = [], ""
    for container in asked.containers:
        ask = _ask(family, container)
        if ask is None:
            continue
        if family.form is Form.HAMI and not by_software:
            template = family.template_of(family.whole if ask.percent is not None else ask.memory)
            memory = 0 if template is None else template.memory
            if template is None:
                flaw = f"no {family.word} has so much memory"
            elif ask.devices > 1 and memory != family.whole:
                flaw = f"several {family.word} are given whole only"
            ask = Ask(ask.devices, memory, None, ask.cores, ask.init)
        asks.append(ask)
    if not asks:
        return None
    if len(asks) > MOST_ASKING:
        flaw = f"more than {MOST_ASKING} of its containers ask for devices"
    if family.form is Form.HAMI:
        wanted = Wanted(mode=HAMI_CORE if by_software else "")
        return DeviceNeed(family.name, tuple(asks), wanted, apart=True, flaw=flaw)
    return DeviceNeed(
        family.name,
        tuple(asks),
        Wanted(
            types=tuple(word.upper() for word in _words(said.get(USE_TYPES, ""))),
            not_types=tuple(word.upper() for word in _words(said.get(_NOUSE_TYPES, ""))),
            ids=_words(said.get(_USE_IDS, "")),
            not_ids=_words(said.get(_NOUSE_IDS, "")),
            mode=said.get(_MODE, ""),
        ),
        spread=said.get(_GROUP_POLICY) == _SPREAD,
        exclusive=asked.exclusive,
        flaw=flaw,
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in text.split(","))))


def _ask(family: Family, container: ContainerLimits) -> Ask | None:
    """As Volcano reads it: memory alone asks for one device, neither amount for all of its memory.

    So do 101 percent, which is how Volcano writes that no percentage was asked for.
    """
    limits = dict(container.limits)
    devices = limits.get(family.count)
    memory = limits.get(family.memory, 0)
    if devices is None:
        devices = 1 if family.memory in limits else 0
    if not devices:
        return None
    percent: int | None = limits.get(family.percent, NO_PERCENT)
    if percent == NO_PERCENT:
        percent = None if memory else WHOLE
    return Ask(devices, memory, percent, limits.get(family.cores, 0), container.init)


def _gpu_share(family: Family, asked: DeviceAsk, share: GpuShare | None) -> DeviceNeed | None:
    """One GPU with the memory, or whole GPUs: of all containers that stay, or an init container."""
    name = family.memory if share is GpuShare.MEMORY else family.count
    each = [(container.init, dict(container.limits).get(name, 0)) for container in asked.containers]
    staying = sum(amount for init, amount in each if not init)
    amount = max([staying, *(amount for init, amount in each if init)])
    if share is None or not amount:
        return None
    ask = Ask(1, amount) if share is GpuShare.MEMORY else Ask(amount, whole=True)
    return DeviceNeed(family.name, (ask,))


# --- nodes as a snapshot has them ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one family on a node, by position.

    ``used`` is what is taken of each, ``ahead`` what is without terminating pods. ``groups`` are
    those of the pods on it, and the marks of rules that they match, each as often as pods have it.
    """

    family: Family
    devices: tuple[Device, ...]
    used: tuple[Use, ...]
    ahead: tuple[Use, ...]
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class DevicesTaken:
    """What a pod has of the devices of one family: positions on its node, and how much of each.

    ``exclusive`` as of its need.
    """

    family: str
    group: GroupKey
    charges: tuple[tuple[int, Use], ...]
    exclusive: tuple[str, ...] = ()
