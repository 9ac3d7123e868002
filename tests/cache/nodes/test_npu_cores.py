"""Chips that MindCluster's device plugin cuts: what pods have of them, told and taken back."""

from __future__ import annotations

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import NodeName
from tests.cache.rig import Rig as Small
from tests.npu_cores import SETTING, chip_node, chip_shape

N = NodeName("big")
CORES, REAL = "huawei.com/npu-core", "huawei.com/AscendReal"


class Rig(Small):
    """The node ``big`` has two chips that work."""

    def __init__(self) -> None:
        super().__init__()
        self.cache.set_device_setting(SETTING)
        self.cache.set_node(chip_node("big", 2))
        self.cache.set_chip_health("big", frozenset())
        self.see(min_member=5)

    @property
    def free(self) -> list[int]:
        """AI cores of each chip that works."""
        here = Snapshotter(self.cache).snapshot().devices.get(N)
        if here is None:
            return []
        both = zip(here[0].devices, here[0].used, strict=True)
        return [device.kind.cores - use.cores for device, use in both if device.healthy]

    def told(self, name: str) -> str | None:
        found = self.cache.devices.decision(self.uid(name), now=1.0)
        return None if found is None else found[CORES]


def test_a_place_takes_a_part_of_a_chip_and_gives_it_back() -> None:
    rig = Rig()
    rig.pod("a", shape=chip_shape(4))
    rig.pod("b", shape=chip_shape(2))
    rig.pod("c", shape=chip_shape(8))
    assert rig.place(a="big", b="big", c="big")
    assert [rig.told(name) for name in "abc"] == ["0-vir04_3c", "0-vir02_1c", "1"]
    assert rig.free == [2, 0]
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now)
    assert (rig.told("a"), rig.free) == (None, [6, 0])


def test_chips_count_once_the_device_plugin_tells_of_their_health() -> None:
    rig = Rig()
    rig.cache.set_chip_health("big", None)
    assert rig.free == []
    rig.cache.set_chip_health("big", frozenset({"Ascend310P-1"}))
    assert rig.free == [8]


def test_a_place_on_a_chip_that_falls_ill_is_decided_anew() -> None:
    rig = Rig()
    rig.pod("a", shape=chip_shape(4))
    assert rig.place(a="big")
    assert rig.told("a") == "0-vir04_3c"
    rig.cache.set_chip_health("big", frozenset({"Ascend310P-0"}))
    assert rig.told("a") == "1-vir04_3c"


def test_a_bound_pod_has_what_it_was_told() -> None:
    rig = Rig()
    rig.pod("a", shape=chip_shape(4), node="big", annotations={CORES: "1-vir04_3c"})
    assert (rig.told("a"), rig.free) == ("1-vir04_3c", [8, 4])


def test_a_pod_that_says_more_than_it_asks_for_gets_what_it_asks_for() -> None:
    rig = Rig()
    rig.pod("a", shape=chip_shape(2), node="big", annotations={CORES: "1-vir04"})
    assert (rig.told("a"), rig.free) == ("0-vir02_1c", [6, 8])


def test_what_the_device_plugin_has_given_counts_from_the_moment_it_says_so() -> None:
    """It serves the oldest pod first, so two pods of one template may change places."""
    rig = Rig()
    rig.pod("a", shape=chip_shape(2), node="big", annotations={CORES: "0-vir02_1c"})
    assert rig.free == [6, 8]
    said = {CORES: "0-vir02_1c", REAL: "Ascend310P-2c.1cpu-100-1_2"}
    rig.pod("a", shape=chip_shape(2), node="big", annotations=said)
    assert rig.free == [8, 6]
    rig.pod("a", shape=chip_shape(2), node="big", annotations={**said, REAL: "nonsense"})
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.free == [8, 8]


def test_parts_that_lie_in_all_groups_of_cores_leave_single_cores_only() -> None:
    rig = Rig()
    rig.cache.set_chip_health("big", frozenset({"Ascend310P-1"}))
    for group in range(4):
        said = {REAL: f"Ascend310P-1c-{100 + group}-0_{group}"}
        rig.pod(f"p{group}", shape=chip_shape(1), node="big", annotations=said)
    rig.pod("two", shape=chip_shape(2))
    rig.pod("one", shape=chip_shape(1))
    assert rig.place(two="big", one="big")
    assert (rig.told("two"), rig.told("one")) == (None, "0-vir01")
