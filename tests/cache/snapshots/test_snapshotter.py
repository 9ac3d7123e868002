"""A snapshot says how it is now, and goes on saying it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import NodeName, PodUid, QueueName, group_key
from app.model.job import QUEUE_NAME, Template
from app.model.placed_pods import NOBODY
from app.model.plan import GangPlacement, Placement
from app.model.pod import GATE, GROUP_ANNOTATION, QUEUE_ANNOTATION, QUEUE_GATE, TASK_SPEC, Pod
from app.model.shape import (
    HostPort,
    LabelSelector,
    Operator,
    PodShape,
    PodTerm,
    Requirement,
    Toleration,
)
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, PodGroup, PriorityClass
from tests.builders import make_amounts, make_node, make_pod, make_queue, make_shape, make_task
from tests.cache.unwalkable import Unwalkable
from tests.placed_pods import PlacedPod, read_placed_pods

KEY = group_key("default", "g")
PORT = HostPort("0.0.0.0", "TCP", 80)
PORTED = PodShape(requests=make_amounts(cpu=1000, pods=1), host_ports=(PORT,))
CHOOSY = PodShape(
    requests=make_amounts(cpu=1000, pods=1),
    pod_anti_affinity=(
        PodTerm(
            "kubernetes.io/hostname",
            LabelSelector((Requirement("app", Operator.DOES_NOT_EXIST),)),
        ),
    ),
)


class Rig:
    """Two nodes and the group ``g`` of two."""

    def __init__(self, *, default_queue: str = "default") -> None:
        self.cache = ClusterCache(
            schedulers=frozenset({"volcano"}), default_queue=QueueName(default_queue)
        )
        self._snapshotter = Snapshotter(self.cache)
        for name in ("b", "a"):
            self.cache.set_node(make_node(name, cpu=4000))
        self.group()

    @classmethod
    def of(cls, cache: ClusterCache) -> "Rig":
        """On a cluster that is there."""
        rig = cls()
        rig.cache, rig._snapshotter = cache, Snapshotter(cache)
        return rig

    def group(self, **fields: Any) -> None:
        defaults: dict[str, Any] = {
            "uid": "uid-g",
            "resource_version": "1",
            "created": 0.0,
            "min_member": 2,
            "phase": GroupPhase.INQUEUE,
        }
        self.cache.set_group(PodGroup("default", "g", **(defaults | fields)))

    def pod(self, name: str, **fields: Any) -> Pod:
        pod = make_pod(name, **({"annotations": {GROUP_ANNOTATION: "g"}} | fields))
        self.cache.set_pod(pod, now=1.0)
        return pod

    def foreign(self, name: str, node: str, **fields: Any) -> None:
        self.pod(name, scheduler="default-scheduler", node=NodeName(node), **fields)

    def place(self, name: str, node: str) -> None:
        task = self.cache.members[PodUid(f"uid-{name}")].task
        placed = GangPlacement(KEY, (Placement(task, NodeName(node)),), whole=True)
        assert self.cache.reservations.reserve(placed, now=1.0)

    def slot(self, node: str, shape: PodShape) -> None:
        task = make_task("", uid=PodUid(""), shape=shape)
        placed = GangPlacement(KEY, (Placement(task, NodeName(node)),), whole=True)
        assert self.cache.reservations.reserve(placed, now=1.0)

    def now(self, *, running: bool = False) -> Snapshot:
        return self._snapshotter.snapshot(running=running)

    def placed_pods(self) -> list[PlacedPod]:
        snapshot = self.now()
        return read_placed_pods(snapshot.placed_pods, nodes=len(snapshot.table.nodes))

    def rows(self, key: str) -> dict[str | None, int]:
        """Where those with each value of a label are."""
        return {one.labels.get(key): one.node for one in self.placed_pods()}


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_members_that_are_shown_are_those_of_a_group_that_is_there(rig: Rig) -> None:
    asks = {GROUP_ANNOTATION: "g", QUEUE_GATE: "true"}
    rig.pod("hidden", annotations=asks, gates=(GATE,))
    rig.pod("lost", annotations=asks | {GROUP_ANNOTATION: "nowhere"})
    assert rig.now().shown == ()
    rig.pod("seen", annotations=asks)
    (gang,) = rig.now().shown
    assert gang.key == KEY
    assert {task.name: task.shown for task in gang.queue_first} == {"hidden": False, "seen": True}


def test_what_is_taken_and_what_is_reserved_is_used(rig: Rig) -> None:
    rig.foreign("x", "a")
    rig.pod("p")
    rig.place("p", "b")
    snapshot = rig.now()
    assert [node.name for node in snapshot.table.nodes] == ["a", "b"]
    assert snapshot.used[:, 0].tolist() == [1000, 1000]
    gang = snapshot.gangs[KEY]
    assert (gang.counts.placed, gang.allocated[0], gang.waiting) == (1, 1000, ())


def test_what_groups_ask_for_that_tolerate_a_cordon_counts_in_the_total(rig: Rig) -> None:
    def total() -> int:
        assert np.array_equal(rig.now().total, rig.cache.total())
        return int(rig.now().total[0])

    assert total() == 8000
    rig.cache.set_node(make_node("b", cpu=4000, unschedulable=True))
    rig.pod("plain")
    assert total() == 4000
    anywhere = make_shape(cpu=500, tolerations=(Toleration(exists=True),))
    rig.pod("bears", shape=anywhere)
    assert total() == 5500, "as much as its group asks for"
    rig.place("bears", "b")
    assert total() == 5500
    rig.place("plain", "a")
    assert total() == 4500


def test_a_snapshot_does_not_change(rig: Rig) -> None:
    rig.pod("p")
    before = rig.now()
    rig.place("p", "a")
    rig.foreign("x", "b")
    rig.cache.drop_node(NodeName("b"))
    rig.cache.set_queue(make_queue("q"))
    assert before.used.sum() == 0
    assert [node.name for node in before.table.nodes] == ["a", "b"]
    assert [task.name for task in before.gangs[KEY].waiting] == ["p"]
    assert before.queues == {}
    for array in (before.used, before.releasing, before.table.allocatable):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_what_did_not_change_is_shared(rig: Rig) -> None:
    before = rig.now()
    rig.foreign("x", "a", annotations={})
    after = rig.now()
    assert after.generation == before.generation + 1
    assert after.table is before.table
    assert after.gangs[KEY] is before.gangs[KEY]


def test_a_group_is_pending_while_the_planner_can_do_something_for_it(rig: Rig) -> None:
    def pending() -> set[str]:
        return {gang.key for gang in rig.now().pending}

    assert pending() == {KEY}  # members may still come: slots
    for name in "pq":
        rig.pod(name)
        rig.place(name, "a")
    assert pending() == set()
    rig.pod("extra")
    assert pending() == {KEY}
    rig.group(deleting=True)
    assert pending() == set()
    rig.group()
    rig.cache.drop_group(KEY)
    assert pending() == set()


@pytest.mark.parametrize(
    ("bound", "phase", "partial"),
    [
        ("", "Running", False),
        ("a", "Running", True),
        ("ab", "Running", True),
        ("bb", "Running", True),
        ("aab", "Running", False),
        ("a", "Succeeded", False),
    ],
)
def test_a_gang_is_in_part_while_some_are_bound_and_a_minimum_is_not_reached(
    rig: Rig, bound: str, phase: str, *, partial: bool
) -> None:
    rig.group(min_member=2, role_minimum={"a": 2})
    for number, role in enumerate(bound):
        labels = {TASK_SPEC: role}
        rig.pod(f"{role}-{number}", labels=labels, node=NodeName("a"), phase=phase)
    rig.pod("waiting", labels={TASK_SPEC: "a"})
    assert rig.now().gangs[KEY].partial is partial


def test_single_pods_are_groups_of_one_in_the_queue_they_name(rig: Rig) -> None:
    rig.pod("p", annotations={QUEUE_ANNOTATION: "q"})
    [solo] = [gang for gang in rig.now().pending if gang.solo]
    assert (solo.min_member, solo.queue, solo.phase) == (1, "q", GroupPhase.NEW)
    assert rig.now().usage[QueueName("q")].groups == 1


def test_a_single_pod_that_names_no_queue_is_in_the_default_one() -> None:
    rig = Rig(default_queue="research")
    rig.pod("p", annotations={})
    assert rig.now().usage[QueueName("research")].groups == 1


def test_placed_pods_are_listed_only_while_a_pod_looks_at_others(rig: Rig) -> None:
    rig.foreign("x", "a", labels={"app": "x"}, annotations={})
    rig.pod("p", labels={"app": "p"})
    rig.place("p", "b")
    rig.slot("b", PORTED)
    assert rig.now().placed_pods is NOBODY
    rig.pod("choosy", shape=CHOOSY, annotations={})
    placed_pods = [(one.labels.get("app"), one.node) for one in rig.placed_pods()]
    assert sorted(placed_pods, key=str) == [("p", 1), ("x", 0), (None, 1)]
    rig.cache.drop_pod(PodUid("uid-choosy"))
    assert rig.now().placed_pods is NOBODY


def test_a_snapshot_looks_at_the_pods_that_changed_and_at_no_others(rig: Rig) -> None:
    rig.foreign("watchful", "a", shape=CHOOSY)
    rig.foreign("x", "a", labels={"app": "x"})
    rig.pod("y", labels={"app": "y"}, node=NodeName("b"))
    before = rig.now().placed_pods
    rig.cache.pods.foreign, rig.cache.members = (
        Unwalkable(rig.cache.pods.foreign),
        Unwalkable(rig.cache.members),
    )
    assert rig.now().placed_pods is before, "what rests is told once"
    rig.foreign("x", "b", labels={"app": "x"})
    rig.cache.drop_pod(PodUid("uid-y"))
    rig.pod("z", labels={"app": "z"}, node=NodeName("a"))
    found = sorted((one.node, bool(one.shape.pod_anti_affinity)) for one in rig.placed_pods())
    assert found == [(0, False), (0, True), (1, False)]


@pytest.mark.parametrize("fields", [{}, {"scheduler": "default-scheduler", "node": NodeName("a")}])
def test_a_report_of_a_pod_with_the_same_rules_has_no_keys_counted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    rig.pod("watchful", shape=pods_with_rules("app"), **fields)
    counted: list[object] = []
    monkeypatch.setattr("app.cache.neighbours.pods_with_rules.keys_asked", counted.append)
    rig.pod("watchful", shape=pods_with_rules("app"), labels={"more": "said"}, **fields)
    assert not counted


def test_a_pod_that_has_no_rules_any_more_looks_at_nobody(rig: Rig) -> None:
    rig.pod("p", shape=replace(pods_with_rules("app"), host_ports=(PORT,)), node=NodeName("a"))
    assert rig.cache.rules.pods_with_rules
    rig.pod("p", node=NodeName("a"))
    assert (len(rig.cache.rules.pods_with_rules), rig.now().ports) == (0, {})
    rig.pod("p", shape=pods_with_rules("app"), node=NodeName("a"), scheduler="default-scheduler")
    assert not rig.cache.rules.pods_with_rules
    assert rig.cache.rules.repelling


def test_changes_are_taken_in_though_no_pod_looks_at_others_any_more(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be noted for ever."""
    followed = []
    monkeypatch.setattr(rig.cache.pods.table, "follow", lambda: followed.append(True))
    rig.now()
    assert followed


