"""How fast a cycle plans: 10,000 pods on 5,000 nodes, and one gang on demand.

``python -m tests.bench.planner`` (``make bench-planner``) prints four tables:

* whole cycles with Volcano's Helm defaults, opening the ledger and all plugins included: time on
  the wall and of the processor (the machine may be shared), per pod, the longest piece between two
  yields, and the ratio to the simplest loop that does the same work without gangs, queues or rules
  (for each pod: compare and score all nodes, take the best), measured in the same run;
* one gang of 20 on demand in clusters of several sizes, and what its parts cost;
* 3,000 gangs that no end of other pods helps beside one that could run (:mod:`tests.bench.aside`);
* the search for nodes alone (:mod:`tests.bench.placement`).

Figures are medians. Objects are frozen for the garbage collector first, as the process does once
its caches are full.
"""

import gc
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter, process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.planner import plan, plan_gang, plan_steps
from app.core.policy import Policies
from app.core.tiers import build, open_policies
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName, group_key
from app.model.plan import Plan
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement, Spread
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from tests.bench import aside, placement
from tests.builders import (
    GIB,
    make_gang,
    make_node,
    make_queue,
    make_shape,
    make_snapshot,
    make_task,
)

NODES = 5_000
PODS = 10_000
ROUNDS = 5
SIZES = ((2_000, 5), (500, 20), (1, 10_000), (10_000, 1))
TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)
HOST, ZONE = "kubernetes.io/hostname", "zone"

Shapes = Callable[[int], PodShape]
"""The shape of the pod of a number."""


def identical(_number: int) -> PodShape:
    """All pods ask for the same."""
    return make_shape()


def of_five(number: int) -> PodShape:
    """Five sizes in turn."""
    return make_shape(cpu=500 + 100 * (number % 5))


def different(number: int) -> PodShape:
    """No two pods ask for the same."""
    return make_shape(cpu=500 + number % 997, memory=GIB + number * 4096)


def apart(app: str) -> PodShape:
    """Pods of ``app`` that share no node."""
    term = PodTerm(HOST, selector_of(app), ("default",))
    return make_shape(pod_anti_affinity=(term,), spread_identity=identity_of(app))


def spread(app: str) -> PodShape:
    """Pods of ``app`` that spread over the zones."""
    constraint = Spread(1, ZONE, hard=True, selector=selector_of(app))
    return make_shape(spread=(constraint,), spread_identity=identity_of(app))


def selector_of(app: str) -> LabelSelector:
    """Selects the pods of ``app``."""
    return LabelSelector((Requirement("app", Operator.IN, (app,)),))


