"""An entitled gang does not wait for ever while others keep coming and going."""

import pytest

from tests.bench.busy.__main__ import policies, queues
from tests.bench.busy.load import CORES, Arrival, arrivals
from tests.bench.busy.simulation import Simulation

COMES_S = 20.0
SMALL = (8, 16)
"""Sizes of the others, which are half of the cluster's work on their own."""
SECONDS = 320.0


@pytest.mark.parametrize("name", ["shipped", "drf"])
def test_a_gang_of_the_size_of_the_cluster_starts_under_overload(name: str) -> None:
    load = [each for each in arrivals(3, seconds=SECONDS) if each.size in SMALL]
    whale = Arrival("whale", COMES_S, "w3", CORES, run_s=1.0)
    simulation = Simulation(policies(name), queues(name))
    coming = sorted([*load, whale], key=lambda each: each.at)
    simulation.run(coming, seconds=SECONDS)
    assert "whale" in simulation.started