def test_of_labels_a_snapshot_has_those_that_our_pods_ask_for(rig: Rig) -> None:
    """Others only keep ours off: theirs are asked of the pods that are to be placed."""
    rig.foreign("x", "a", shape=pods_with_rules("tier"), labels={"app": "x", "tier": "1"})
    assert not rig.now().placed_pods.labels
    rig.pod("p", shape=pods_with_rules("app"))
    assert [one.labels for one in rig.placed_pods()] == [{"app": "x"}]


def test_members_that_change_places_are_seen_where_they_are_then(rig: Rig) -> None:
    rig.foreign("watchful", "a", shape=CHOOSY)
    rig.pod("asks", shape=pods_with_rules("app"))
    for name, node in (("one", "a"), ("two", "b")):
        rig.pod(name, labels={"app": name})
        rig.place(name, node)
    assert rig.rows("app") == {None: 0, "one": 0, "two": 1}
    assert rig.cache.reservations.exchange(PodUid("uid-one"), [NodeName("b")], now=2.0)
    assert rig.rows("app") == {None: 0, "one": 1, "two": 0}


def pods_with_rules(key: str) -> PodShape:
    selector = LabelSelector((Requirement(key, Operator.EXISTS),))
    return replace(CHOOSY, pod_anti_affinity=(PodTerm("zone", selector, ("default",)),))


