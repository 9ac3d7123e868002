"""A ledger takes as well as it gives: evictions, places on room to come, and their roll-back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.actions.backlog import Backlog
from app.core.actions.futility import Demand, Failure, Futility
from app.core.actions.kinds import kind_of
from app.core.entries import Entry, Evicted, Moment
from app.core.ledger import Ledger
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal
from app.model.workload import GroupPhase
from tests.builders import make_gang
from tests.core.actions.rigs import members, vector
from tests.core.evictions import (
    COUNTED,
    PARTS,
    RELEASING,
    Evictable,
    Member,
    cluster_of,
    clusters,
    naive,
    seen_with,
    state,
)


class Walk:
    """Random evictions and places in nested trials; after each the numbers are compared."""

    def __init__(self, cluster: Evictable, data: st.DataObject) -> None:
        self.cluster, self.data = cluster, data
        self.ledger = Ledger(cluster.snapshot)
        self.gangs = [gang for gang, _ in cluster.of]
        self.moments: list[tuple[Moment, dict[str, Any]]] = []

    def state(self) -> dict[str, Any]:
        return state(self.ledger, self.gangs)

    def steps(self, depth: int) -> None:
        for _ in range(self.data.draw(st.integers(1, 4))):
            if depth and self.data.draw(st.booleans()):
                self.trial(depth)
            else:
                self.step()
                assert self.state() == naive(self.cluster, self.ledger.journal)
            self.compare()
            self.moments.append((self.ledger.moment(), self.state()))

    def compare(self) -> None:
        """What is said of moments that went before is true."""
        now = self.state()
        for moment, then in self.moments:
            if self.ledger.is_as_at(moment):
                assert now == then
            if self.ledger.only_filled_since(moment):
                assert grown(then, now) == []

    def step(self) -> None:
        journal, ledger = self.ledger.journal, self.ledger
        gone = {entry.pod.uid for entry in journal if isinstance(entry, Evicted)}
        left = [at for uid, at in ledger.snapshot.running.index.items() if uid not in gone]
        waiting = [(gang, task) for gang in self.gangs for task in gang.waiting]
        ways = ["evict"] * bool(left) + ["place", "pipeline"] * bool(waiting)
        way = self.data.draw(st.sampled_from(ways or [""]))
        if way == "evict":
            ledger.evict(self.data.draw(st.sampled_from(left)))
        elif way:
            gang, task = self.data.draw(st.sampled_from(waiting))
            place = ledger.place if way == "place" else ledger.pipeline
            place(gang, task, node=self.data.draw(st.integers(0, 2)))

    def trial(self, depth: int) -> None:
        before = self.everything()
        with self.ledger.trial() as trial:
            self.steps(depth - 1)
            keep = self.data.draw(st.booleans())
            if keep:
                trial.keep()
                kept = self.everything()
        assert self.everything() == (kept if keep else before)

    def everything(self) -> tuple[dict[str, Any], list[Entry], list[Any], list[int]]:
        losses = [self.ledger.gang(gang).losses for gang in self.gangs]
        plain = [each and (each.members, each.ready, each.held.tolist()) for each in losses]
        return self.state(), list(self.ledger.journal), plain, self.ledger.staying.tolist()


def grown(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What of room and quota there is more of now."""
    room = [key for key in ("idle", "future idle") if (np.array(now[key]) > then[key]).any()]
    quota = [
        name
        for name, account in now["queues"].items()
        if (np.array(account["allocated"]) < then["queues"][name]["allocated"]).any()
    ]
    return room + quota


@given(cluster=clusters(), data=st.data())
def test_after_each_step_all_is_as_counted_afresh_and_a_trial_leaves_no_trace(
    cluster: Evictable, data: st.DataObject
) -> None:
    Walk(cluster, data).steps(3)


GANG = make_gang(queue=QueueName("left"), phase=GroupPhase.RUNNING, waiting=members("w", 1, cpu=2))
TWO = vector(cpu=2, pods=1)


