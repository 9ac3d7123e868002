"""How long the search for victims takes: ``python -m tests.bench.evictions``.

Preemptors on full clusters, some of which have no room even with evictions. Times of the first
table are processor times of the solver: bounds, units, search and witnesses. The time that the
planner needs to prove the places which the solver found is not in them. The gap compares lost work
and pods with a lower bound that no set of units can fall below. The second table has whole
decisions (:mod:`tests.bench.decisions`).
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
from rich.console import Console

from app.core.accounts import GangAccount
from app.core.victims.bounds import places_on
from app.core.victims.problem import NoSolution, Places, Problem, Solution, Wanted
from app.core.victims.solver import bound_on, solve
from app.core.victims.units import Unit, cost_of, lost_work, units_of, work_since
from app.model.gang import Counts, Gang
from app.model.ids import GroupKey
from app.model.resources import Mask, Matrix, Rows, Vector
from app.model.running import Running
from tests.bench import decisions
from tests.bench.full_clusters import (
    NOW,
    Full,
    Group,
    Request,
    gpus,
    mixed,
    running_of,
    uniform,
)
from tests.bench.planner import machine, settle, table_of
from tests.builders import make_gang

SEEDS = 10
COLUMNS = ("case", "units", "victims", "gangs", "median", "p99", "lost/bound", "pods/bound")


@dataclass(frozen=True)
class Cluster:
    """What runs, what is idle of each node, and who may go."""

    running: Running
    room: Matrix
    candidates: Rows
    gangs: Mapping[GroupKey, Gang]
    accounts: dict[GroupKey, GangAccount]
    total: Vector

    @classmethod
    def of(cls, full: Full) -> "Cluster":
        """The pods of ``full``; the youngest one goes first."""
        groups = full.groups
        gangs = [_gang(f"g{at}", group) for at, group in enumerate(groups)]
        running = running_of(groups, gangs)
        room = np.array(full.sizes, dtype=np.int64)
        total = room.sum(axis=0)
        np.subtract.at(room, running.nodes, running.requests)
        found = np.lexsort((-running.started, running.priorities))
        accounts = {gang.key: GangAccount.of(gang) for gang in gangs}
        by_key = {gang.key: gang for gang in gangs}
        return cls(running, room, found, by_key, accounts, total)


def _gang(name: str, group: Group) -> Gang:
    return make_gang(
        name,
        min_member=group.minimum,
        priority=group.priority,
        counts=Counts(running=len(group.nodes)),
    )


# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """``asks`` are requests and how many members have them."""

    name: str
    make: Callable[[random.Random], Full]
    asks: Sequence[tuple[Request, int]]
    fits: bool = True

    def wanted(self, cluster: Cluster) -> list[Wanted]:
        """The members on all nodes of ``cluster``."""
        mask = np.ones(len(cluster.room), dtype=np.bool_)
        return [Wanted(mask, np.array(request), count) for request, count in self.asks]


CASES = (
    Case("uniform: 1 x 4 cores", uniform, [((4_000, 4_000, 1, 0), 1)]),
    Case("uniform: 100 x 4 cores", uniform, [((4_000, 4_000, 1, 0), 100)]),
    Case("mixed: 1 x 4 cores", mixed, [((4_000, 16_000, 1, 0), 1)]),
    Case("mixed: 100 x 4 cores", mixed, [((4_000, 16_000, 1, 0), 100)]),
    Case(
        "mixed: 4 x 8 and 50 x 3 cores",
        mixed,
        [((8_000, 32_000, 1, 0), 4), ((3_000, 8_000, 1, 0), 50)],
    ),
    Case("mixed: 1,500 x 12 cores", mixed, [((12_000, 8_000, 1, 0), 1_500)], fits=False),
    Case("mixed: 1 x 20 cores", mixed, [((20_000, 8_000, 1, 0), 1)], fits=False),
    Case("GPUs: 1 x 8", gpus, [((64_000, 256_000, 1, 8), 1)]),
    Case("GPUs: 64 x 1", gpus, [((8_000, 64_000, 1, 1), 64)]),
    Case("GPUs: 32 x 8", gpus, [((64_000, 256_000, 1, 8), 32)]),
    Case("GPUs: 501 x 8", gpus, [((64_000, 256_000, 1, 8), 501)], fits=False),
)


def solved(case: Case, cluster: Cluster) -> tuple[Solution | NoSolution, Sequence[Unit]]:
    """What the actions do for one preemptor, but for the rules and the planner's proof."""
    running, wanted = cluster.running, case.wanted(cluster)
    may_go = np.ones(len(running), dtype=np.bool_)
    bound = bound_on(running, cluster.room, wanted, may_go=may_go)
    if bound is not None:
        return NoSolution(bound), ()
    lost = lost_work(running, total=cluster.total, saved=work_since(running, now=NOW), now=NOW)
    units = units_of(
        cluster.candidates,
        running,
        cluster.gangs,
        account_of=lambda gang: cluster.accounts[gang.key],
        lost=lost,
    )
    problem = Problem(
        units, running, cluster.room, wanted, lambda: nullcontext(_Free(units)), _believe
    )
    return solve(problem), units