def test_the_pods_of_others_matter_only_by_their_anti_affinity(rig: Rig) -> None:
    spread = PodShape(requests=make_amounts(pods=1), pod_affinity=CHOOSY.pod_anti_affinity)
    rig.foreign("x", "a", shape=spread)
    assert not rig.now().inter_pod
    rig.foreign("y", "a", shape=CHOOSY)
    assert rig.now().inter_pod


def test_host_ports_are_taken_by_pods_reservations_and_slots(rig: Rig) -> None:
    rig.pod("p", shape=PORTED)
    assert rig.now().ports == {}
    rig.place("p", "a")
    rig.slot("b", PORTED)
    assert rig.now().ports == {0: {PORT}, 1: {PORT}}
    rig.cache.reservations.release(KEY, why="test")
    rig.foreign("x", "b", shape=PORTED)
    assert rig.now().ports == {1: {PORT}}


@pytest.mark.parametrize("late", [False, True], ids=["job first", "group first"])
def test_what_the_task_of_a_job_asks_for_is_on_the_axis_though_no_node_has_it(
    rig: Rig, *, late: bool
) -> None:
    """GPU nodes are scaled to zero until somebody waits for one."""
    if late:
        rig.group(owner_uid="uid-job")
    gpu = PodShape(requests=make_amounts(cpu=1000, pods=1, **{"nvidia.com/gpu": 1}))
    rig.cache.registry.set_template("uid-job", {"worker": Template(gpu, {})})
    rig.group(owner_uid="uid-job")
    snapshot = rig.now()
    for shape in snapshot.gangs[KEY].role_shapes.values():
        assert snapshot.axis.amounts(snapshot.axis.vector(shape.requests)) == shape.requests


