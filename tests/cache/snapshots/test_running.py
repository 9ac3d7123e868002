"""The columns of running pods say how it is; after evictions all is as after the pods went."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.model.ids import NodeName, PodUid, QueueName
from app.model.parts import SubGroupPolicy
from app.model.pod import GROUP_ANNOTATION, QUEUE_ANNOTATION, TASK_SPEC, Owner
from app.model.running import NOT_ASKED, Protection, Running
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_node, make_queue, make_shape
from tests.cache.snapshots.test_snapshotter import Rig
from tests.core.evictions import state


@pytest.fixture
def rig() -> Rig:
    return Rig()


def crowded() -> Rig:
    """Two queues with a group of two and one beyond, single pods, a pod that goes, foreign ones."""
    rig = Rig()
    for name in ("root", "default", "x"):
        rig.cache.set_queue(make_queue(name))
    rig.group(min_resources=make_amounts(cpu=2000), phase=GroupPhase.RUNNING)
    for name in ("p", "q", "extra"):
        rig.pod(name, node=NodeName("a"), phase="Running")
    rig.pod("waiting")
    rig.pod("done", node=NodeName("a"), phase="Succeeded")
    rig.pod("going", node=NodeName("b"), phase="Running", deleting=True)
    rig.pod("one", annotations={QUEUE_ANNOTATION: "x"}, node=NodeName("b"), phase="Running")
    rig.pod("two", annotations={}, node=NodeName("b"), phase="Running")
    rig.foreign("x", "a")
    rig.foreign("y", "unknown")
    rig.foreign("z", "b", deleting=True)
    return rig


CROWD = ("p", "q", "extra", "going", "one", "two", "x", "y", "z")


def evicting(snapshot: Snapshot, names: Iterable[str]) -> Ledger:
    """A ledger on ``snapshot`` without these pods."""
    ledger = Ledger(snapshot)
    for name in names:
        ledger.evict(snapshot.running.index[PodUid(f"uid-{name}")])
    return ledger


@given(gone=st.sets(st.sampled_from(CROWD)))
def test_when_some_pods_are_evicted_all_is_as_after_they_went(gone: set[str]) -> None:
    rig = crowded()
    before = rig.now(running=True)
    ledger = evicting(before, sorted(gone))
    for name in gone:
        rig.cache.drop_pod(PodUid(f"uid-{name}"))
    after = rig.now()
    told, now = state(ledger, before.gangs.values()), state(Ledger(after), after.gangs.values())
    assert told["queues"] == now["queues"]
    assert told["future idle"] == now["future idle"]
    assert told["gangs"].items() >= now["gangs"].items()
    assert ledger.staying.tolist() == after.used.sum(axis=0).tolist()


def test_without_its_pods_a_group_claims_no_more_than_before(rig: Rig) -> None:
    rig.cache.set_queue(make_queue("default"))
    rig.group(min_resources=make_amounts(cpu=2000))
    rig.pod("p", node=NodeName("a"))
    rig.pod("q", node=NodeName("a"))

    def claimed(*names: str) -> int:
        ledger = evicting(rig.now(running=True), names)
        return int(ledger.queue(QueueName("default")).inqueue[0])

    assert claimed("p", "q") == 0
    rig.cache.drop_pod(PodUid("uid-q"))
    assert claimed() == 1000
    assert claimed("p") == 1000


def test_pods_without_room_are_not_among_them() -> None:
    rig = crowded()
    told = rig.now(running=True).running
    assert {pod.name for pod in told.pods} == set(CROWD)


def test_room_that_is_kept_for_pods_to_come_is_not_among_them(rig: Rig) -> None:
    rig.slot("a", make_shape())
    assert len(rig.now(running=True).running) == 0


def test_they_are_told_only_when_asked_for() -> None:
    assert crowded().now().running is NOT_ASKED


def rows(running: Running) -> dict[str, dict[str, Any]]:
    """What is said of each pod."""
    queues = list(running.queues.values)
    return {
        pod.name: {
            "at": running.index[pod.uid],
            "node": int(running.nodes[at]),
            "gang": running.gangs[at],
            "part": running.parts[at],
            "queue": queues[code] if (code := running.queues.codes[at]) >= 0 else None,
            "request": running.requests[at].tolist(),
            "priority": int(running.priorities[at]),
            "times": (float(running.created[at]), float(running.started[at])),
            "counted": bool(running.counted[at]),
            "bound": bool(running.bound[at]),
            "releasing": bool(running.releasing[at]),
            "protected": int(running.protected[at]),
            "saved": float(running.saved[at]),
            "grace": float(running.grace[at]),
            "kind": list(running.kinds.values)[running.kinds.codes[at]],
        }
        for at, pod in enumerate(running.pods)
    }


def unordered(running: Running) -> dict[str, dict[str, Any]]:
    """The same without positions."""
    return {name: {**row, "at": None} for name, row in rows(running).items()}


STEPS = ("come", "go", "end", "terminate", "foreign", "place", "queue", "parts", "axis", "node")
NAMES = ("u", "v", "w")


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(NAMES)), max_size=12))
def test_columns_that_followed_are_as_those_made_afresh(steps: list[tuple[str, str]]) -> None:
    rig = Rig()
    rig.pod("first", node=NodeName("a"), phase="Running")
    told = [(running := rig.now(running=True).running, rows(running))]
    for number, (step, name) in enumerate(steps):
        happen(rig, step, name, number)
        told.append((running := rig.now(running=number % 3 > 0).running, rows(running)))
    fresh = Rig.of(rig.cache)
    assert unordered(rig.now(running=True).running) == unordered(fresh.now(running=True).running)
    for running, then in told:
        assert rows(running) == then, "what was told stays"
        assert [row["at"] for row in then.values()] == list(range(len(then)))


def happen(rig: Rig, step: str, name: str, number: int) -> None:
    """One event."""
    uid = PodUid(f"uid-{name}")
    pod = rig.cache.pods.pod(uid)
    if step == "come" and (pod is None or rig.cache.pods.ours(pod)):
        spec = {GROUP_ANNOTATION: "g", TASK_SPEC: "worker"}
        rig.pod(name, annotations=spec, node=NodeName("a"), priority=number, started=number)
    elif step == "go":
        rig.cache.drop_pod(uid)
    elif step in ("end", "terminate") and pod is not None and pod.node:
        changed = {"phase": "Succeeded"} if step == "end" else {"deleting": True}
        rig.cache.set_pod(replace(pod, **changed), now=1.0)
    elif step == "foreign" and pod is None:
        rig.foreign(name, "a", preempts=False)
    elif step == "place" and pod is None:
        rig.pod(name)
        rig.place(name, "b")
    elif step == "queue":
        rig.group(queue=QueueName(f"q{number % 2}"))
    elif step == "parts":
        policy = SubGroupPolicy("half", keys=(TASK_SPEC,), size=1, least=number % 2)
        rig.group(sub_groups=(policy,) if number % 3 else ())
    elif step == "axis":
        rig.cache.set_node(make_node("c", extra={f"example.com/{name}": 1}))
    elif step == "node":
        rig.cache.drop_node(NodeName("a")) if number % 2 else rig.cache.set_node(make_node("a"))


OF_NODE = Owner("v1", "Node", "a", "1")
OF_SET = Owner("apps/v1", "DaemonSet", "d", "2")


@pytest.mark.parametrize(
    ("fields", "protection"),
    [
        ({}, Protection.NONE),
        ({"phase": "Pending"}, Protection.NONE),
        ({"priority_class": "system-node-critical"}, Protection.SYSTEM),
        ({"namespace": "kube-system"}, Protection.SYSTEM),
        ({"owner": OF_NODE}, Protection.STATIC),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, Protection.STATIC),
        ({"owner": OF_SET}, Protection.DAEMON_SET),
        ({"deleting": True}, Protection.ENDING),
        ({"phase": "Unknown"}, Protection.ENDING),
        ({"labels": {"volcano.sh/preemptable": "false"}}, Protection.UNPREEMPTABLE),
        ({"scheduler": "default-scheduler"}, Protection.FOREIGN),
        ({"owner": OF_SET, "deleting": True}, Protection.DAEMON_SET),
    ],
)
def test_a_pod_says_why_it_is_never_evicted(
    rig: Rig, fields: dict[str, Any], protection: Protection
) -> None:
    rig.pod("p", **({"node": NodeName("a"), "phase": "Running"} | fields))
    assert rig.now(running=True).running.protected.tolist() == [protection]


def test_a_pod_with_a_place_that_is_not_bound_yet_is_not_evicted(rig: Rig) -> None:
    rig.pod("p")
    rig.place("p", "a")
    assert rig.now(running=True).running.protected.tolist() == [Protection.UNBOUND]


@pytest.mark.parametrize(
    ("said", "saved"),
    [
        (None, 100.0),
        ("1970-01-01T00:03:20Z", 200.0),
        ("1970-01-01T01:03:20+01:00", 200.0),
        ("1970-01-01T00:00:10Z", 100.0),
        ("yesterday", 100.0),
        ("1970-01-01 00:03", 100.0),
    ],
)
def test_work_is_saved_at_the_start_and_at_the_last_checkpoint(
    rig: Rig, said: str | None, saved: float
) -> None:
    annotations = {} if said is None else {"volcano.sh/last-checkpoint-time": said}
    rig.pod("p", node=NodeName("a"), started=100.0, annotations=annotations, grace=5.0)
    rig.pod("q", node=NodeName("a"), annotations=annotations)
    running = rig.now(running=True).running
    assert running.saved.tolist() == [saved, 0.0]
    assert running.grace.tolist() == [5.0, 30.0]


def test_a_checkpoint_is_seen_when_the_pod_says_so(rig: Rig) -> None:
    pod = rig.pod("p", node=NodeName("a"), started=100.0, annotations={})
    assert rig.now(running=True).running.saved.tolist() == [100.0]
    said = {"volcano.sh/last-checkpoint-time": "1970-01-01T00:03:20Z"}
    rig.cache.set_pod(replace(pod, annotations=said), now=2.0)
    assert rig.now(running=True).running.saved.tolist() == [200.0]


def test_rows_of_pods_that_went_are_filled_from_the_end(rig: Rig) -> None:
    for name in "abcd":
        rig.pod(name, node=NodeName("a"), phase="Running")
    rig.now(running=True)
    rig.cache.drop_pod(PodUid("uid-b"))
    assert [pod.name for pod in rig.now(running=True).running.pods] == ["a", "d", "c"]
