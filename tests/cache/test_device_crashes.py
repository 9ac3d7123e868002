"""Devices through random plans, locks, Bindings, ends and crashes: none is given twice or lost.

A process may crash between any two steps: when it has planned, when it has locked the node, and
when the API server has taken the Binding.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.devices import Given, assign, on_node
from app.model.device_families import DeviceSetting, NodeDevices
from app.model.devices import DeviceOrder
from app.model.ids import NodeName
from app.model.npu_cores import CORES, PARTS, REAL, WHOLE_CHIP
from app.model.shape import PodShape
from app.service.calls.node_locks import LOCKED_S, NodeLocks
from app.service.ports import WriteError
from tests.cache.rig import Rig
from tests.devices import GPU_MIB, gpu_node, vgpu_shape
from tests.npu_cores import chip_node, chip_shape
from tests.scale import examples

NODE: Final = NodeName("big")
IDS: Final = "volcano.sh/vgpu-ids-new"
GPUS: Final = ("GPU-a", "GPU-b", "GPU-c")
CHIPS: Final = tuple(f"Ascend310P-{number}" for number in range(3))
Taken = tuple[str, Counter[str]]
"""A device, and how much of it."""


def vgpus_said(said: Mapping[str, str]) -> Iterator[Taken]:
    """What a pod has of GPUs that was told this."""
    for entry in filter(None, said.get(IDS, "").split(":")):
        id_, _, memory, cores = entry.split(",")
        yield id_, Counter(memory=int(memory), cores=int(cores), sharers=1)


def parts_said(said: Mapping[str, str]) -> Iterator[Taken]:
    """What a pod has of chips that was told this, or whose device plugin says this."""
    if REAL in said:
        for entry in said[REAL].split(","):
            chip = re.fullmatch(r"Ascend310P-(?:[0-9]c.*-)?([0-9]+)", entry)
            assert chip
            yield f"Ascend310P-{chip[1]}", part_of(said)
        return
    for number in said.get(CORES, "").partition("-")[0].split(",") if CORES in said else ():
        yield f"Ascend310P-{number}", part_of(said)


def part_of(said: Mapping[str, str]) -> Counter[str]:
    """How much of each chip a pod has that was told this."""
    part = PARTS.get(said[CORES].partition("-")[2], WHOLE_CHIP)
    return Counter(cores=part.cores, cpus=part.cpus, video=part.video)


def is_equal(said: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two pods were told parts of one size, or as many whole chips."""
    chips, told = said[CORES].partition("-"), other[CORES].partition("-")
    return (chips[2], chips[0].count(",")) == (told[2], told[0].count(","))


CUT: Final = {
    "": "",
    "vir01": "1c",
    "vir02": "2c",
    "vir02_1c": "2c.1cpu",
    "vir04": "4c",
    "vir04_3c": "4c.3cpu",
}
"""What the device plugin calls what it cut, by template."""


def show_gpus(cache: ClusterCache, ill: str) -> None:
    cache.set_node(gpu_node(NODE, *GPUS, ill=ill))


def show_chips(cache: ClusterCache, ill: str) -> None:
    cache.set_node(chip_node(NODE, len(CHIPS)))
    cache.set_chip_health(NODE, frozenset(filter(None, {ill})))


def lies_of(key: str, *texts: str) -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(({}, {}, *({key: text} for text in texts)))


@dataclass(frozen=True)
class Kind:
    """Devices that are shared: how they are shown and told, and how much there is of each.

    ``lock`` is what the node is locked by while a pod is bound; without one several pods may wait
    for the device plugin. ``lies``: what owners of pods write.
    """

    ids: tuple[str, ...]
    setting: DeviceSetting
    show: Callable[[ClusterCache, str], None]
    said: Callable[[Mapping[str, str]], Iterator[Taken]]
    most: Mapping[str, int]
    lock: tuple[str, ...]
    shapes: st.SearchStrategy[PodShape]
    lies: st.SearchStrategy[dict[str, str]]


KINDS: Final[Mapping[str, Kind]] = {
    "vgpus": Kind(
        ids=GPUS,
        setting=DeviceSetting(vgpu=True),
        show=show_gpus,
        said=vgpus_said,
        most={"memory": GPU_MIB, "cores": 100, "sharers": 10},
        lock=("hamivgpu",),
        shapes=st.builds(
            vgpu_shape,
            st.integers(1, 20),
            count=st.integers(1, 3),
            cores=st.sampled_from((0, 0, 30, 100)),
        ),
        lies=st.sampled_from(
            (
                {},
                {},
                *({IDS: text} for text in ("GPU-a,NVIDIA,32768,100:", "GPU-b,NVIDIA,1,0:", "no")),
            )
        ),
    ),
    "parts of chips": Kind(
        ids=CHIPS,
        setting=DeviceSetting(npu_cores=True),
        show=show_chips,
        said=parts_said,
        most={"cores": 8, "cpus": 7, "video": 8},
        lock=(),
        shapes=st.builds(
            chip_shape, st.sampled_from((1, 1, 2, 4, 8, 16)), level=st.sampled_from(("", "high"))
        ),
        lies=lies_of(CORES, "0", "1-vir04", "nonsense"),
    ),
}


