"""The table of :mod:`tests.bench.busy`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from app.core.policy import Policies
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.workload import Queue
from tests.bench.busy.baselines import first_come, greedy
from tests.bench.busy.figures import Run, Summary, summary
from tests.bench.busy.load import WEIGHTS, arrivals
from tests.bench.busy.simulation import Simulation
from tests.builders import make_amounts, make_queue

SECONDS = 300.0
SEEDS = 20
PATIENCE = "10s"
CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "shipped": ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
    "proportion": ("predicates", "proportion", "nodeorder"),
    "capacity": ("predicates", "capacity", "nodeorder"),
    "drf": ("drf", "predicates", "nodeorder"),
}
_SHARING = ("proportion", "capacity", "drf")


def policies(name: str, *, borrowing: bool = True) -> Policies:
    """That configuration, with Volcano's first tier before it."""
    arguments = {"borrowing": borrowing, "borrowing.patience": PATIENCE}

    def plugin(of: str) -> PluginConf:
        return PluginConf(of, arguments=arguments if of in _SHARING else {})

    tiers = (("priority", "gang", "conformance"), CONFIGURATIONS[name])
    return build(
        SchedulerConf(
            actions=("enqueue", "allocate", "backfill"),
            tiers=tuple(tuple(map(plugin, tier)) for tier in tiers),
        )
    )


def queues(name: str) -> tuple[Queue, ...]:
    """Three queues of weights 1:2:3; with ``capacity`` they deserve 16, 32 and 48 cores."""
    made = (make_queue(queue, weight=weight) for queue, weight in WEIGHTS.items())
    if name != "capacity":
        return tuple(made)
    return tuple(replace(q, deserved=make_amounts(cpu=16_000 * q.weight)) for q in made)


def run(name: str, seed: int, *, seconds: float, borrowing: bool = True) -> Run:
    """One run of that configuration."""
    simulation = Simulation(policies(name, borrowing=borrowing), queues(name))
    return simulation.run(arrivals(seed, seconds=seconds), seconds=seconds)


def summaries(names: Sequence[str], seeds: Sequence[int], seconds: float) -> Iterator[Summary]:
    """The baselines, then each configuration with and without borrowing."""
    loads = [arrivals(seed, seconds=seconds) for seed in seeds]
    yield summary("first come", [first_come(load, seconds=seconds) for load in loads])
    yield summary("greedy", [greedy(load, seconds=seconds) for load in loads])
    for name in names:
        for borrowing in (True, False):
            runs = [run(name, seed, seconds=seconds, borrowing=borrowing) for seed in seeds]
            yield summary(name if borrowing else f"{name}, borrowing: false", runs)


def main(arguments: Sequence[str]) -> None:
    """Print a row per configuration."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.busy")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", nargs="*", default=list(CONFIGURATIONS))
    given = parser.parse_args(arguments)
    table = Table(title=f"{given.seeds} seeds, {given.seconds:g} s each")
    for column in ("configuration", "in use", *WEIGHTS, "longest wait of 32", "partial gangs"):
        table.add_column(column)
    for row in summaries(given.only, range(1, given.seeds + 1), given.seconds):
        table.add_row(
            row.name,
            f"{row.in_use:.3f}",
            *(f"{row.of_shares[queue]:.2f}" for queue in WEIGHTS),
            f"{row.longest_wait:.0f} s",
            str(row.partial),
        )
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