def ledger_of(*there: Member) -> Ledger:
    """One group of which these run."""
    return Ledger(cluster_of([(seen_with(GANG, there), there)], ()).snapshot)


def runs(state_: str = COUNTED) -> Member:
    """On the first node."""
    return Member(0, 2, PARTS[0], state_)


def test_an_evicted_pod_keeps_its_room_until_it_is_gone_and_counts_for_nothing() -> None:
    ledger = ledger_of(runs(), runs())
    gang = next(iter(ledger.snapshot.gangs.values()))
    idle, future = ledger.idle.copy(), ledger.future_idle.copy()
    ledger.evict(0)
    assert np.array_equal(ledger.idle, idle)
    assert np.array_equal(ledger.future_idle[0] - future[0], TWO)
    for name in ("left", "top", "root"):
        account = ledger.queue(QueueName(name))
        assert (account.tree_allocated == TWO).all(), "the other one's"
    account_of = ledger.gang(gang)
    assert (account_of.ready, account_of.role_ready) == (1, {"a": 1})


def test_one_that_terminates_already_is_only_counted_on_to_go() -> None:
    ledger = ledger_of(runs(RELEASING))
    left, future = QueueName("left"), ledger.future_idle.copy()
    assert ledger.terminating(left, below=False) is not None
    ledger.evict(0)
    assert np.array_equal(ledger.future_idle, future)
    assert ledger.terminating(left, below=False) is None


def test_a_pipelined_place_is_on_room_to_come_and_counts_at_once() -> None:
    ledger = ledger_of(runs())
    gang = next(iter(ledger.snapshot.gangs.values()))
    idle, future = ledger.idle.copy(), ledger.future_idle.copy()
    ledger.pipeline(gang, gang.waiting[0], node=1)
    assert np.array_equal(ledger.idle, idle)
    assert np.array_equal(future[1] - ledger.future_idle[1], TWO)
    assert (ledger.queue(QueueName("left")).allocated == 2 * TWO).all()
    assert ledger.gang(gang).ready == 2


def test_what_failed_fails_again_until_something_grows() -> None:
    ledger = ledger_of(runs())
    gang = next(iter(ledger.snapshot.gangs.values()))
    failed = ledger.moment()
    ledger.place(gang, gang.waiting[0], node=1)
    ledger.block(TWO, node=0)
    assert ledger.only_filled_since(failed)
    with ledger.trial():
        ledger.evict(0)
        assert not ledger.only_filled_since(failed)
        at = ledger.moment()
        assert ledger.only_filled_since(at)
    assert ledger.only_filled_since(failed), "the eviction was undone"
    assert not ledger.only_filled_since(at), "and what was there then is not any more"
    ledger.charge(gang.queue, -TWO)
    assert not ledger.only_filled_since(failed)


@pytest.mark.parametrize("lasting", [True, False], ids=["of one kind", "of several kinds"])
def test_a_demand_that_failed_is_tried_again_after_an_eviction(*, lasting: bool) -> None:
    ledger = ledger_of(runs())
    futile, demand = Futility(ledger), Demand(("demand",), 1 if lasting else 0, lasting=lasting)
    failure = Failure(Refusal(Cause.NO_NODE_FITS), 0, TWO, ledger.moment())
    futile.remember(demand, failure)
    assert futile.recall(demand) is failure
    with ledger.trial():
        ledger.evict(0)
        assert futile.recall(demand) is None
    assert futile.recall(demand) is failure


def test_members_that_failed_once_are_tried_again_after_an_eviction() -> None:
    ledger = ledger_of(runs())
    backlog, kind = Backlog(GANG), kind_of(GANG.waiting[0], ledger)
    backlog.failed[kind] = ledger.moment()
    assert backlog.has_failed(kind, ledger)
    ledger.evict(0)
    assert not backlog.has_failed(kind, ledger)
