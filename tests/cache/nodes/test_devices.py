"""Devices that pods share: decided with their places, told with their Bindings, taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.device_families import DeviceSetting
from app.model.devices import DeviceOrder, ExclusiveRule
from app.model.ids import NodeName
from tests.builders import make_shape
from tests.cache.rig import Rig as Small
from tests.devices import gpu_node, vgpu_shape

N = NodeName("big")
IDS = "volcano.sh/vgpu-ids-new"
SETTING = DeviceSetting(vgpu=True, order=DeviceOrder.SPREAD)
GIB = 1024


class Rig(Small):
    """The node ``big`` has two GPUs of 32 GiB; the group ``g`` may have five members."""

    def __init__(self, *, setting: DeviceSetting = SETTING) -> None:
        super().__init__()
        self.cache.set_device_setting(setting)
        self.cache.set_node(gpu_node("big", "GPU-a", "GPU-b"))
        self.see(min_member=5)

    @property
    def free(self) -> list[int]:
        """GiB of each GPU."""
        return self._free("used")

    @property
    def ahead(self) -> list[int]:
        """GiB of each GPU once terminating pods are gone."""
        return self._free("ahead")

    def _free(self, name: str) -> list[int]:
        [here] = Snapshotter(self.cache).snapshot().devices[N]
        used = [use.memory for use in getattr(here, name)]
        return [
            (device.kind.memory - memory) // GIB
            for device, memory in zip(here.devices, used, strict=True)
        ]

    def ids(self, name: str) -> str | None:
        found = self.cache.devices.decision(self.uid(name), now=1.0)
        return None if found is None else found[IDS]

    def want(self, name: str, gib: int, *, said: str = "", **fields: Any) -> None:
        annotations = {IDS: said} if said else {}
        self.pod(name, shape=vgpu_shape(gib), annotations=annotations, **fields)


def told(id_: str, gib: int) -> str:
    return f"{id_},NVIDIA,{gib * GIB},0:"


def test_a_place_takes_memory_of_a_gpu() -> None:
    rig = Rig()
    rig.want("a", 8)
    rig.want("b", 4)
    assert rig.free == [32, 32]
    assert rig.place(a="big", b="big")
    assert (rig.ids("a"), rig.ids("b")) == (told("GPU-a", 8), told("GPU-b", 4))
    assert rig.free == [24, 28]


def test_a_place_that_is_taken_back_gives_its_devices_back() -> None:
    rig = Rig()
    rig.want("a", 8)
    assert rig.place(a="big")
    assert rig.free == [24, 32]
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now)
    assert (rig.ids("a"), rig.free) == (None, [32, 32])


def test_a_slot_takes_devices_and_the_member_that_comes_has_them() -> None:
    rig = Rig()
    rig.slot("big", shape=vgpu_shape(8))
    assert rig.free == [24, 32]
    rig.want("a", 8)
    assert (rig.ids("a"), rig.free) == (told("GPU-a", 8), [24, 32])


def test_after_a_restart_a_bound_pod_has_what_it_was_told() -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=told("GPU-b", 8))
    assert (rig.ids("a"), rig.free) == (told("GPU-b", 8), [32, 24])


def test_what_pods_were_told_goes_before_what_is_decided_anew() -> None:
    rig = Rig()
    rig.want("a", 32, node="big")
    rig.want("b", 32, node="big", said=told("GPU-a", 32))
    assert (rig.ids("a"), rig.ids("b")) == (told("GPU-b", 32), told("GPU-a", 32))


@pytest.mark.parametrize(
    "said",
    [
        told("GPU-x", 8),
        told("GPU-b", 8) + told("GPU-a", 8),
        told("GPU-b", 8) + ";" + told("GPU-b", 8),
        "GPU-b[group1-0],NVIDIA,8192,0:",
        "GPU-b",
        "GPU-b,NVIDIA",
        ":;,",
    ],
)
def test_what_is_not_about_what_the_pod_needs_is_not_ours(said: str) -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=said)
    assert (rig.ids("a"), rig.free) == (told("GPU-a", 8), [24, 32])


@pytest.mark.parametrize("amount", ["1", "-99999", "99999999", "0"])
def test_a_pod_takes_what_it_asks_for_whatever_its_owner_says(amount: str) -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=f"GPU-b,NVIDIA,{amount},-5:")
    assert rig.free == [32, 24]


def test_what_a_pod_without_a_node_says_does_not_count() -> None:
    rig = Rig()
    rig.want("a", 8, said=told("GPU-b", 8))
    assert (rig.ids("a"), rig.free) == (None, [32, 32])
    assert rig.place(a="big")
    assert rig.ids("a") == told("GPU-a", 8)


def test_what_an_owner_changes_later_has_no_effect() -> None:
    rig = Rig()
    rig.want("a", 8)
    assert rig.place(a="big")
    assert rig.ids("a") == told("GPU-a", 8)
    rig.want("a", 8, node="big", said=told("GPU-a", 8))
    rig.want("a", 8, node="big", said=told("GPU-b", 8), phase="Running")
    assert rig.free == [24, 32]


@pytest.mark.parametrize(("said", "free"), [("", [32, 32]), (told("GPU-b", 8), [32, 24])])
def test_a_foreign_pod_has_what_its_scheduler_told_it(said: str, free: list[int]) -> None:
    rig = Rig()
    rig.want("f", 8, node="big", said=said, scheduler="other")
    assert rig.free == free


def test_a_terminating_pod_has_its_devices_until_it_is_gone() -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=told("GPU-a", 8), phase="Running")
    rig.want("a", 8, node="big", said=told("GPU-a", 8), phase="Running", deleting=True)
    assert (rig.free, rig.ahead) == ([24, 32], [32, 32])
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.free == [32, 32]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_has_no_devices(phase: str) -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=told("GPU-a", 8), phase="Running")
    rig.want("a", 8, node="big", said=told("GPU-a", 8), phase=phase)
    assert rig.free == [32, 32]


def test_a_reserved_place_leaves_a_device_that_falls_ill_and_a_bound_pod_stays() -> None:
    rig = Rig()
    rig.want("a", 8)
    rig.want("b", 4, node="big", said=told("GPU-a", 4))
    assert rig.place(a="big")
    assert rig.ids("a") == told("GPU-b", 8)
    rig.cache.set_node(gpu_node("big", "GPU-a", "GPU-b", ill="GPU-b"))
    assert rig.ids("a") == told("GPU-a", 8)
    rig.cache.set_node(gpu_node("big", "GPU-a", "GPU-b", ill="GPU-a"))
    assert (rig.ids("a"), rig.free) == (told("GPU-b", 8), [28, 24])


def test_pods_that_were_there_before_the_node_are_counted_when_it_comes() -> None:
    rig = Rig()
    rig.cache.drop_node(N)
    rig.want("a", 8, node="big", said=told("GPU-b", 8))
    assert rig.ids("a") is None
    rig.cache.set_node(gpu_node("big", "GPU-a", "GPU-b"))
    assert rig.free == [32, 24]


def test_a_node_that_comes_back_has_the_pods_that_it_had() -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=told("GPU-b", 8))
    assert rig.free == [32, 24]
    rig.cache.drop_node(N)
    rig.cache.set_node(gpu_node("big", "GPU-a", "GPU-b"))
    assert rig.free == [32, 24]


def test_where_no_device_is_left_none_is_decided() -> None:
    rig = Rig()
    rig.want("a", 33)
    assert rig.place(a="big")
    assert (rig.ids("a"), rig.free) == (None, [32, 32])


def test_without_the_plugin_nothing_is_counted() -> None:
    rig = Rig(setting=DeviceSetting())
    rig.want("a", 8, node="big", said=told("GPU-b", 8))
    assert Snapshotter(rig.cache).snapshot().devices == {}
    assert not rig.cache.devices.needs(vgpu_shape(8).devices)
    rig.cache.set_device_setting(SETTING)
    assert rig.free == [32, 24]


def test_the_snapshot_tells_what_running_pods_have() -> None:
    rig = Rig()
    rig.want("a", 8, node="big", said=told("GPU-b", 8), phase="Running")
    [taken] = Snapshotter(rig.cache).snapshot(running=True).devices_taken[rig.uid("a")]
    assert [(at, use.memory) for at, use in taken.charges] == [(1, 8 * GIB)]


def test_pods_without_devices_are_left_alone() -> None:
    rig = Rig()
    rig.pod("a", shape=make_shape())
    assert rig.place(a="big")
    assert rig.cache.devices.decision(rig.uid("a"), now=1.0) is None


ML = ExclusiveRule((("app", "training"), ("team", "ml")))
WEB = ExclusiveRule((("app", "web"),))
PACKED = DeviceSetting(vgpu=True, order=DeviceOrder.BINPACK)
TRAINING = {"app": "training", "team": "ml"}


def exclusive(*rules: ExclusiveRule) -> DeviceSetting:
    return replace(PACKED, exclusive=rules)


def gpus_of(rig: Rig, *names: str) -> list[str]:
    return [(rig.ids(name) or "").partition(",")[0] for name in names]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        (TRAINING, TRAINING, False),
        (TRAINING, {"app": "training"}, True),
        (TRAINING, {}, True),
        (TRAINING, {"app": "web"}, True),
        ({"app": "web"}, {"app": "web", "tier": "front"}, False),
    ],
    ids=str,
)
def test_pods_that_match_the_same_rule_share_no_gpu(
    first: dict[str, str], second: dict[str, str], share: bool
) -> None:
    rig = Rig(setting=exclusive(ML, WEB))
    rig.want("a", 8, labels=first)
    rig.want("b", 8, labels=second)
    assert rig.place(a="big", b="big")
    a, b = gpus_of(rig, "a", "b")
    assert (a == b) is share


def test_a_pod_without_a_gpu_of_its_own_gets_none() -> None:
    rig = Rig(setting=exclusive(ML))
    for name in ("a", "b", "c"):
        rig.want(name, 8, labels=TRAINING)
    assert rig.place(a="big", b="big", c="big")
    assert sorted(gpus_of(rig, "a", "b", "c")) == ["", "GPU-a", "GPU-b"]
    [without] = [name for name in ("a", "b", "c") if rig.ids(name) is None]
    rig.cache.reservations.withdraw(rig.uid(without), now=rig.now)
    rig.cache.drop_pod(rig.uid(next(name for name in ("a", "b", "c") if name != without)))
    assert rig.place(**{without: "big"})
    assert gpus_of(rig, without) != [""]


def test_after_a_restart_bound_pods_keep_others_of_their_rule_off() -> None:
    rig = Rig(setting=exclusive(ML))
    rig.want("a", 8, node="big", said=told("GPU-a", 8), labels=TRAINING)
    rig.want("b", 8, labels=TRAINING)
    assert rig.place(b="big")
    assert gpus_of(rig, "a", "b") == ["GPU-a", "GPU-b"]


def test_rules_that_come_while_pods_are_there_count_for_them() -> None:
    rig = Rig(setting=PACKED)
    rig.want("a", 8, node="big", said=told("GPU-a", 8), labels=TRAINING)
    rig.want("b", 8, labels=TRAINING)
    rig.cache.set_device_setting(exclusive(ML))
    assert rig.place(b="big")
    assert gpus_of(rig, "a", "b") == ["GPU-a", "GPU-b"]
    rig.want("c", 8, labels=TRAINING)
    rig.cache.set_device_setting(PACKED)
    assert rig.place(c="big")
    assert gpus_of(rig, "c") != [""]
