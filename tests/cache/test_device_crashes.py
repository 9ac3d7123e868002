"""Devices through random plans, Bindings, ends and crashes: none is given twice, none is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.devices import Given, assign, on_node
from app.model.device_families import DeviceSetting, NodeDevices
from app.model.devices import DeviceOrder
from app.model.ids import NodeName
from app.model.shape import PodShape
from tests.cache.rig import Rig
from tests.devices import GPU_MIB, gpu_node, vgpu_shape
from tests.scale import examples

NODE: Final = NodeName("big")
IDS: Final = "volcano.sh/vgpu-ids-new"
GPUS: Final = ("GPU-a", "GPU-b", "GPU-c")


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
        self.crash()

    def crash(self) -> None:
        """Another process begins with what the API server has."""
        self.rig = Rig()
        self.rig.cache.set_device_setting(self._setting)
        self.rig.see(min_member=1)
        self.rig.cache.set_node(gpu_node(NODE, *GPUS, ill=self.ill))
        self.planned: set[str] = set()
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

    def bind(self, name: str, *, crash: bool) -> None:
        """The API server takes the Binding; the process may crash before it hears of that."""
        if name not in self.planned:
            return
        told = self.decision(name)
        if not told:  # a device fell ill, and no other was free
            self.withdraw(name)
            return
        self.pods[name].said, self.pods[name].bound = told, True
        self.planned.discard(name)
        if crash:
            self.crash()
        else:
            self.show(name)

    def end(self, name: str) -> None:
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
        st.sampled_from(("plan", "plan", "bind", "bind and crash", "withdraw", "end")), NAMES
    ),
    st.tuples(st.just("crash")),
    st.tuples(st.just("ill"), st.sampled_from(("", *GPUS))),
)


def act(world: World, what: str, *about: object) -> None:
    match what, about:
        case "create", (str(name), PodShape() as shape, str(lie)):
            if name not in world.pods:
                world.create(name, shape, lie)
                world.plan(name)
        case "crash", ():
            world.crash()
        case "ill", (str(gpu),):
            world.fall_ill(gpu)
        case _, (str(name),) if name in world.pods:
            if what == "plan":
                world.plan(name)
            elif what.startswith("bind"):
                world.bind(name, crash=what != "bind")
            elif what == "withdraw":
                world.withdraw(name)
            else:
                world.end(name)


@examples(100)
@given(st.sampled_from(DeviceOrder), st.lists(STEPS, max_size=30))
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
