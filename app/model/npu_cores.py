"""Parts of Ascend 310P chips that MindCluster's device plugin cuts when a pod needs them.

A pod asks for AI cores and says by labels what else matters to it: that gives the template by which
its chip is cut. A chip has eight AI cores in four groups, seven AI CPUs, and units that process
video (DVPP), which one part may have to itself.
"""

from collections.abc import Mapping
from typing import Final

from app.model.devices import Ask, DeviceAsk, DeviceKind, DeviceNeed, Part

CORES: Final = "huawei.com/npu-core"
"""The resource, and the annotation of a pod that tells the device plugin what the pod gets."""
REAL: Final = "huawei.com/AscendReal"
"""Annotation of a pod: the chips, or the part of one, that the device plugin has given it."""
SERVED_FROM: Final = "predicate-time"
"""Annotation of a pod: the device plugin serves pods in the order of these times."""
CHIPS: Final = "baseDeviceInfos"
"""Annotation of a node that names its chips."""
SERVER_TYPE: Final = "servertype"
"""Label of a node: what its chips are, and how many AI cores each has."""
LEVEL: Final = "vnpu-level"
VIDEO: Final = "vnpu-dvpp"
LABELS: Final = frozenset({LEVEL, VIDEO})
"""Labels by which pods choose."""

_HIGH = "high"
_WITH, _WITHOUT, _EITHER = "yes", "no", "null"

CHIP: Final = DeviceKind("Ascend310P", memory=0, sharers=8, cores=8, cpus=7, video=8)
WHOLE_CHIP: Final = Part("", CHIP.cores, CHIP.cpus, CHIP.video)
CORE_GROUPS: Final = 4
_CORES_OF_GROUP = CHIP.cores // CORE_GROUPS

# A part that may use the video units has a share of them for each of its cores: beside it there is
# no room for one that has all of them.
_01: Final = Part("vir01", 1, 1, 1)
_02: Final = Part("vir02", 2, 2, 2)
_02_1C: Final = Part("vir02_1c", 2, 1, 2)
_04: Final = Part("vir04", 4, 4, 4)
_04_3C: Final = Part("vir04_3c", 4, 3, 4)
_04_WITHOUT: Final = Part("vir04_3c_ndvpp", 4, 3, 0)
_04_WITH: Final = Part("vir04_4c_dvpp", 4, 4, CHIP.video)

PARTS: Final[Mapping[str, Part]] = {
    each.name: each for each in (_01, _02, _02_1C, _04, _04_3C, _04_WITHOUT, _04_WITH)
}
"""By the names of their templates."""

_LOW_PARTS: Final[Mapping[tuple[int, str], tuple[Part, ...]]] = {
    (1, _EITHER): (_01,),
    (2, _EITHER): (_02_1C,),
    (4, _EITHER): (_04_3C,),
    (4, _WITH): (_04_WITH,),
    (4, _WITHOUT): (_04_WITHOUT,),
}
_HIGH_PARTS: Final[Mapping[tuple[int, str], tuple[Part, ...]]] = {
    **_LOW_PARTS,
    (2, _EITHER): (_02, _02_1C),
    (4, _EITHER): (_04, _04_3C),
}


def groups_allow(part: Part, groups: int) -> bool:
    """Whether a part fits in where parts lie in so many groups of the chip's cores.

    A single core can be had in a group that is not full; more cores need groups of their own.
    """
    return part.cores == 1 or part.cores <= (CORE_GROUPS - groups) * _CORES_OF_GROUP


def need_of_cores(family: str, asked: DeviceAsk) -> DeviceNeed | None:
    """What a pod needs that asks for AI cores; None: it asks for none."""
    each = [
        (dict(container.limits).get(CORES, 0), container.init) for container in asked.containers
    ]
    asking = [(cores, init) for cores, init in each if cores]
    if not asking:
        return None
    cores, init = asking[0]
    ask, flaw = _ask(cores, asked.said())
    if len(asking) > 1 or init:
        flaw = f"{CORES} is given to one container of a pod, and to no init container"
    return DeviceNeed(family, (ask,), packed=True, flaw=flaw)


def _ask(cores: int, said: Mapping[str, str]) -> tuple[Ask, str]:
    if cores % CHIP.cores == 0:
        return Ask(cores // CHIP.cores, cores=CHIP.cores, parts=(WHOLE_CHIP,)), ""
    video = said.get(VIDEO, _EITHER)
    templates = _HIGH_PARTS if said.get(LEVEL) == _HIGH else _LOW_PARTS
    parts = templates.get((cores, video))
    if parts is not None:
        return Ask(1, cores=cores, parts=parts), ""
    fitting = [known for number, known in templates if number == cores]
    if fitting:
        flaw = (
            f"label {VIDEO}: {video!r} is not {_any_of(fitting)}, as it asks for {cores} AI cores"
        )
    else:
        flaw = f"{CORES}: {cores} is not 1, 2, 4 or a multiple of {CHIP.cores}"
    return Ask(1, cores=cores), flaw


def _any_of(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
