"""The cpus that pods have to themselves: decided with their places until the node's agent tells."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import NodeName
from app.model.numa import NUMA_DECISION, Cpus, NumaLayout, NumaNeed, NumaPolicy, NumaTopology
from app.model.shape import PodShape
from tests.builders import make_node, make_pod, make_shape
from tests.cache.rig import Rig as Small

N = NodeName("big")
LAYOUT = NumaLayout(NumaPolicy.SINGLE_NUMA_NODE, True, (0, 1), (8, 8))


def shape(*cpus: int) -> PodShape:
    need = NumaNeed(NumaPolicy.SINGLE_NUMA_NODE, cpus)
    return make_shape(cpu=1000 * sum(cpus), memory=0, numa=need)


class Rig(Small):
    """The node ``big`` has two NUMA nodes of eight cpus; the group ``g`` may have five members."""

    def __init__(self, *, agent: bool = True) -> None:
        super().__init__()
        self.cache.set_node(make_node("big", cpu=16_000))
        self.see(min_member=5)
        if agent:
            self.says(8, 8)

    def says(
        self, *free: int, layout: NumaLayout = LAYOUT, pods: Mapping[str, Cpus] | None = None
    ) -> None:
        """The node's agent writes its Numatopology."""
        self.cache.set_numa(NumaTopology(N, layout, free, pods or {}))

    @property
    def free(self) -> Cpus:
        return Snapshotter(self.cache).snapshot().numa[N].free

    @property
    def coming(self) -> Cpus:
        return Snapshotter(self.cache).snapshot().numa[N].coming

    def taken(self) -> dict[str, Cpus]:
        found = Snapshotter(self.cache).snapshot(running=True).numa_taken
        return {uid.removeprefix("uid-"): cpus for uid, cpus in found.items()}

    def decision(self, name: str) -> Cpus | None:
        found = self.cache.numa.decision(self.uid(name))
        return None if found is None else found[1]

    def want(self, name: str, *cpus: int, **fields: Any) -> None:
        self.pod(name, shape=shape(*cpus), **fields)


def test_a_place_takes_cpus_of_a_numa_node() -> None:
    rig = Rig()
    rig.want("a", 5)
    rig.want("b", 5)
    assert rig.free == (8, 8)
    assert rig.place(a="big", b="big")
    assert (rig.decision("a"), rig.decision("b"), rig.free) == ((5, 0), (0, 5), (3, 3))


def test_a_place_that_is_taken_back_gives_its_cpus_back() -> None:
    rig = Rig()
    rig.want("a", 5)
    assert rig.place(a="big")
    assert rig.free == (3, 8)
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now)
    assert (rig.decision("a"), rig.free) == (None, (8, 8))


def test_a_slot_takes_cpus_and_the_member_that_comes_has_them() -> None:
    rig = Rig()
    rig.slot("big", shape=shape(5))
    assert rig.free == (3, 8)
    rig.want("a", 5)
    assert (rig.decision("a"), rig.free) == ((5, 0), (3, 8))


@pytest.mark.parametrize("known_by", ["uid-a", "default/a"])
def test_once_the_agent_tells_of_a_pod_its_word_counts(known_by: str) -> None:
    rig = Rig()
    rig.want("a", 5, node="big")
    assert rig.free == (3, 8)
    rig.says(8, 3, pods={known_by: (0, 5)})
    assert (rig.free, rig.taken()) == ((8, 3), {"a": (0, 5)})


def test_a_pod_that_the_agent_has_not_seen_yet_is_counted_beside_its_word() -> None:
    rig = Rig()
    rig.want("a", 5, node="big")
    rig.want("b", 2, node="big")
    rig.says(3, 8, pods={"uid-a": (5, 0)})
    assert rig.free == (1, 8)