def test_pods_that_outlive_their_group_count_for_its_queue_and_claim_nothing(rig: Rig) -> None:
    rig.group(queue=QueueName("q"), phase=GroupPhase.RUNNING)
    pods = [rig.pod(name, node=NodeName("a"), phase="Running") for name in ("p", "r")]
    rig.cache.drop_group(KEY)
    rig.cache.decisions.set_phase(KEY, GroupPhase.RUNNING)
    rig.cache.set_pod(replace(pods[0], deleting=True), now=1.0)

    def sums() -> tuple[int, int, int]:
        usage = rig.now().usage[QueueName("q")]
        going = 0 if usage.releasing is None else int(usage.releasing[0])
        return int(usage.allocated[0]), int(usage.inqueue[0]), going

    assert sums() == (1000, 0, 1000)
    rig.cache.set_node(make_node("a", cpu=4000, ready=False))
    assert sums() == (1000, 0, 0), "its kubelet will not end it"
    rig.cache.set_node(make_node("a", cpu=4000))
    assert sums() == (1000, 0, 1000)
    rig.cache.drop_node(NodeName("a"))
    assert sums() == (1000, 0, 0)


def test_pods_of_a_job_tell_the_queue_of_a_group_that_was_never_seen(rig: Rig) -> None:
    annotations = {GROUP_ANNOTATION: "gone", QUEUE_NAME: "q"}
    rig.pod("p", annotations=annotations, node=NodeName("a"), phase="Running", deleting=True)
    assert rig.now().usage[QueueName("q")].releasing is not None


def test_a_priority_class_changes_the_groups_that_name_it(rig: Rig) -> None:
    rig.group(priority_class="high")
    assert rig.now().gangs[KEY].priority == 0
    rig.cache.registry.set_class(PriorityClass("high", 7))
    rig.cache.registry.set_class(PriorityClass("usual", 3, is_default=True))
    assert rig.now().gangs[KEY].priority == 7
    rig.cache.registry.drop_class("high")
    assert rig.now().gangs[KEY].priority == 3


def test_pods_that_stay_after_their_group_count_where_a_new_process_counts_them(rig: Rig) -> None:
    """Nothing in the API server tells the queue of a PodGroup that has gone."""
    rig.group(queue=QueueName("q"), phase=GroupPhase.RUNNING)
    rig.pod("p", node=NodeName("a"), phase="Running")
    rig.cache.drop_group(KEY)
    assert int(rig.now().usage[QueueName("default")].allocated[0]) == 1000
    assert QueueName("q") not in rig.now().usage