def identity_of(app: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Namespace and labels of the pods of ``app``."""
    return "default", (("app", app),)


@dataclass(frozen=True, slots=True)
class Case:
    """``count`` gangs of ``size`` pods, shaped by ``make``."""

    name: str
    make: Shapes
    count: int
    size: int


def cases() -> Iterator[Case]:
    """What whole cycles are measured with."""
    shapes: dict[str, Shapes] = {
        "identical": identical,
        "5 shapes": of_five,
        "all different": different,
    }
    for name, make in shapes.items():
        for count, size in SIZES:
            yield Case(name, make, count, size)
    yield Case("one per host", lambda _: apart("web"), 200, 20)
    yield Case("one per host, by gang", lambda i: apart(f"g{i // 20}"), 500, 20)
    yield Case("even over zones", lambda _: spread("web"), 500, 20)
    yield Case("even over zones, by gang", lambda i: spread(f"g{i // 20}"), 500, 20)


def policies() -> Policies:
    """Volcano's Helm defaults."""
    tiers = tuple(tuple(PluginConf(name) for name in tier) for tier in TIERS)
    return build(SchedulerConf(actions=("enqueue", "allocate", "backfill"), tiers=tiers))


def gangs(case: Case, *, phase: GroupPhase = GroupPhase.PENDING) -> Iterator[Gang]:
    """New gangs, all of their members needed; equal shapes are one object."""
    known: dict[PodShape, PodShape] = {}
    for number in range(case.count):
        first = number * case.size
        made = [case.make(i) for i in range(first, first + case.size)]
        members = tuple(
            make_task(f"g{number}-{i}", shape=known.setdefault(shape, shape))
            for i, shape in enumerate(made)
        )
        yield make_gang(
            f"g{number}",
            waiting=members,
            phase=phase,
            min_request=np.sum([task.request for task in members], axis=0),
        )


def cluster(pending: Sequence[Gang], *, queues: int = 0, inter_pod: bool = False) -> Snapshot:
    """Empty nodes of 32 cores in ten zones; gangs in ``queues`` queues, or in the default one."""
    nodes = tuple(
        make_node(
            f"node-{i:05}",
            cpu=32_000,
            memory=128 * GIB,
            labels={HOST: f"node-{i:05}", ZONE: f"z{i % 10}"},
        )
        for i in range(NODES)
    )
    if queues:
        pending = [
            replace(gang, queue=QueueName(f"q{i % queues}")) for i, gang in enumerate(pending)
        ]
    named = tuple(make_queue(f"q{i}") for i in range(queues))
    return make_snapshot(nodes=nodes, gangs=tuple(pending), queues=named, inter_pod=inter_pod)


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians for one cycle: seconds on the wall, of the processor, and for its longest piece."""

    wall_s: float
    cpu_s: float
    pause_s: float


def timing(snapshot: Snapshot, by: Policies, cache: ShapeCache) -> Timing:
    """Measure whole cycles.

    No plan is kept, as the collector would go through it in the next run, and pieces are measured
    apart: asking for the processor's time thousands of times is not part of a cycle.
    """
    settle()
    pauses = [longest_piece(snapshot, by, cache) for _ in range(ROUNDS)]
    runs = [timed(partial(plan, snapshot, by, now=0.0, shapes=cache)) for _ in range(ROUNDS)]
    walls, cpus = zip(*runs, strict=True)
    return Timing(median(walls), median(cpus), median(pauses))


def longest_piece(snapshot: Snapshot, by: Policies, cache: ShapeCache) -> float:
    """Plan in pieces, as the service does; processor seconds of the longest."""
    longest, began = 0.0, process_time()
    for _ in plan_steps(snapshot, by, now=0.0, shapes=cache):
        now = process_time()
        longest, began = max(longest, now - began), now
    return max(longest, process_time() - began)


def simplest_loop(snapshot: Snapshot, tasks: Sequence[Task]) -> float:
    """Processor seconds of the loop that everything is compared with."""
    free = snapshot.table.allocatable - snapshot.used
    inverse = 1.0 / np.maximum(snapshot.table.allocatable, 1)
    started = process_time()
    for task in tasks:
        fits = (free >= task.request).all(axis=1)
        scores = ((free - task.request) * inverse).sum(axis=1)
        best = int(np.where(fits, scores, -np.inf).argmax())
        free[best] -= task.request
    return process_time() - started


def measure(case: Case) -> Sequence[str]:
    """One row of the first table; raises when not all were placed."""
    by, cache = policies(), ShapeCache()
    pending = tuple(gangs(case))
    snapshot = cluster(pending, inter_pod=pending[0].waiting[0].shape.looks_at_pods)
    _check_that_all_are_placed(case, plan(snapshot, by, now=0.0, shapes=cache))
    taken = timing(snapshot, by, cache)
    bare = simplest_loop(snapshot, [task for gang in pending for task in gang.waiting])
    return (*_columns(case, taken), f"{taken.cpu_s / bare:.2f}")


def _columns(case: Case, taken: Timing) -> Sequence[str]:
    """All of a row but the ratio."""
    return (
        case.name,
        f"{case.count} x {case.size}",
        f"{taken.wall_s:.3f}",
        f"{taken.cpu_s:.3f}",
        f"{taken.cpu_s / (case.count * case.size) * 1e6:.0f}",
        f"{taken.pause_s * 1e3:.1f}",
    )


def _check_that_all_are_placed(case: Case, decided: Plan) -> None:
    placed = sum(len(gang.placements) for gang in decided.placed)
    pods = case.count * case.size
    if placed != pods or decided.refused:
        raise RuntimeError(f"{case.name}: {placed} of {pods} placed")


def hopeless() -> Sequence[str]:
    """2,000 gangs of 5 that are in already and for which there is no room."""
    by, cache = policies(), ShapeCache()
    case = Case("no room", lambda _: make_shape(cpu=64_000), 2_000, 5)
    snapshot = cluster(tuple(gangs(case, phase=GroupPhase.INQUEUE)))
    if len(plan(snapshot, by, now=0.0, shapes=cache).refused) != case.count:
        raise RuntimeError("somebody was placed")
    return (*_columns(case, timing(snapshot, by, cache)), "")


def on_demand(name: str, case: Case, *, queues: int) -> Sequence[str]:
    """One row of the second table: gangs of 20, one at a time, each on a ledger of its own."""
    by, cache = policies(), ShapeCache()
    twenty = Case(case.name, case.make, 50, 20)
    asked = tuple(gangs(twenty))
    others = [replace(gang, key=group_key("other", gang.name)) for gang in gangs(case)]
    snapshot = cluster((*asked, *others), queues=queues)
    settle()
    keys = [gang.key for gang in asked]
    whole = [
        timed(partial(plan_gang, snapshot, by, key=key, now=0.0, shapes=cache)) for key in keys
    ]
    if not plan_gang(snapshot, by, key=keys[0], now=0.0, shapes=cache).placed:
        raise RuntimeError(f"{keys[0]} was not placed")
    ledger = Ledger(snapshot)
    opened = open_policies(by, ledger, now=0.0)
    parts = (
        partial(Ledger, snapshot),
        partial(open_policies, by, ledger, now=0.0),
        partial(Placer, ledger, predicates=opened.predicates, scoring=opened.scoring, cache=cache),
    )
    costs = [median(timed(part)[1] for _ in keys) for part in parts]
    return (
        name,
        *(f"{median(each[i] for each in whole) * 1e3:.2f}" for i in (0, 1)),
        *(f"{cost * 1e3:.2f}" for cost in costs),
    )


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall and of the processor."""
    cpu, started = process_time(), perf_counter()
    run()
    return perf_counter() - started, process_time() - cpu


def settle() -> None:
    """What lives now lives long: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


def table_of(title: str, *columns: str) -> Table:
    """An empty table; all columns but the first hold numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def machine() -> str:
    """What it ran on."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"{platform.system()} {platform.release()}, Python {sys.version.split()[0]}, "
        f"NumPy {np.__version__}; {NODES} nodes, medians of {ROUNDS} runs"
    )


def main() -> None:
    """Measure and print."""
    console = Console(width=110)
    console.print(machine())
    cycles = table_of(
        "Whole cycles", "pods", "gangs", "wall s", "cpu s", "us/pod", "pause ms", "ratio"
    )
    for case in cases():
        cycles.add_row(*measure(case))
    cycles.add_row(*hopeless())
    console.print(cycles)
    single = table_of(
        "One gang of 20 on demand (ms)", "pending", "wall", "cpu", "ledger", "plugins", "placer"
    )
    few, many = Case("5 shapes", of_five, 500, 20), Case("identical", identical, 10_000, 1)
    single.add_row(*on_demand("550 gangs, 1 queue", few, queues=0))
    single.add_row(*on_demand("550 gangs, 100 queues", few, queues=100))
    single.add_row(*on_demand("10,050 gangs, 1 queue", many, queues=0))
    console.print(single)
    impossible = table_of("Gangs that nothing helps", *aside.COLUMNS)
    for row in aside.rows(policies(), nodes=NODES):
        impossible.add_row(*row)
    console.print(impossible)
    nodes = table_of("Nodes for tasks, one after another", *placement.COLUMNS)
    for row in placement.rows():
        nodes.add_row(*row)
    console.print(nodes)


if __name__ == "__main__":
    main()
