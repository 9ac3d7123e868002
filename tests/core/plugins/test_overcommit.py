"""overcommit: claims fit the stretched cluster."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.core.conf_error import ConfError
from app.core.policy import Ballot, Vote
from app.model.reason import Cause, Shortfall
from app.model.snapshot import QueueUsage
from tests.builders import GIB, make_node, make_queue, make_snapshot, make_table
from tests.core.plugins.sessions import claiming, holding, open_plugin, room

NODES = (make_node("a", cpu=5000, memory=10 * GIB), make_node("b", cpu=5000, memory=10 * GIB))


def vote(cpu: float, *, gib: float = 0, factor: object = None, **fields: Any) -> Ballot:
    arguments = {} if factor is None else {"overcommit-factor": factor}
    hooks, _ = open_plugin("overcommit", make_snapshot(nodes=NODES), arguments=arguments)
    assert hooks.enqueueable
    return hooks.enqueueable(claiming("g", cpu=cpu, gib=gib, **fields))


@pytest.mark.parametrize(
    ("cpu", "factor", "expected"),
    [
        (12, None, Vote.PERMIT),
        (12.001, None, Vote.REJECT),
        (15, "1.5", Vote.PERMIT),
        (15.001, 1.5, Vote.REJECT),
        (20, 2, Vote.PERMIT),
        (12, 0.5, Vote.PERMIT),
        (12.001, 0.5, Vote.REJECT),
    ],
)
def test_the_cluster_is_stretched_by_the_factor(cpu: float, factor: object, expected: Vote) -> None:
    assert vote(cpu, factor=factor).vote is expected


@pytest.mark.parametrize(
    ("runs", "cpu", "expected"),
    [(0, 6, Vote.PERMIT), (0, 6.1, Vote.REJECT), (5, 7, Vote.PERMIT), (5, 7.1, Vote.REJECT)],
)
def test_of_a_node_that_is_not_ready_only_what_runs_there_counts(
    runs: float, cpu: float, expected: Vote
) -> None:
    nodes = (NODES[0], replace(NODES[1], ready=False))
    used = np.array([room(cpu=0), room(cpu=runs)])
    hooks, _ = open_plugin("overcommit", replace(make_snapshot(nodes=nodes), used=used))
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("g", cpu=cpu)).vote is expected


def test_a_factor_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfError) as caught:
        vote(1, factor="much")
    assert str(caught.value) == (
        "plugin overcommit: argument overcommit-factor: 'much' is not a number"
    )


def test_a_group_without_minimum_resources_is_permitted() -> None:
    assert vote(0, min_member=5).vote is Vote.PERMIT


def test_a_rejection_tells_every_short_resource() -> None:
    refusal = vote(13, gib=30).refusal

    assert refusal is not None
    assert refusal.cause is Cause.CLUSTER_OVERUSED
    assert refusal.where == "cluster"
    assert refusal.shortfalls == (
        Shortfall("cpu", 13000, 12000, 12000, stretched_from=10000, idle=10000),
        Shortfall("memory", 30 * GIB, 24 * GIB, 24 * GIB, stretched_from=20 * GIB, idle=20 * GIB),
    )
    assert refusal.detail == "resource in cluster is overused: overused cpu, overused memory"


def test_what_is_used_and_claimed_is_not_idle() -> None:
    table = make_table(NODES)
    used = table.allocatable.copy() * 0
    used[0, 0] = 4000
    zero = room()
    snapshot = make_snapshot(
        table=table,
        used=used,
        queues=(make_queue("q"), make_queue("lost", parent="nowhere")),
        usage={
            "q": QueueUsage(zero, zero, room(cpu=3), zero, groups=1),
            "lost": QueueUsage(zero, zero, room(cpu=1), zero, groups=1),
        },
    )
    hooks, ledger = open_plugin("overcommit", snapshot)
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("fits", cpu=4)).vote is Vote.PERMIT
    assert hooks.enqueueable(claiming("big", cpu=4.001)).vote is Vote.REJECT

    ledger.admit(claiming("next", cpu=2, queue="q"))
    ballot = hooks.enqueueable(claiming("fits", cpu=4))
    assert ballot.refusal is not None
    assert ballot.refusal.shortfalls == (
        Shortfall("cpu", 4000, free=2000, limit=12000, stretched_from=10000, idle=6000),
    )


def test_what_terminates_is_told_and_no_node_has_less_than_nothing() -> None:
    table = make_table(NODES)
    used, releasing = table.allocatable.copy() * 0, table.allocatable.copy() * 0
    used[:, 0], releasing[0, 0] = 5500, 2000
    snapshot = make_snapshot(table=table, used=used, releasing=releasing)
    hooks, _ = open_plugin("overcommit", snapshot)
    assert hooks.enqueueable
    refusal = hooks.enqueueable(claiming("g", cpu=2)).refusal
    assert refusal is not None
    assert refusal.shortfalls == (
        Shortfall("cpu", 2000, 1000, 12000, stretched_from=10000, idle=0, terminating=2000),
    )


def test_what_a_group_holds_already_is_not_asked_for_again() -> None:
    table = make_table(NODES)
    used = table.allocatable.copy()
    gang = holding("back", cpu=10, min_request=room(cpu=12))
    hooks, _ = open_plugin("overcommit", make_snapshot(table=table, used=used, gangs=(gang,)))
    assert hooks.enqueueable
    assert hooks.enqueueable(gang).vote is Vote.PERMIT
