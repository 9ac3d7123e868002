"""Which pods are looked at, and why others are passed over."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.core.ledger import Ledger
from app.core.victims.candidates import (
    GONE,
    NOT_RECLAIMABLE,
    PROTECTED,
    STUCK,
    candidates,
    in_victim_order,
)
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Spared
from app.model.running import NO_GROUP, Protection
from app.model.snapshot import Snapshot
from tests.builders import make_node, make_pod, make_queue, make_snapshot
from tests.core.contests import cluster, preemptor, runs, wants
from tests.core.test_tiers import open_conf
from tests.running import Runs, make_running

A, B, KEPT = make_queue("a"), make_queue("b"), make_queue("kept", reclaimable=False)
MINE = wants("mine", queue="a")
GROWN = runs("grown", 2, queue="a", waiting=wants("grown", queue="a").waiting)
SNAPSHOT = cluster(
    runs("x", 1, queue="a"),
    GROWN,
    runs("y", 2, queue="b"),
    runs("z", 1, queue="kept"),
    waits=(MINE,),
    queues=(A, B, KEPT),
)


def found(
    snapshot: Snapshot,
    gang: Gang,
    action: EvictionAction = EvictionAction.PREEMPT,
    *,
    evicted: tuple[int, ...] = (),
    inside: bool = False,
) -> tuple[set[str], int, tuple[Spared, ...]]:
    """The names of candidates, how many were looked at, and why others are none."""
    ledger = Ledger(snapshot)
    for at in evicted:
        ledger.evict(at)
    told = candidates(ledger, preemptor(gang, action), inside=inside)
    return {snapshot.running.pods[at].name for at in told.rows}, told.count, told.spared


@pytest.mark.parametrize("action", [EvictionAction.PREEMPT, EvictionAction.GANG_PREEMPT])
def test_a_gang_preempts_other_gangs_of_its_queue(action: EvictionAction) -> None:
    assert found(SNAPSHOT, MINE, action) == ({"x-0", "grown-0", "grown-1"}, 3, ())
    assert found(SNAPSHOT, GROWN.gang, action) == ({"x-0"}, 1, ())


def test_inside_itself_a_gang_looks_at_its_members() -> None:
    assert found(SNAPSHOT, GROWN.gang, inside=True) == ({"grown-0", "grown-1"}, 2, ())
    assert found(SNAPSHOT, MINE, inside=True) == (set(), 0, ())


@pytest.mark.parametrize("action", [EvictionAction.RECLAIM, EvictionAction.GANG_RECLAIM])
def test_a_gang_reclaims_from_queues_that_give_pods_away(action: EvictionAction) -> None:
    names, count, spared = found(SNAPSHOT, MINE, action)
    assert names == {"y-0", "y-1"}
    assert count == 3
    assert spared == (Spared(NOT_RECLAIMABLE, 1),)


def test_a_queue_that_holds_nothing_preempts_nothing() -> None:
    late = wants("late", queue="empty")
    snapshot = cluster(runs("x", 1, queue="a"), waits=(late,), queues=(A, make_queue("empty")))
    assert found(snapshot, late) == (set(), 0, ())
    assert found(snapshot, late, EvictionAction.RECLAIM)[0] == {"x-0"}


@pytest.mark.parametrize("protection", [p for p in Protection if p is not Protection.NONE])
def test_protected_pods_are_counted_and_never_go(protection: Protection) -> None:
    gang = wants("mine")
    runner = runs("g")
    pods = [
        Runs(runner.pods[0][0], 0, gang=runner.gang.key, queue=QueueName("default"), counted=True),
        Runs(
            make_pod("safe"),
            0,
            gang=NO_GROUP if protection is Protection.FOREIGN else runner.gang.key,
            queue=None if protection is Protection.FOREIGN else QueueName("default"),
            protected=protection,
        ),
    ]
    snapshot = make_snapshot(gangs=(runner.gang, gang), running=make_running(pods))
    assert found(snapshot, gang) == ({"g-0"}, 2, (Spared(PROTECTED[protection], 1),))


def test_a_group_may_say_for_its_members_that_they_are_not_preemptable() -> None:
    gang = wants("mine")
    kept, open_ = runs("kept", 2, preemptable=False), runs("open", 1, preemptable=True)
    snapshot = cluster(kept, open_, waits=(gang,))
    assert found(snapshot, gang) == ({"open-0"}, 3, (Spared("not preemptable", 2),))


def test_a_pod_that_says_itself_that_it_is_preemptable_goes_before_its_group() -> None:
    gang = wants("mine")
    kept = runs("kept", 2, preemptable=False)
    pods = [
        Runs(
            make_pod(pod.name, annotations={"volcano.sh/preemptable": said}),
            0,
            gang=kept.gang.key,
            queue=QueueName("default"),
            counted=True,
        )
        for (pod, _), said in zip(kept.pods, ("true", "1"), strict=True)
    ]
    snapshot = make_snapshot(gangs=(kept.gang, gang), running=make_running(pods))
    assert found(snapshot, gang) == ({"kept-0", "kept-1"}, 2, ())


def test_pods_that_go_already_or_do_not_go_are_no_candidates() -> None:
    stuck = replace(SNAPSHOT, stuck=frozenset({SNAPSHOT.running.pods[1].uid}))
    names, count, spared = found(stuck, MINE, evicted=(0,))
    assert (names, count) == ({"grown-1"}, 3)
    assert spared == (Spared(GONE, 1), Spared(STUCK, 1))


class TestOrder:
    def order(self, snapshot: Snapshot, gang: Gang, *plugins: str, **more: Any) -> list[str]:
        tiers = tuple(PluginConf(name) for name in plugins)
        opened, _ = open_conf(snapshot, tiers)
        rows = np.arange(len(snapshot.running))
        by = preemptor(gang, more.get("action", EvictionAction.PREEMPT))
        ordered = in_victim_order(opened, snapshot, by, rows).tolist()
        return [snapshot.running.pods[at].name for at in ordered]

    def test_gangs_stand_in_the_reverse_of_their_order(self) -> None:
        gang = wants("mine", priority=9)
        snapshot = cluster(
            runs("old", priority=1, created=1.0),
            runs("young", priority=1, created=2.0),
            runs("high", priority=2, created=3.0),
            waits=(gang,),
        )
        assert self.order(snapshot, gang, "priority") == ["young-0", "old-0", "high-0"]

    def test_members_go_by_priority_then_by_checkpoint_then_the_last_first(self) -> None:
        runner = runs("g")
        pods = [
            Runs(
                make_pod(name, priority=priority, created=created, started=1.0),
                0,
                gang=runner.gang.key,
                queue=QueueName("default"),
                saved=saved,
            )
            for name, priority, created, saved in (
                ("g-9", 1, 0.0, 0.0),
                ("g-10", 1, 0.0, 0.0),
                ("g-2", 1, 0.0, 50.0),
                ("g-3", 1, 0.0, 70.0),
                ("g-4", 0, 0.0, 0.0),
                ("late-9", 1, 5.0, 0.0),
            )
        ]
        gang = wants("mine")
        snapshot = make_snapshot(gangs=(runner.gang, gang), running=make_running(pods))
        last = ["g-10", "late-9", "g-9"]
        assert self.order(snapshot, gang, "priority") == ["g-4", "g-3", "g-2", *last]
        assert self.order(snapshot, gang) == ["g-3", "g-2", "g-10", "late-9", "g-9", "g-4"]

    def test_queues_stand_in_the_reverse_of_their_order(self) -> None:
        gang = wants("mine", queue="c")
        queues = (make_queue("a", weight=1), make_queue("b", weight=3), make_queue("c"))
        snapshot = cluster(
            runs("x", 2, queue="a"),
            runs("y", 2, queue="b"),
            waits=(gang,),
            queues=queues,
            nodes=(make_node("n1", cpu=4000),),
        )
        order = self.order(snapshot, gang, "proportion", action=EvictionAction.RECLAIM)
        assert order == ["x-1", "x-0", "y-1", "y-0"]
        high = (make_queue("a", priority=5), *queues[1:])
        kept = cluster(runs("x", 2, queue="a"), runs("y", 2, queue="b"), waits=(gang,), queues=high)
        order = self.order(kept, gang, "proportion", action=EvictionAction.RECLAIM)
        assert order == ["y-1", "y-0", "x-1", "x-0"]