@pytest.mark.parametrize(("phase", "free"), [("Pending", (3, 8)), ("Running", (8, 8))])
def test_agents_that_name_no_pods_have_seen_those_that_run(phase: str, free: Cpus) -> None:
    rig = Rig()
    rig.want("a", 5, node="big", phase=phase)
    assert rig.free == free


def test_a_pod_that_begins_to_run_is_in_what_such_an_agent_says() -> None:
    rig = Rig()
    rig.want("a", 5, node="big")
    assert rig.free == (3, 8)
    rig.want("a", 5, node="big", phase="Running")
    assert rig.free == (8, 8)
    rig.cache.drop_pod(rig.uid("a"))
    assert (rig.free, rig.taken()) == ((8, 8), {})


def test_after_a_restart_a_bound_pod_has_what_it_was_told() -> None:
    rig = Rig()
    told = {NUMA_DECISION: '{"numa":{"1":{"cpu":"5"}}}'}
    rig.want("a", 5, node="big", annotations=told)
    assert (rig.decision("a"), rig.free) == ((0, 5), (8, 3))


@pytest.mark.parametrize(
    "cpus",
    [
        '"1":{"cpu":"-5"}',
        '"0":{"cpu":"8"},"1":{"cpu":"-3"}',
        '"1":{"cpu":"0"}',
        '"0":{"cpu":"8"}',
        '"7":{"cpu":"5"}',
    ],
)
def test_a_decision_that_is_not_about_what_the_pod_needs_is_not_ours(cpus: str) -> None:
    rig = Rig()
    told = {NUMA_DECISION: f'{{"numa":{{{cpus}}}}}'}
    rig.want("a", 5, node="big", annotations=told)
    assert (rig.decision("a"), rig.free) == ((5, 0), (3, 8))


def test_pods_that_were_there_before_the_agent_are_counted_when_it_comes() -> None:
    rig = Rig(agent=False)
    rig.want("a", 5, node="big")
    assert rig.decision("a") is None
    rig.says(8, 8)
    assert rig.free == (3, 8)
    rig.cache.numa.drop_topology(N)
    assert rig.decision("a") is None
    assert not Snapshotter(rig.cache).snapshot().numa


def test_nothing_is_kept_of_pods_that_go_while_there_is_no_agent() -> None:
    rig = Rig()
    rig.want("a", 5, node="big")
    assert rig.free == (3, 8)
    rig.cache.numa.drop_topology(N)
    Snapshotter(rig.cache).snapshot()
    rig.cache.drop_pod(rig.uid("a"))
    Snapshotter(rig.cache).snapshot()
    kept = [rig.cache.numa._where, rig.cache.numa._changed, rig.cache.numa._held]
    assert kept == [{}, {}, {}]
    rig.says(8, 8)
    assert rig.free == (8, 8)


def test_a_machine_that_is_cut_otherwise_is_counted_anew() -> None:
    rig = Rig()
    rig.want("a", 3, node="big")
    rig.says(4, 4, 8, layout=NumaLayout(NumaPolicy.SINGLE_NUMA_NODE, True, (0, 1, 2), (4, 4, 8)))
    assert (rig.decision("a"), rig.free) == ((3, 0, 0), (1, 4, 8))


def test_terminating_pods_are_told_as_what_is_coming() -> None:
    rig = Rig()
    rig.want("a", 5, node="big", phase="Running", deleting=True)
    rig.says(3, 8, pods={"uid-a": (5, 0)})
    assert (rig.free, rig.coming) == ((3, 8), (5, 0))
    rig.cache.drop_pod(rig.uid("a"))
    rig.says(8, 8)
    assert (rig.free, rig.coming) == ((8, 8), (0, 0))


def test_pods_of_others_give_back_what_the_agent_says_they_have() -> None:
    rig = Rig()
    rig.says(4, 8, pods={"uid-f": (4, 0)})
    foreign = make_pod("f", scheduler="other", node="big", phase="Running", deleting=True)
    rig.cache.set_pod(foreign, now=rig.now)
    assert (rig.coming, rig.taken()) == ((4, 0), {"f": (4, 0)})
    rig.cache.drop_pod(foreign.uid)
    assert (rig.coming, rig.taken()) == ((0, 0), {})