class Annotations:
    """The annotations of the node as the API server has them; every write is taken."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}

    async def read_node_annotation(self, _node: str, key: str) -> tuple[str, str | None]:
        return "1", self.there.get(key)

    async def annotate_node(
        self, _node: str, annotations: Mapping[str, str | None], *, version: str
    ) -> None:
        assert version == "1"
        for key, text in annotations.items():
            if text is None:
                self.there.pop(key, None)
            else:
                self.there[key] = text


def at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing."""
    with contextlib.suppress(StopIteration):
        work.send(None)
        raise AssertionError("it waits")


@dataclass
class Stored:
    """A pod as the API server has it; ``said`` are its annotations about devices."""

    shape: PodShape
    said: dict[str, str] = field(default_factory=dict)
    bound: bool = False


class World:
    """What the API server has, and a process that may crash at any moment."""

    def __init__(self, kind: Kind, order: DeviceOrder) -> None:
        self._kind = kind
        self._setting = replace(kind.setting, order=order)
        self.pods: dict[str, Stored] = {}
        self.ill = ""
        self.now = 1_700_000_000.0
        self.on_node = Annotations()
        self.unserved: dict[str, None] = {}
        """Pods that are bound and have not been served by the device plugin yet."""
        self.crash()

    def crash(self) -> None:
        """Another process begins with what the API server has."""
        self.rig = Rig()
        self.rig.cache.set_device_setting(self._setting)
        self.rig.see(min_member=1)
        self._kind.show(self.rig.cache, self.ill)
        self.planned: set[str] = set()
        self.locks = NodeLocks(self.on_node, clock=lambda: self.now)
        for name in self.pods:
            self.show(name)

    def show(self, name: str) -> None:
        pod = self.pods[name]
        node = NODE if pod.bound else ""
        self.rig.pod(name, shape=pod.shape, node=node, annotations=pod.said)

    @property
    def here(self) -> NodeDevices:
        [here] = Snapshotter(self.rig.cache).snapshot().devices[NODE]
        return here

    def create(self, name: str, shape: PodShape, lie: dict[str, str]) -> None:
        self.pods[name] = Stored(shape, said=lie)
        self.show(name)

    def plan(self, name: str) -> None:
        pod = self.pods[name]
        if pod.bound or name in self.planned:
            return
        [(_, need)] = self.rig.cache.devices.needs(pod.shape.devices)
        if isinstance(assign(on_node(self.here, need, None), need, self._setting.order), Given):
            assert self.rig.place(**{name: NODE})
            self.planned.add(name)
            assert self.decision(name)

    def decision(self, name: str) -> dict[str, str]:
        found = self.rig.cache.devices.decision(self.rig.uid(name), now=self.now)
        return dict(found or {})

    def withdraw(self, name: str) -> None:
        if name in self.planned:
            self.planned.discard(name)
            self.rig.cache.reservations.withdraw(self.rig.uid(name), now=self.rig.now)

    def bind(self, name: str, *, crash: str = "", fails: bool = False) -> None:
        """Lock the node and bind the pod; the process may crash after either."""
        if name not in self.planned:
            return
        told, uid = self.decision(name), self.rig.uid(name)
        if not told:  # a device fell ill, and no other was free
            self.withdraw(name)
            return
        try:
            at_once(self.locks.take(uid, NODE, self._kind.lock))
        except WriteError:
            return  # another pod has the lock: it is tried again
        if crash == "locked":
            self.crash()
            return
        if fails:
            at_once(self.locks.give_back(uid, NODE, self._kind.lock))
            return
        assert not (self._kind.lock and self.unserved), "which pod the plugin serves is not known"
        self.pods[name].said, self.pods[name].bound = told, True
        self.unserved[name] = None
        self.planned.discard(name)
        if crash:
            self.crash()
        else:
            self.locks.forget(uid, NODE, self._kind.lock)
            self.show(name)

    def serve(self) -> None:
        """The device plugin gives the pods their devices and removes the lock."""
        if self.unserved:
            self._write_what_was_given()
            self.unserved.clear()
            self.on_node.there.clear()

    def _write_what_was_given(self) -> None:
        """The plugin of chips says what it gave: of equal parts not always the one that was told.

        The last pod that is served gets the part of the first one that was told an equal one.
        """
        waiting = [self.pods[name].said for name in self.unserved if CORES in self.pods[name].said]
        if not waiting:
            return
        given = [said[CORES] for said in waiting]
        equal = [at for at, said in enumerate(waiting) if is_equal(said, waiting[-1])]
        given[equal[0]], given[-1] = given[-1], given[equal[0]]
        for number, (said, text) in enumerate(zip(waiting, given, strict=True), 100):
            chips, _, template = text.partition("-")
            said[REAL] = ",".join(
                f"Ascend310P-{CUT[template]}-{number}-{chip}" if template else f"Ascend310P-{chip}"
                for chip in chips.split(",")
            )
        for name in self.unserved:
            self.show(name)

    def wait(self) -> None:
        """So long that a lock which nothing removes counts no more; the plugin is done by then."""
        self.serve()
        self.now += LOCKED_S + 1

    def end(self, name: str) -> None:
        if name in self.unserved:
            self.serve()
        del self.pods[name]
        self.planned.discard(name)
        self.rig.cache.drop_pod(self.rig.uid(name))

    def fall_ill(self, gpu: str) -> None:
        self.ill = gpu
        self._kind.show(self.rig.cache, gpu)

    # --- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        taken: dict[str, Counter[str]] = {id_: Counter() for id_ in self._kind.ids}
        for name, pod in self.pods.items():
            said = pod.said if pod.bound else self.decision(name) if name in self.planned else {}
            for id_, amount in self._kind.said(said):
                taken[id_] += amount
        for device, use in zip(self.here.devices, self.here.used, strict=True):
            counted = taken[device.id]
            for what, most in self._kind.most.items():
                assert getattr(use, what) == counted[what] <= most


