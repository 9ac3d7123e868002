"""deviceshare: pods go where the devices are free that they ask for, and share them.

What pods ask is the matter of families (:mod:`app.model.device_families`), what a node gives that
of :mod:`app.core.placement.devices`. A gang gets its devices whole or not at all, as it does with
all room. ``deviceshare.SchedulePolicy`` says which devices are taken first, and with
``deviceshare.ScheduleWeight`` nodes are scored by it: 100 for a device that is full with the pod
(``binpack``), or was empty before it (``spread``).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.placement.device_books import DeviceBooks
from app.core.placement.devices import Given, Lacking, assign, on_node, total_score
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.model.conf import PluginConf
from app.model.device_families import DeviceSetting, Family, Form, GpuShare
from app.model.devices import Ask, DeviceNeed, DeviceOrder, ExclusiveRule, Part
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.reason import Cause
from app.model.resources import Mask, Scores

NAME = "deviceshare"
_EXCLUSIVE = "deviceshare.GPUExclusiveRules"
CONFIG_MAP = "volcano-vgpu-device-config"
CONFIG_NAMESPACE = "kube-system"


def setting_of(conf: PluginConf) -> DeviceSetting:
    """The settings in the arguments of the plugin; raises ``ConfError``."""
    given = Arguments(conf)
    by_memory = given.flag("deviceshare.GPUSharingEnable", default=False)
    by_number = given.flag("deviceshare.GPUNumberEnable", default=False)
    vgpu = given.flag("deviceshare.VGPUEnable", default=False)
    if by_memory and by_number:
        raise ConfError(
            "plugin deviceshare: deviceshare.GPUSharingEnable and deviceshare.GPUNumberEnable "
            "cannot both be true"
        )
    if vgpu and (by_memory or by_number):
        name = "deviceshare.GPUSharingEnable" if by_memory else "deviceshare.GPUNumberEnable"
        raise ConfError(
            f"plugin deviceshare: {name} and deviceshare.VGPUEnable cannot both be true"
        )
    share = GpuShare.MEMORY if by_memory else GpuShare.NUMBER if by_number else None
    return DeviceSetting(
        gpu_share=share,
        vgpu=vgpu,
        ascend=given.flag("deviceshare.AscendHAMiVNPUEnable", default=False),
        npu_cores=given.flag("deviceshare.AscendMindClusterVNPUEnable", default=False),
        lock=given.flag("deviceshare.NodeLockEnable", default=False),
        order=_order(given.text("deviceshare.SchedulePolicy")),
        exclusive=_exclusive(conf.arguments.get(_EXCLUSIVE)),
    )


def _exclusive(given: object) -> tuple[ExclusiveRule, ...]:
    """Rules as a list of mappings, label to value; numbers and booleans count as their texts."""
    if given is None:
        return ()
    rules = given if isinstance(given, list) else [given]
    found: list[ExclusiveRule] = []
    for number, rule in enumerate(rules, start=1):
        if not isinstance(rule, Mapping) or not rule:
            raise _wrong_rule(number, f"{rule!r} is no mapping of labels to values")
        labels: dict[str, str] = {}
        for key, value in rule.items():
            if not isinstance(key, str) or not isinstance(value, str | int):
                raise _wrong_rule(number, f"{key!r}: {value!r} is no label with its value")
            labels[key] = str(value).lower() if isinstance(value, bool) else str(value)
        found.append(ExclusiveRule(tuple(sorted(labels.items()))))
    return tuple(dict.fromkeys(found))


def _wrong_rule(number: int, why: str) -> ConfError:
    return ConfError(f"plugin deviceshare: argument {_EXCLUSIVE}: rule {number}: {why}")


def config_map_of(conf: PluginConf) -> tuple[str, str]:
    """Namespace and name of the ConfigMap of the device plugins; raises ``ConfError``."""
    given = Arguments(conf)
    namespace = given.text("deviceshare.KnownGeometriesCMNamespace") or CONFIG_NAMESPACE
    return namespace, given.text("deviceshare.KnownGeometriesCMName") or CONFIG_MAP


def _order(text: str) -> DeviceOrder:
    try:
        return DeviceOrder(text.strip())
    except ValueError:
        raise ConfError(
            f"plugin deviceshare: argument deviceshare.SchedulePolicy: {text!r} "
            "is not binpack or spread"
        ) from None


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the arguments ``deviceshare.*``."""
    setting = setting_of(conf)
    config_map_of(conf)
    weight = Arguments(conf).integer("deviceshare.ScheduleWeight", 0)

    def open_(session: Session) -> Hooks:
        families = setting.families(session.ledger.snapshot.device_config)
        if not families:
            return Hooks()
        shared = SharedDevices(session, families, setting=setting, weight=weight)
        scores = weight > 0 and (setting.npu_cores or setting.order is not DeviceOrder.LAST)
        return Hooks(
            node_rules=[shared.rule()],
            node_score=NodeScore(shared.key, shared.score) if scores else None,
            place_class=shared.place_class,
        )

    return open_


