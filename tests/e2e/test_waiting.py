"""Gangs that wait cost the scheduler nothing behind the gate, and little without it.

Un-admitted gangs wait while other pods are bound. Behind the gate the scheduler never asks for
them. Ungated (no admission policy), every bind would make it try all of them again, if the extender
did not answer them so that only the back-off ladder does.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.clusters import resources, workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig
from tests.scale import FULL

pytestmark = pytest.mark.real

GANG = 20
WAITING = 500 if FULL else 100
OTHERS = 1000 if FULL else 200
NODES = 100 if FULL else 20
TURNS = 5 if FULL else 1
STEPS = 5 if FULL else 1
"""How often a pod that waits has been asked about when the measure begins."""
KEPT = 0.8
"""Of its rate without waiting pods the scheduling loop must keep this much."""

_batches = itertools.count(1)


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


def has_asked(place: Place, count: float) -> bool:
    return refusals(place) >= count


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


def bind_others(rig: Rig, place: Place) -> float:
    """Bind pods that need nobody, as fast as the scheduler can; returns pods per second.

    They are created while it stands still, so that nobody waits for those who create them.
    """
    batch = f"batch-{next(_batches)}"
    pods = [exempt(workloads.pod(f"{batch}-{i}", cpu="100m")) for i in range(OTHERS)]
    for pod in pods:
        pod["metadata"]["labels"] = {"group": batch}
    rig.scheduler.pause()
    try:
        place.submit(pods)
    finally:
        rig.scheduler.resume()
    started = time.monotonic()
    place.wait_bound(batch, OTHERS, timeout_s=120)
    rate = OTHERS / (time.monotonic() - started)
    place.delete_pods(batch)
    wait_until(lambda: not place.pods(batch), timeout_s=30, what=f"{batch} gone")
    return rate


@pytest.mark.timeout(900)
def test_waiting_gangs_do_not_slow_the_scheduler_down(rig: Rig, crowd: Place) -> None:
    """Each rate is the best of some runs that take turns: the machine has other things to do."""
    alone, gated, ungated, asked = 0.0, 0.0, 0.0, 0.0
    bind_others(rig, crowd)
    for _ in range(TURNS):
        alone = max(alone, bind_others(rig, crowd))

        add_waiting(crowd, gated=True)
        before = refusals(crowd)
        gated = max(gated, bind_others(rig, crowd))
        assert refusals(crowd) == before
        take_away_waiting(crowd)

        before = refusals(crowd)
        add_waiting(crowd, gated=False)
        wait_until(
            partial(has_asked, crowd, before + STEPS * WAITING),
            timeout_s=60,
            what="the back-off of the waiting pods is long",
        )
        before = refusals(crowd)
        ungated = max(ungated, bind_others(rig, crowd))
        asked = max(asked, refusals(crowd) - before)
        take_away_waiting(crowd)
    print(  # noqa: T201 - the figures of a long run
        f"{OTHERS} pods past {WAITING} waiting: alone {alone:.0f}/s, gated {gated:.0f}/s "
        f"({gated / alone:.2f}), ungated {ungated:.0f}/s ({ungated / alone:.2f}); "
        f"0 Filter calls for the gated, {asked:.0f} for the ungated"
    )
    # A loop that never catches up asks a hundred times for each.
    assert asked <= 10 * WAITING
    if FULL:
        assert gated >= KEPT * alone
        assert ungated >= KEPT * alone