@dataclass(frozen=True)
class _Free:
    """All units may go together."""

    units: Sequence[Unit]

    def take(self, units: Sequence[Unit]) -> int | None:
        """Let them go."""
        return None

    def still_may(self) -> Mask:
        """All of them."""
        return np.ones(len(self.units), dtype=np.bool_)


def _believe(units: Sequence[Unit], places: Places | None) -> Places | None:
    return places


# --- what no set of units can fall below ---------------------------------------------------------


def least(case: Case, cluster: Cluster, units: Sequence[Unit], found: Solution) -> Iterator[float]:
    """Lower bounds on lost work and pods, of sets of units that end no gang.

    Each resource of each node is looked at by itself, units may go in part, and what places cost on
    a node is taken for convex.
    """
    wanted = case.wanted(cluster)[0]
    highest = cost_of(found.units).priority
    single = [unit for unit in units if not unit.whole and unit.priority <= highest]
    there = places_on(cluster.room, wanted)
    lacking = wanted.count - int(there.sum())
    on: dict[int, list[Unit]] = {}
    for unit in single:
        on.setdefault(int(cluster.running.nodes[unit.pods[0]]), []).append(unit)
    for count_work in (True, False):
        slopes: list[float] = []
        for node, mine in on.items():
            costs = [(unit, unit.lost if count_work else 1) for unit in mine]
            slopes += _slopes(cluster, wanted, node, costs)
        yield sum(sorted(slopes)[:lacking])


def _slopes(
    cluster: Cluster, wanted: Wanted, node: int, mine: Sequence[tuple[Unit, int]]
) -> list[float]:
    """What each further place on the node costs at least, the sums made convex from below."""
    room, requests = cluster.room[node], cluster.running.requests
    had = int((room[wanted.request > 0] // wanted.request[wanted.request > 0]).min())
    points = [0.0]
    while len(points) <= wanted.count:
        short = wanted.request * (had + len(points)) - room
        worst = 0.0
        for r in np.flatnonzero((short > 0) & (wanted.request > 0)).tolist():
            cost = _fraction([(int(requests[u.pods[0], r]), c) for u, c in mine], int(short[r]))
            worst = max(worst, cost)
        if worst == np.inf:
            break
        points.append(worst)
    slopes: list[float] = []
    at = 0
    while at < len(points) - 1:
        steps = [(points[to] - points[at]) / (to - at) for to in range(at + 1, len(points))]
        lowest = min(steps)
        to = at + 1 + max(i for i, step in enumerate(steps) if step == lowest)
        slopes += [lowest] * (to - at)
        at = to
    return slopes


def _fraction(mine: Sequence[tuple[int, int]], short: int) -> float:
    """The least cost of freeing so much when units may go in part."""
    total = 0.0
    for amount, cost in sorted(
        ((a, c) for a, c in mine if a > 0), key=lambda each: each[1] / each[0]
    ):
        taken = min(amount, short)
        total += cost * taken / amount
        short -= taken
        if not short:
            return total
    return np.inf


def row(case: Case) -> Sequence[str]:
    """One row of the table; raises where the answer is wrong."""
    clusters = [Cluster.of(case.make(random.Random(seed))) for seed in range(SEEDS)]
    settle()
    times: list[float] = []
    results = []
    for cluster in clusters * 3:
        began = process_time()
        result = solved(case, cluster)
        times.append((process_time() - began) * 1e3)
        results.append((cluster, *result))
        if isinstance(result[0], Solution) is not case.fits:
            raise RuntimeError(f"{case.name}: {result[0]}")
    timing = (f"{median(times):.1f}", f"{np.percentile(times, 99):.1f}")
    if not case.fits:
        return (case.name, "", "", "", *timing, "", "")
    found = [(c, s, u) for c, s, u in results[:SEEDS] if isinstance(s, Solution)]
    costs = [cost_of(s.units) for _, s, _ in found]
    counts = (
        f"{median(len(u) for *_, u in found):.0f}",
        f"{median(cost.pods for cost in costs):.0f}",
        f"{median(cost.gangs for cost in costs):.0f}",
    )
    gaps = ["", ""]
    if not any(cost.gangs for cost in costs) and len(case.asks) == 1:
        bounds = [tuple(least(case, cluster, units, s)) for cluster, s, units in found]
        lost = [cost.lost / max(bound[0], 1.0) for cost, bound in zip(costs, bounds, strict=True)]
        pods = [cost.pods / max(bound[1], 1.0) for cost, bound in zip(costs, bounds, strict=True)]
        gaps = [f"{median(lost):.3f}", f"{median(pods):.3f}"]
    return (case.name, *counts, *timing, *gaps)


def main() -> None:
    """Measure and print."""
    console = Console(width=110)
    console.print(machine())
    table = table_of(f"Victims for one preemptor ({SEEDS} clusters, ms)", *COLUMNS)
    for case in CASES:
        table.add_row(*row(case))
    console.print(table)
    console.print(decisions.table())


if __name__ == "__main__":
    main()