class SharedDevices:
    """The plugin on the nodes of one cycle."""

    def __init__(
        self, session: Session, families: Sequence[Family], *, setting: DeviceSetting, weight: int
    ) -> None:
        self._order, self._weight = setting.order, weight
        self._books = DeviceBooks(
            session.ledger, families, share=setting.gpu_share, order=setting.order
        )

    def rule(self) -> NodeRule:
        """The rule that a node has devices for the pod."""
        return NodeRule("no devices for it", self.key, self._allowed, Cause.DEVICES, self._details)

    def key(self, gang: Gang, task: Task) -> Hashable | None:
        """The needs of a pod, its request, and its group where no two of its pods share a device.

        None: it needs no devices.
        """
        needs = self._books.needs(task.shape.devices)
        if not needs:
            return None
        spread = any(need.spread for _, need in needs)
        return needs, task.request.tobytes(), gang.key if spread else None

    def place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """Free room on any node does not do, the place of an equal pod does.

        Where no two pods of a group share a device that is a pod of the same group.
        """
        needs = self._books.needs(task.shape.devices)
        if not needs:
            return ANY_EQUAL
        if any(need.spread for _, need in needs):
            return ANY_EQUAL.within(f"devices of group {gang.key}")
        return ANY_EQUAL.within("devices")

    def score(self, gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        """Up to 100 times the weight for each device that a container gets, rounded by node."""
        needs, here = self._books.needs(task.shape.devices), self._books.now()
        scores = np.zeros(len(nodes.rows))
        for at, row in enumerate(nodes.rows.tolist()):
            total = 0.0
            for each in here[row]:
                need = _of(each.family, needs)
                if need is not None:
                    on = on_node(each, need, gang.key, ahead=nodes.ahead)
                    found = assign(on, need, self._order)
                    if isinstance(found, Given):
                        total += total_score(on, need, found, self._order)
            scores[at] = math.floor(total + 0.5)
        return scores * self._weight

    def _allowed(self, gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        """Where devices are free, and where other resources are short in any case."""
        needs = self._books.needs(task.shape.devices)
        self._books.now()
        mask: Mask = np.array(
            [
                bool(self._books.chosen(needs, row, gang.key, ahead=nodes.ahead))
                for row in nodes.rows.tolist()
            ],
            dtype=np.bool_,
        )
        asked = task.request[:, None]
        mask |= ((nodes.free < asked) & (asked > 0)).any(axis=0)
        return mask

    def _details(self, gang: Gang, task: Task, nodes: NodesNow) -> str:
        """The largest of what is free, and how many devices have it.

        ``8 GiB asked of a GPU; 3 GPUs have 4 GiB free, no GPU has more``
        """
        here = self._books.now()
        for family, need in self._books.needs(task.shape.devices):
            if need.flaw:
                return need.flaw
            found = [
                assign(on_node(each, need, gang.key, ahead=nodes.ahead), need, self._order)
                for row in nodes.rows.tolist()
                for each in here[row]
                if each.family.name == family.name
            ]
            lacking = [each for each in found if isinstance(each, Lacking)]
            if lacking or not found:
                return _sentence(family, lacking)
        return ""


def _of(family: Family, needs: Iterable[tuple[Family, DeviceNeed]]) -> DeviceNeed | None:
    return next((need for each, need in needs if each.name == family.name), None)


def _sentence(family: Family, lacking: Sequence[Lacking]) -> str:
    unit = family.unit
    if family.form is Form.MINDCLUSTER:
        return _of_parts(unit, lacking)
    free = Counter(memory for each in lacking for memory in each.memory)
    if not free:
        return f"no {unit} is of a type, UUID and mode that the pod takes"
    first = max(lacking, key=lambda each: (each.found, max(each.memory, default=0)))
    ask = first.ask
    if ask.whole:
        return f"{ask.devices} {unit}s asked that no pod has; at most {first.found} on a node"
    if first.found:
        return (
            f"{ask.devices} {unit}s asked with {_share(ask)} free; at most {first.found} on a node"
        )
    most = max(free)
    if ask.percent is None and ask.memory > most:
        have = f"{free[most]} {unit}s have" if free[most] > 1 else f"1 {unit} has"
        return f"{_memory(ask.memory)} asked of a {unit}; {have} {_memory(most)} free, none more"
    if ask.cores:
        cores = max(each for one in lacking for each in one.cores)
        return f"{ask.cores} cores asked of a {unit}; at most {cores} are free"
    return f"no {unit} has {_share(ask)} free for one more container"


def _of_parts(unit: str, lacking: Sequence[Lacking]) -> str:
    """What the smallest part that the pod takes lacks on every chip."""
    free = Counter(cores for each in lacking for cores in each.cores)
    if not free:
        return f"no {unit} works that a device plugin tells of"
    ask = lacking[0].ask
    part, most = ask.parts[-1], max(free)
    if not part.name:
        found = max(each.found for each in lacking)
        return f"{ask.devices} whole {unit} asked; at most {found} free on a node"
    if part.cores > most:
        have = f"{free[most]} {unit} have" if free[most] > 1 else f"1 {unit} has"
        return f"{_cores(part.cores)} asked of an {unit}; {have} {_cores(most)} free, none more"
    cpus = max(each for one in lacking for each in one.cpus)
    if part.cpus > cpus:
        return (
            f"template {part.name} needs {part.cpus} AI CPUs of an {unit}; at most {cpus} are free"
        )
    if part.video > max(each for one in lacking for each in one.video):
        return f"template {part.name} needs the DVPP of an {unit}; on each of them it is in use"
    return f"no {unit} has all at once that template {part.name} needs: {_needs(part)}"


def _needs(part: Part) -> str:
    needs = f"{_cores(part.cores)} in free groups, {part.cpus} AI CPUs"
    return f"{needs}, DVPP" if part.video else needs


def _cores(number: int) -> str:
    return "1 AI core" if number == 1 else f"{number} AI cores"


def _share(ask: Ask) -> str:
    memory = _memory(ask.memory) if ask.percent is None else f"{ask.percent} % of its memory"
    return f"{memory} and {ask.cores} cores" if ask.cores else memory


def _memory(mib: int) -> str:
    return f"{mib // 1024} GiB" if mib and mib % 1024 == 0 else f"{mib} MiB"
