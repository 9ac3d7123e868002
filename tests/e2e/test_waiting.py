"""Gangs that wait cost the scheduler nothing behind the gate, and little without it.

Un-admitted gangs wait while other pods are bound. Behind the gate the scheduler never asks for
them. Ungated (no admission policy), every bind would make it try all of them again, if the extender
did not answer them so that only the back-off ladder does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.clusters import resources, workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig
from tests.e2e.scale import FULL

pytestmark = pytest.mark.real

GANG = 20
WAITING = 500 if FULL else 100
OTHERS = 1000 if FULL else 200
NODES = 100 if FULL else 20
KEPT = 0.8
"""Of its rate without waiting pods the scheduling loop must keep this much."""


@pytest.fixture
def crowd(rig: Rig) -> Iterator[Place]:
    """Nodes with room, and gangs that wait because their queue is closed."""
    with Place(rig) as place:
        place.add_nodes(NODES, cpu="64")
        closed = place.add_queue("closed")
        place.set_state(closed, "Closed")
        for number in range(WAITING // GANG):
            place.add_group(f"waiting-{number}", GANG, queue=closed)
        yield place


def exempt(pod: Object) -> Object:
    pod["metadata"]["annotations"] |= workloads.UNGATED
    return pod


def add_waiting(place: Place, *, gated: bool) -> None:
    pods = [
        pod
        for number in range(WAITING // GANG)
        for pod in workloads.members(f"waiting-{number}", GANG)
    ]
    place.submit(pods if gated else map(exempt, pods))
    wait_until(
        lambda: place.cluster.extender.get("/debug/snapshot")["totals"]["members"] >= WAITING,
        timeout_s=30,
        what="the extender knows the waiting pods",
    )


def take_away_waiting(place: Place) -> None:
    assert not place.bound()
    place.api.delete_all(resources.PODS, namespace=place.name)
    place.wait_gone()


def refusals(place: Place) -> float:
    """How many Filter calls were answered by a no so far."""
    seen = place.cluster.extender.metrics()
    return sum(
        seen.get(f'pumice_extender_answers_total{{answer="{answer}",verb="filter"}}', 0)
        for answer in ("wait", "protect")
    )


def bind_others(place: Place, batch: str) -> float:
    """Bind pods that need nobody; returns pods per second, first create to last bind."""
    pods = [exempt(workloads.pod(f"{batch}-{i}", cpu="100m")) for i in range(OTHERS)]
    for pod in pods:
        pod["metadata"]["labels"] = {"group": batch}
    started = time.monotonic()
    place.submit(pods)
    place.wait_bound(batch, OTHERS, timeout_s=120)
    rate = OTHERS / (time.monotonic() - started)
    place.delete_pods(batch)
    wait_until(lambda: not place.pods(batch), timeout_s=30, what=f"{batch} gone")
    return rate


@pytest.mark.timeout(600)
def test_waiting_gangs_do_not_slow_the_scheduler_down(crowd: Place) -> None:
    bind_others(crowd, "warm-up")
    alone = bind_others(crowd, "alone-first")

    add_waiting(crowd, gated=True)
    before = refusals(crowd)
    gated = bind_others(crowd, "past-gated")
    assert refusals(crowd) == before
    take_away_waiting(crowd)

    add_waiting(crowd, gated=False)
    before = refusals(crowd)
    ungated = bind_others(crowd, "past-ungated")
    asked = refusals(crowd) - before
    take_away_waiting(crowd)

    alone = (alone + bind_others(crowd, "alone-again")) / 2
    print(  # noqa: T201 - the figures of a long run
        f"{OTHERS} pods past {WAITING} waiting: alone {alone:.0f}/s, gated {gated:.0f}/s "
        f"({gated / alone:.2f}), ungated {ungated:.0f}/s ({ungated / alone:.2f}), "
        f"{asked:.0f} Filter calls for the ungated"
    )
    # A loop that never catches up asks a hundred times for each.
    assert asked <= 10 * WAITING
    if FULL:
        assert gated >= KEPT * alone
        assert ungated >= KEPT * alone
