"""Two gangs that do not fit side by side never get in each other's way, however they arrive."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.rig import Rig
from tests.scale import ROUND_S, ROUNDS

pytestmark = pytest.mark.real

SIZE = 12
NODES = 5
"""Of 4 cpu: each gang needs 60 % of the cluster."""
BURST_S = 5.0
"""Longer than one burst of Bindings takes on a busy machine; the promise after a fault is 15 s."""
MIN_RESOURCES = {"cpu": str(SIZE), "memory": f"{64 * SIZE}Mi"}


def submit_in_turns(place: Place, *, gated: bool, announced: bool) -> None:
    """Create both gangs, one pod of each after the other."""
    spec = {"minResources": MIN_RESOURCES} if announced else {}
    for name in ("a", "b"):
        place.add_group(name, SIZE, **spec)
    for number in range(SIZE):
        for name in ("a", "b"):
            pod = workloads.pod(f"{name}-{number}", group=name)
            if not gated:
                pod["metadata"]["annotations"] |= workloads.UNGATED
            place.submit_one(pod)


@pytest.mark.timeout(ROUNDS * ROUND_S)
def test_of_two_gangs_of_60_percent_one_runs_whole_and_the_other_waits_whole_then_follows(
    rig: Rig,
) -> None:
    with Place(rig) as place:
        place.add_nodes(NODES, cpu="4")
        for number in range(ROUNDS):
            with Partials(place.api, place.name, {"a": SIZE, "b": SIZE}) as seen:
                submit_in_turns(place, gated=number % 2 == 0, announced=number % 3 == 0)
                first, second = seen.wait_one_whole(timeout_s=ROUND_S / 3)
                place.wait_summary(second, "cpu asked 12, free 8 of 20")
                assert seen.bound(second) == 0, f"round {number}"
                place.delete_gang(first)
                place.wait_bound(second, SIZE)
                assert seen.longest_s() < BURST_S, f"round {number}"
            place.delete_gang(second)
            place.wait_gone()
            place.wait_nothing_held()