NAMES = st.sampled_from([f"p{number}" for number in range(8)])


def steps_of(kind: Kind) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """What may happen."""
    step: st.SearchStrategy[tuple[object, ...]] = st.one_of(
        st.tuples(st.just("create"), NAMES, kind.shapes, kind.lies),
        st.tuples(
            st.sampled_from(("plan", "bind", "bind", "bind and crash", "withdraw", "end")), NAMES
        ),
        st.tuples(st.sampled_from(("lock and crash", "bind in vain")), NAMES),
        st.tuples(st.sampled_from(("crash", "serve", "serve", "wait"))),
        st.tuples(st.just("ill"), st.sampled_from(("", *kind.ids))),
    )
    return st.lists(step, min_size=10, max_size=30)


BINDS: Final[Mapping[str, dict[str, Any]]] = {
    "bind": {},
    "bind and crash": {"crash": "bound"},
    "lock and crash": {"crash": "locked"},
    "bind in vain": {"fails": True},
}


def act(world: World, what: str, *about: object) -> None:
    match what, about:
        case "create", (str(name), PodShape() as shape, dict(lie)):
            if name not in world.pods:
                world.create(name, shape, dict(lie))
                world.plan(name)
        case (("crash" | "serve" | "wait"), ()):
            getattr(world, what)()
        case "ill", (str(gpu),):
            world.fall_ill(gpu)
        case _, (str(name),) if name in world.pods:
            if what in BINDS:
                world.bind(name, **BINDS[what])
            else:
                getattr(world, what)(name)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@examples(100)
@given(st.sampled_from(DeviceOrder), st.data())
def test_no_device_is_given_twice_and_none_is_lost(
    kind: Kind, order: DeviceOrder, data: st.DataObject
) -> None:
    """After a crash places that were only planned are free, and bound pods have what they had."""
    world = World(kind, order)
    for what, *about in data.draw(steps_of(kind)):
        act(world, str(what), *about)
        world.check()
    for name in list(world.pods):
        world.end(name)
    world.check()
    assert not any(use.sharers for use in world.here.used)
    world.wait()
    world.create("last", vgpu_shape(1) if kind.lock else chip_shape(1), {})
    world.fall_ill("")
    world.plan("last")
    world.bind("last")
    assert world.pods["last"].bound, "no lock that a crash left behind keeps pods out for ever"


@pytest.mark.parametrize("crash", ["", "before it is served", "after it is served"])
def test_of_equal_parts_each_pod_has_the_one_that_the_plugin_gave_it(crash: str) -> None:
    world = World(KINDS["parts of chips"], DeviceOrder.LAST)
    for name in "abc":
        world.create(name, chip_shape(4), {})
        world.plan(name)
        world.bind(name)
    chips = {name: world.pods[name].said[CORES][0] for name in "abc"}
    assert chips["a"] != chips["c"]
    if crash.startswith("before"):
        world.crash()
    world.serve()
    world.check()
    if crash.startswith("after"):
        world.crash()
    assert world.pods["a"].said[REAL].endswith(chips["c"])
    world.end("a")
    world.check()
    world.end("c")
    world.check()
