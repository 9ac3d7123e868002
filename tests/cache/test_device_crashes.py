"""Devices through random plans, locks, Bindings, ends and crashes: none is given twice or lost.

A process may crash between any two steps: when it has planned, when it has locked the node, and
when the API server has taken the Binding.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.devices import Given, assign, on_node
from app.model.device_families import DeviceSetting, NodeDevices
from app.model.devices import DeviceOrder
from app.model.ids import NodeName
from app.model.shape import PodShape
from app.service.calls.node_locks import LOCKED_S, NodeLocks
from app.service.ports import WriteError
from tests.cache.rig import Rig
from tests.devices import GPU_MIB, gpu_node, vgpu_shape
from tests.scale import examples

NODE: Final = NodeName("big")
IDS: Final = "volcano.sh/vgpu-ids-new"
GPUS: Final = ("GPU-a", "GPU-b", "GPU-c")


LOCK: Final = ("hamivgpu",)


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
    """A pod as the API server has it; ``said`` are the devices that it was bound with."""

    shape: PodShape
    said: str = ""
    bound: bool = False


class World:
    """What the API server has, and a process that may crash at any moment."""

    def __init__(self, order: DeviceOrder) -> None:
        self._setting = DeviceSetting(vgpu=True, order=order)
        self.pods: dict[str, Stored] = {}
        self.ill = ""
        self.now = 1_700_000_000.0
        self.on_node = Annotations()
        self.unserved: set[str] = set()
        """Pods that are bound and have not been served by the device plugin yet."""
        self.crash()

    def crash(self) -> None:
        """Another process begins with what the API server has."""
        self.rig = Rig()
        self.rig.cache.set_device_setting(self._setting)
        self.rig.see(min_member=1)
        self.rig.cache.set_node(gpu_node(NODE, *GPUS, ill=self.ill))
        self.planned: set[str] = set()
        self.locks = NodeLocks(self.on_node, clock=lambda: self.now)
        for name in self.pods:
            self.show(name)

    def show(self, name: str) -> None:
        pod = self.pods[name]
        node = NODE if pod.bound else ""
        said = {IDS: pod.said} if pod.said else {}
        self.rig.pod(name, shape=pod.shape, node=node, annotations=said)

    @property
    def here(self) -> NodeDevices:
        [here] = Snapshotter(self.rig.cache).snapshot().devices[NODE]
        return here

    def create(self, name: str, shape: PodShape, lie: str) -> None:
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

    def decision(self, name: str) -> str:
        found = self.rig.cache.devices.decision(self.rig.uid(name), now=1.0)
        return "" if found is None else found[IDS]

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
            at_once(self.locks.take(uid, NODE, LOCK))
        except WriteError:
            return  # another pod has the lock: it is tried again
        if crash == "locked":
            self.crash()
            return
        if fails:
            at_once(self.locks.give_back(uid, NODE, LOCK))
            return
        assert not self.unserved, "the device plugin would not know which pod it serves"
        self.pods[name].said, self.pods[name].bound = told, True
        self.unserved.add(name)
        self.planned.discard(name)
        if crash:
            self.crash()
        else:
            self.locks.forget(uid, NODE, LOCK)
            self.show(name)

    def serve(self) -> None:
        """The device plugin gives the pod its devices and removes the lock."""
        if self.unserved:
            self.unserved.clear()
            self.on_node.there.clear()

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
        self.rig.cache.set_node(gpu_node(NODE, *GPUS, ill=gpu))

    # --- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        taken: dict[str, Counter[str]] = {gpu: Counter() for gpu in GPUS}
        for name, pod in self.pods.items():
            text = pod.said if pod.bound else self.decision(name) if name in self.planned else ""
            for entry in filter(None, text.split(":")):
                id_, _, memory, cores = entry.split(",")
                taken[id_] += Counter(memory=int(memory), cores=int(cores), sharers=1)
        for device, use in zip(self.here.devices, self.here.used, strict=True):
            counted = taken[device.id]
            assert counted["memory"] <= GPU_MIB
            assert counted["cores"] <= 100
            assert counted["sharers"] <= 10
            assert (use.memory, use.cores, use.sharers) == (
                counted["memory"],
                counted["cores"],
                counted["sharers"],
            )


SHAPES = st.builds(
    vgpu_shape,
    st.integers(1, 20),
    count=st.integers(1, 3),
    cores=st.sampled_from((0, 0, 30, 100)),
)
LIES = st.sampled_from(("", "", "GPU-a,NVIDIA,32768,100:", "GPU-b,NVIDIA,1,0:", "nonsense"))
NAMES = st.sampled_from([f"p{number}" for number in range(8)])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, SHAPES, LIES),
    st.tuples(
        st.sampled_from(("plan", "bind", "bind", "bind and crash", "withdraw", "end")), NAMES
    ),
    st.tuples(st.sampled_from(("lock and crash", "bind in vain")), NAMES),
    st.tuples(st.sampled_from(("crash", "serve", "serve", "wait"))),
    st.tuples(st.just("ill"), st.sampled_from(("", *GPUS))),
)


BINDS: Final[Mapping[str, dict[str, Any]]] = {
    "bind": {},
    "bind and crash": {"crash": "bound"},
    "lock and crash": {"crash": "locked"},
    "bind in vain": {"fails": True},
}


def act(world: World, what: str, *about: object) -> None:
    match what, about:
        case "create", (str(name), PodShape() as shape, str(lie)):
            if name not in world.pods:
                world.create(name, shape, lie)
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


@examples(100)
@given(st.sampled_from(DeviceOrder), st.lists(STEPS, min_size=10, max_size=30))
def test_no_device_is_given_twice_and_none_is_lost(
    order: DeviceOrder, steps: list[tuple[object, ...]]
) -> None:
    """After a crash places that were only planned are free, and bound pods have what they had."""
    world = World(order)
    for what, *about in steps:
        act(world, str(what), *about)
        world.check()
    for name in list(world.pods):
        world.end(name)
    world.check()
    assert not any(use.sharers for use in world.here.used)
    world.wait()
    world.create("last", vgpu_shape(1), "")
    world.fall_ill("")
    world.plan("last")
    world.bind("last")
    assert world.pods["last"].bound, "no lock that a crash left behind keeps pods out for ever"