def test_members_that_exchange_places_exchange_their_cpus() -> None:
    rig = Rig()
    rig.cache.set_node(make_node("other", cpu=16_000))
    rig.cache.set_numa(NumaTopology(NodeName("other"), LAYOUT, (8, 8)))
    rig.want("a", 5)
    rig.want("b", 5)
    rig.want("c", 5)
    assert rig.place(a="big", b="big", c="other")
    assert rig.cache.reservations.change_places(rig.uid("b"), rig.uid("c"), now=rig.now)
    assert [rig.decision(name) for name in "abc"] == [(5, 0), (5, 0), (0, 5)]


def test_pods_that_share_their_cpus_have_none_to_themselves() -> None:
    rig = Rig()
    rig.pod("a", node="big", shape=make_shape(cpu=5000))
    assert (rig.decision("a"), rig.free) == (None, (8, 8))


def test_kubelets_without_static_cpus_give_none_away() -> None:
    rig = Rig()
    rig.want("a", 5, node="big")
    rig.says(8, 8, layout=NumaLayout(NumaPolicy.RESTRICTED, False, (0, 1), (8, 8)))
    assert (rig.decision("a"), rig.free) == (None, (8, 8))


def test_groups_are_planned_again_when_cpus_are_free() -> None:
    rig = Rig()
    rig.says(3, 3)
    before = rig.cache.registry.outlook
    rig.says(3, 3)
    rig.says(2, 3)
    assert rig.cache.registry.outlook == before
    rig.says(8, 3)
    assert rig.cache.registry.outlook > before


@pytest.mark.parametrize(
    ("free", "wanted", "heeded", "holds"),
    [
        pytest.param((8, 8), {"a": (5,), "b": (5,)}, True, True, id="each has a NUMA node"),
        pytest.param((8, 4), {"a": (5,), "b": (5,)}, True, False, id="the second has none"),
        pytest.param((8, 4), {"a": (5,), "b": ()}, True, True, id="the second shares its cpus"),
        pytest.param((4, 4), {"a": (5,), "b": ()}, True, False, id="the first has none"),
        pytest.param((4, 4), {"a": (5,), "b": (5,)}, False, True, id="without the plugin"),
    ],
)
def test_places_hold_only_where_the_kubelet_takes_all_of_them(
    free: Cpus, wanted: dict[str, tuple[int, ...]], heeded: bool, holds: bool
) -> None:
    rig = Rig()
    rig.cache.numa.heeded = heeded
    for name, cpus in wanted.items():
        rig.pod(name, shape=shape(*cpus) if cpus else make_shape(cpu=2000, memory=0))
    rig.says(*free)
    assert rig.place(a="big", b="big") is holds
    assert [rig.member(name).planned for name in wanted] == [holds, holds]


def test_a_slot_holds_only_where_the_kubelet_takes_its_pod() -> None:
    rig = Rig()
    rig.cache.numa.heeded = True
    rig.says(4, 4)
    assert not rig.slot("big", shape=shape(5))
    rig.says(4, 5)
    assert rig.slot("big", shape=shape(5))


def test_a_member_moves_only_where_the_kubelet_takes_it() -> None:
    rig = Rig()
    rig.cache.numa.heeded = True
    rig.want("a", 5)
    rig.cache.set_node(make_node("other", cpu=16_000))
    assert rig.place(a="other")
    rig.says(4, 4)
    assert not rig.cache.reservations.move(rig.uid("a"), N, now=rig.now)
    rig.says(4, 8)
    assert rig.cache.reservations.move(rig.uid("a"), N, now=rig.now)
    assert (rig.decision("a"), rig.free) == ((0, 5), (4, 3))
