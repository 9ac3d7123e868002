"""deviceshare: pods go where the devices are free that they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.plugins.deviceshare import config_map_of, setting_of
from app.core.policy import NodesNow
from app.model.conf import PluginConf
from app.model.device_families import (
    NPU_CORES,
    VGPU,
    DeviceSetting,
    DevicesTaken,
    GpuShare,
    NodeDevices,
)
from app.model.devices import UNUSED, Device, DeviceKind, DeviceOrder, Use
from app.model.exchange import ANY_EQUAL
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.npu_cores import CHIP
from app.model.reason import Cause
from app.model.shape import PodShape
from tests.builders import make_gang, make_node, make_pod, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cycle, members, policies
from tests.core.plugins.sessions import open_plugin
from tests.devices import vgpu_shape
from tests.npu_cores import chip_shape
from tests.running import Runs, make_running
from tests.scale import examples

GIB = 1024
ON: Mapping[str, object] = {"deviceshare.VGPUEnable": True}
OTHER = GroupKey("default/other")
REFUSED = "no devices for it"


def gpus(
    *free: int, size: int = 32, sharers: int = 10, ahead: Sequence[int] | None = None
) -> NodeDevices:
    """GPUs with so many GiB free."""
    kind = DeviceKind("NVIDIA-V100", size * GIB, sharers)

    def uses(amounts: Sequence[int]) -> tuple[Use, ...]:
        return tuple(Use(1, (size - gib) * GIB) if gib < size else UNUSED for gib in amounts)

    devices = tuple(Device(f"GPU-{at}", at, kind) for at in range(len(free)))
    return NodeDevices(VGPU, devices, uses(free), uses(ahead or free), ((),) * len(free))


def gang(name: str, count: int, shape: PodShape, **fields: Any) -> Gang:
    return make_gang(name, waiting=members(name, count, shape=shape), **fields)


def plan(
    *gangs: Gang, on: Sequence[NodeDevices | None], arguments: Mapping[str, object] = ON
) -> Outcome:
    nodes = tuple(make_node(f"n{at}", cpu=640_000, memory=1 << 50) for at in range(len(on)))
    known = {node.name: (each,) for node, each in zip(nodes, on, strict=True) if each is not None}
    conf = PluginConf("deviceshare", arguments=arguments)
    by = policies((("priority", "gang"), ("predicates", conf)))
    return cycle(*gangs, nodes=nodes, by=by, devices=known)


@pytest.mark.parametrize(
    ("shape", "node", "goes"),
    [
        (vgpu_shape(8), gpus(8), True),
        (vgpu_shape(8), gpus(7), False),
        (vgpu_shape(8), gpus(7, 7), False),
        (vgpu_shape(8, count=2), gpus(8, 8), True),
        (vgpu_shape(8, count=2), gpus(32), False),
        (vgpu_shape(8, cores=100), gpus(31), False),
        (vgpu_shape(8, cores=100), gpus(32), True),
        (vgpu_shape(8), None, False),
        (vgpu_shape(8, types="A100"), gpus(32), False),
        (vgpu_shape(8, ids="GPU-1"), gpus(32), False),
        (make_shape(), None, True),
    ],
    ids=str,
)
def test_where_a_pod_may_go(shape: PodShape, node: NodeDevices | None, goes: bool) -> None:
    outcome = plan(gang("g", 1, shape), on=(node,))
    if goes:
        assert outcome.nodes("g") == {"g-0": "n0"}
        return
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.DEVICES
    assert [count.text for count in refusal.nodes] == [REFUSED]


@pytest.mark.parametrize(
    ("shape", "on", "text"),
    [
        (
            vgpu_shape(8),
            (gpus(4, 4), gpus(4, 2)),
            "8 GiB asked of a GPU; 3 GPUs have 4 GiB free, none more",
        ),
        (vgpu_shape(8), (gpus(4),), "8 GiB asked of a GPU; 1 GPU has 4 GiB free, none more"),
        (
            vgpu_shape(8, count=3),
            (gpus(8, 8, 1), gpus(8)),
            "3 GPUs asked with 8 GiB free; at most 2 on a node",
        ),
        (vgpu_shape(8, types="A100"), (gpus(32),), "no GPU is of a type, UUID and mode"),
        (vgpu_shape(1), (gpus(32, sharers=0),), "no GPU has 1 GiB free for one more container"),
        (vgpu_shape(1, cores=101), (gpus(32),), "101 cores asked of a GPU; at most 100 are free"),
    ],
)
def test_a_refusal_has_numbers_per_device(
    shape: PodShape, on: Sequence[NodeDevices], text: str
) -> None:
    assert text in plan(gang("g", 1, shape), on=on).text("g")


def test_a_gang_gets_its_devices_whole_or_not_at_all() -> None:
    assert len(plan(gang("g", 4, vgpu_shape(16)), on=(gpus(32), gpus(32))).nodes("g")) == 4
    assert not plan(gang("g", 5, vgpu_shape(16)), on=(gpus(32), gpus(32))).nodes("g")


def test_what_one_gang_gave_up_another_has() -> None:
    big, small = gang("big", 3, vgpu_shape(16)), gang("small", 2, vgpu_shape(16), created=1.0)
    outcome = plan(big, small, on=(gpus(32),))
    assert (outcome.nodes("big"), len(outcome.nodes("small"))) == ({}, 2)


def test_pods_of_a_group_are_kept_on_different_devices_where_they_ask_for_that() -> None:
    apart = vgpu_shape(1, policy="spread")
    assert len(plan(gang("g", 2, apart), on=(gpus(32, 32),)).nodes("g")) == 2
    assert not plan(gang("g", 3, apart), on=(gpus(32, 32),)).nodes("g")
    two = (gang("a", 2, apart), gang("b", 2, apart))
    outcome = plan(*two, on=(gpus(32, 32),))
    assert [len(outcome.nodes(name)) for name in ("a", "b")] == [2, 2]


@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        (vgpu_shape(1), ANY_EQUAL.within("devices")),
        (vgpu_shape(1, policy="spread"), ANY_EQUAL.within("devices of group default/g")),
        (make_shape(), ANY_EQUAL),
    ],
)
def test_with_which_others_a_place_may_be_exchanged(shape: PodShape, inside: Any) -> None:
    outcome = plan(gang("g", 1, shape), on=(gpus(32),))
    assert [p.exchange for d in outcome.decisions("g") for p in d.placements] == [inside]


@pytest.mark.parametrize(
    ("policy", "goes"), [("binpack", "n1"), ("spread", "n0"), ("", None)], ids=str
)
def test_nodes_are_scored_by_the_policy(policy: str, goes: str | None) -> None:
    arguments = {**ON, "deviceshare.SchedulePolicy": policy, "deviceshare.ScheduleWeight": "10"}
    on = (gpus(32), gpus(16), gpus(24))
    found = plan(gang("g", 1, vgpu_shape(8)), on=on, arguments=arguments).nodes("g")
    assert found == {"g-0": goes or found["g-0"]}


@pytest.mark.parametrize(("policy", "scores"), [("binpack", [25, 75, 0]), ("spread", [100, 0, 0])])
def test_scores(policy: str, scores: list[float]) -> None:
    rig = OnLedger(gpus(32), gpus(16), gpus(4), policy=policy, weight=2)
    assert rig.scores(vgpu_shape(8)) == [2 * each for each in scores]


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        ({}, DeviceSetting()),
        ({"GPUSharingEnable": True}, DeviceSetting(gpu_share=GpuShare.MEMORY)),
        ({"GPUNumberEnable": "true"}, DeviceSetting(gpu_share=GpuShare.NUMBER)),
        ({"VGPUEnable": "true", "NodeLockEnable": True}, DeviceSetting(vgpu=True, lock=True)),
        ({"AscendHAMiVNPUEnable": "1"}, DeviceSetting(ascend=True)),
        ({"SchedulePolicy": "binpack"}, DeviceSetting(order=DeviceOrder.BINPACK)),
        ({"SchedulePolicy": "spread"}, DeviceSetting(order=DeviceOrder.SPREAD)),
    ],
    ids=str,
)
def test_arguments(arguments: dict[str, object], setting: DeviceSetting) -> None:
    assert setting_of(conf(arguments)) == setting


def conf(arguments: Mapping[str, object]) -> PluginConf:
    return PluginConf(
        "deviceshare", arguments={f"deviceshare.{key}": value for key, value in arguments.items()}
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"VGPUEnable": "perhaps"}, "deviceshare.VGPUEnable"),
        ({"SchedulePolicy": "pack"}, "deviceshare.SchedulePolicy"),
        ({"SchedulePolicy": 5}, "deviceshare.SchedulePolicy"),
        ({"ScheduleWeight": "heavy"}, "deviceshare.ScheduleWeight"),
        ({"KnownGeometriesCMName": 7}, "deviceshare.KnownGeometriesCMName"),
        ({"GPUSharingEnable": True, "GPUNumberEnable": True}, "deviceshare.GPUNumberEnable"),
        ({"GPUSharingEnable": True, "VGPUEnable": True}, "deviceshare.GPUSharingEnable"),
        ({"GPUNumberEnable": True, "VGPUEnable": True}, "deviceshare.GPUNumberEnable"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(ConfError, match=named):
        policies(((conf(arguments),),))


def test_the_config_map_of_the_device_plugins() -> None:
    assert config_map_of(conf({})) == ("kube-system", "volcano-vgpu-device-config")
    given_ = {"KnownGeometriesCMName": "a", "KnownGeometriesCMNamespace": "b"}
    assert config_map_of(conf(given_)) == ("b", "a")


# --- the ledger ----------------------------------------------------------------------------------


class OnLedger:
    """Nodes with GPUs, and what is allowed there as the ledger moves; a pod runs on the first."""

    def __init__(self, *on: NodeDevices, policy: str = "binpack", weight: int = 0) -> None:
        nodes = tuple(make_node(f"n{at}", cpu=640_000, memory=1 << 50) for at in range(len(on)))
        self.runs = make_pod("runs", node=nodes[0].name, phase="Running", shape=vgpu_shape(8))
        old = make_gang("old")
        has = DevicesTaken(VGPU.name, old.key, ((0, Use(1, 8 * GIB)),))
        self.snapshot = make_snapshot(
            nodes=nodes,
            devices={node.name: (each,) for node, each in zip(nodes, on, strict=True)},
            devices_taken={self.runs.uid: (has,)},
            gangs=(old,),
            running=make_running([Runs(self.runs, 0, old.key)]),
        )
        arguments = {
            **ON,
            "deviceshare.SchedulePolicy": policy,
            "deviceshare.ScheduleWeight": weight,
        }
        self.hooks, self.ledger = open_plugin("deviceshare", self.snapshot, arguments=arguments)

    def nodes(self, *, ahead: bool = False) -> NodesNow:
        count = len(self.snapshot.table.nodes)
        return NodesNow(np.arange(count), self.snapshot.table.allocatable.T, ahead)

    def scores(self, shape: PodShape) -> list[float]:
        of = gang("g", 1, shape)
        assert self.hooks.node_score is not None
        found: list[float] = self.hooks.node_score.score(of, of.waiting[0], self.nodes()).tolist()
        return found

    def takes(self, shape: PodShape, *, ahead: bool = False) -> bool:
        of = gang("g", 1, shape)
        assert self.hooks.node_rules is not None
        [rule] = self.hooks.node_rules
        return bool(rule.allows(of, of.waiting[0], self.nodes(ahead=ahead))[0])

    def place(self, shape: PodShape, *, pipelined: bool = False) -> None:
        of = gang("g", 1, shape)
        put = self.ledger.pipeline if pipelined else self.ledger.place
        put(of, of.waiting[0], node=0)


def test_evicted_pods_give_back_what_is_about_to_be_free() -> None:
    rig = OnLedger(gpus(4))
    assert not rig.takes(vgpu_shape(12), ahead=True)
    with rig.ledger.trial():
        rig.ledger.evict(0)
        assert rig.takes(vgpu_shape(12), ahead=True)
        assert not rig.takes(vgpu_shape(12))
    assert not rig.takes(vgpu_shape(12), ahead=True)


def test_pipelined_places_take_what_is_about_to_be_free() -> None:
    rig = OnLedger(gpus(4))
    rig.ledger.evict(0)
    with rig.ledger.trial():
        rig.place(vgpu_shape(10), pipelined=True)
        assert not rig.takes(vgpu_shape(3), ahead=True)
        assert rig.takes(vgpu_shape(3))
    assert rig.takes(vgpu_shape(12), ahead=True)


def test_terminating_pods_give_back_what_they_have() -> None:
    rig = OnLedger(gpus(4, ahead=(32,)))
    assert (rig.takes(vgpu_shape(8)), rig.takes(vgpu_shape(8), ahead=True)) == (False, True)


ONE = st.builds(
    vgpu_shape, st.integers(1, 16), count=st.integers(1, 2), cores=st.sampled_from((0, 40, 100))
)


@examples(1000)
@given(st.lists(st.tuples(ONE, st.booleans()), max_size=8))
def test_what_is_left_is_what_a_fresh_look_finds(steps: list[tuple[PodShape, bool]]) -> None:
    """After any places and roll-backs the node takes what it takes with only the kept ones."""
    rig, fresh = OnLedger(gpus(32, 32)), OnLedger(gpus(32, 32))
    for shape, keeps in steps:
        with rig.ledger.trial() as trial:
            if rig.takes(shape):
                rig.place(shape)
            rig.takes(vgpu_shape(1))
            if keeps:
                trial.keep()
        if keeps and fresh.takes(shape):
            fresh.place(shape)
    for gib in (1, 8, 16, 24, 32):
        for count in (1, 2):
            shape = vgpu_shape(gib, count=count)
            assert rig.takes(shape) is fresh.takes(shape)


def test_pods_without_devices_are_no_concern_of_the_rule() -> None:
    rig = OnLedger(gpus(4))
    assert rig.hooks.node_rules is not None
    of = gang("g", 1, make_shape())
    assert [rule.key(of, of.waiting[0]) for rule in rig.hooks.node_rules] == [None]


def test_without_a_family_the_plugin_has_no_say() -> None:
    hooks, _ = open_plugin("deviceshare", make_snapshot())
    assert hooks.node_rules is None


def marked(gib: int, *marks: str) -> PodShape:
    shape = vgpu_shape(gib)
    assert shape.devices is not None
    return replace(shape, devices=replace(shape.devices, exclusive=marks))


def test_members_that_match_a_rule_get_a_gpu_each_or_none() -> None:
    assert len(plan(gang("g", 2, marked(8, "rule a=b")), on=(gpus(32, 32),)).nodes("g")) == 2
    waits = plan(gang("g", 3, marked(8, "rule a=b")), on=(gpus(32, 32),))
    assert waits.nodes("g") == {}
    assert waits.refusal("g").cause is Cause.DEVICES
    assert len(plan(gang("g", 3, marked(8)), on=(gpus(32, 32),)).nodes("g")) == 3


def test_pods_of_other_rules_share_gpus() -> None:
    one, two = gang("one", 1, marked(8, "rule a=b")), gang("two", 1, marked(8, "rule c=d"))
    outcome = plan(one, two, on=(gpus(32),))
    assert (outcome.nodes("one"), outcome.nodes("two")) == ({"one-0": "n0"}, {"two-0": "n0"})
    again = gang("again", 1, marked(8, "rule a=b"))
    outcome = plan(one, again, on=(gpus(32),))
    assert len(outcome.nodes("one")) + len(outcome.nodes("again")) == 1


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ([{"app": "a", "team": "b"}, {"x": 1}], [(("app", "a"), ("team", "b")), (("x", "1"),)]),
        ([{"gpu": True}, {"gpu": "true"}], [(("gpu", "true"),)]),
        ({"app": "a"}, [(("app", "a"),)]),
        ([], []),
        (None, []),
    ],
    ids=str,
)
def test_rules_are_mappings_of_labels(given: object, rules: list[object]) -> None:
    arguments = {"deviceshare.GPUExclusiveRules": given}
    found = setting_of(PluginConf("deviceshare", arguments=arguments)).exclusive
    assert [rule.labels for rule in found] == rules


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("app=a", "rule 1: 'app=a' is no mapping of labels to values"),
        ([{"app": "a"}, {}], "rule 2: {} is no mapping of labels to values"),
        ([{"app": ["a"]}], "rule 1: 'app': ['a'] is no label with its value"),
        ([{1: "a"}], "rule 1: 1: 'a' is no label with its value"),
    ],
    ids=str,
)
def test_rules_that_cannot_be_meant_are_refused(given: object, said: str) -> None:
    arguments = {"deviceshare.GPUExclusiveRules": given}
    with pytest.raises(ConfError) as refused:
        setting_of(PluginConf("deviceshare", arguments=arguments))
    key = "deviceshare.GPUExclusiveRules"
    assert str(refused.value) == f"plugin deviceshare: argument {key}: {said}"


# --- chips that MindCluster's device plugin cuts ------------------------------------------------

CUT: Mapping[str, object] = {"deviceshare.AscendMindClusterVNPUEnable": "true"}


def chips(*used: tuple[int, int, int], ill: bool = False) -> NodeDevices:
    """Chips of which so many AI cores, AI CPUs and shares of the video units are taken."""
    devices = tuple(
        Device(f"Ascend310P-{at}", at, CHIP, healthy=not ill) for at in range(len(used))
    )
    uses = tuple(
        Use(1, cores=cores, cpus=cpus, video=video) if cores else UNUSED
        for cores, cpus, video in used
    )
    return NodeDevices(NPU_CORES, devices, uses, uses, ((),) * len(used))


FREE = (0, 0, 0)


@pytest.mark.parametrize(
    ("shape", "on", "text"),
    [
        (
            chip_shape(4),
            (chips((6, 3, 0), (6, 3, 0)), chips((7, 1, 0))),
            "4 AI cores asked of an Ascend310P; 2 Ascend310P have 2 AI cores free, none more",
        ),
        (
            chip_shape(2),
            (chips((7, 3, 0)),),
            "2 AI cores asked of an Ascend310P; 1 Ascend310P has 1 AI core free, none more",
        ),
        (
            chip_shape(4, level="high"),
            (chips((4, 6, 0)),),
            "template vir04_3c needs 3 AI CPUs of an Ascend310P; at most 1 are free",
        ),
        (
            chip_shape(4, video="yes"),
            (chips((1, 1, 1)),),
            "template vir04_4c_dvpp needs the DVPP of an Ascend310P; on each of them it is in use",
        ),
        (
            chip_shape(16),
            (chips(FREE, (1, 1, 1)), chips(FREE)),
            "2 whole Ascend310P asked; at most 1 free on a node",
        ),
        (
            chip_shape(4),
            (chips((6, 2, 0), (4, 7, 0)),),
            "no Ascend310P has all at once that template vir04_3c needs: "
            "4 AI cores in free groups, 3 AI CPUs, DVPP",
        ),
        (chip_shape(1), (chips(FREE, ill=True),), "no Ascend310P works that a device plugin tells"),
        (chip_shape(1), (None,), "no Ascend310P works that a device plugin tells of"),
        (chip_shape(3), (chips(FREE),), "3 is not 1, 2, 4 or a multiple of 8"),
    ],
)
def test_a_refusal_of_chips_has_numbers(
    shape: PodShape, on: Sequence[NodeDevices | None], text: str
) -> None:
    assert text in plan(gang("g", 1, shape), on=on, arguments=CUT).text("g")


def test_a_gang_gets_parts_of_chips_whole_or_not_at_all() -> None:
    on = (chips(FREE), chips(FREE))
    assert len(plan(gang("g", 4, chip_shape(4)), on=on, arguments=CUT).nodes("g")) == 4
    assert not plan(gang("g", 5, chip_shape(4)), on=on, arguments=CUT).nodes("g")


def test_a_node_goes_first_where_no_smaller_template_has_to_do() -> None:
    weighed = {**CUT, "deviceshare.ScheduleWeight": 1}
    on = (chips((4, 4, 4)), chips(FREE))
    high = plan(gang("g", 1, chip_shape(4, level="high")), on=on, arguments=weighed)
    assert high.nodes("g") == {"g-0": "n1"}
    low = plan(gang("g", 1, chip_shape(4)), on=on, arguments=weighed)
    assert low.nodes("g") == {"g-0": "n0"}


@pytest.mark.parametrize("given_", ["perhaps", 2, ["true"]])
def test_a_switch_that_is_none_is_refused_with_its_key(given_: object) -> None:
    conf = PluginConf("deviceshare", arguments={"deviceshare.AscendMindClusterVNPUEnable": given_})
    with pytest.raises(ConfError, match=r"deviceshare\.AscendMindClusterVNPUEnable"):
        setting_of(conf)
