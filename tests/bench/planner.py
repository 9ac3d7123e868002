"""How fast a cycle plans: 10,000 pods on 5,000 nodes, in gangs of every size.

``python -m tests.bench.planner`` prints one line per case: the whole of ``plan`` (opening the
ledger and the plugins of Volcano's Helm defaults included), per pod, the longest piece between two
yields, and the ratio to the simplest loop that does the same work without gangs, queues or rules
(for each pod: compare and score all nodes, take the best), measured in the same run.
"""

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from app.core.placement.statics import ShapeCache
from app.core.planner import plan_gang, plan_steps
from app.core.policy import Policies
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang, Task
from app.model.plan import Plan
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from tests.builders import GIB, make_gang, make_node, make_shape, make_snapshot, make_task

NODES = 5_000
PODS = 10_000
ROUNDS = 3
SIZES = ((2_000, 5), (500, 20), (1, 10_000), (10_000, 1))
SHAPES: dict[str, Callable[[int], PodShape]] = {
    "identical": lambda _: make_shape(),
    "5 shapes": lambda i: make_shape(cpu=500 + 100 * (i % 5)),
    "all different": lambda i: make_shape(cpu=500 + i % 997, memory=GIB + i * 4096),
}
TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)


def policies() -> Policies:
    """Volcano's Helm defaults."""
    tiers = tuple(tuple(PluginConf(name) for name in tier) for tier in TIERS)
    return build(SchedulerConf(actions=("enqueue", "allocate", "backfill"), tiers=tiers))


def shapes(make: Callable[[int], PodShape]) -> list[PodShape]:
    """A shape per pod; equal ones are one object, as the decoder has it."""
    known: dict[PodShape, PodShape] = {}
    return [known.setdefault(shape, shape) for shape in map(make, range(PODS))]


def gangs(of: list[PodShape], *, count: int, size: int) -> Iterator[Gang]:
    """``count`` new gangs of ``size`` pods each, all of them needed."""
    for number in range(count):
        members = tuple(
            make_task(f"g{number}-{i}", shape=of[number * size + i]) for i in range(size)
        )
        yield make_gang(
            f"g{number}",
            waiting=members,
            phase=GroupPhase.PENDING,
            min_request=np.sum([task.request for task in members], axis=0),
        )


def cluster(pending: tuple[Gang, ...]) -> Snapshot:
    """Empty nodes of 32 cores."""
    nodes = tuple(make_node(f"node-{i:05}", cpu=32_000, memory=128 * GIB) for i in range(NODES))
    return make_snapshot(nodes=nodes, gangs=pending)


def drive(snapshot: Snapshot, by: Policies, cache: ShapeCache) -> tuple[Plan, float, float]:
    """The plan, the seconds it took, and the longest time between two yields."""
    started = piece = perf_counter()
    longest = 0.0
    steps = plan_steps(snapshot, by, now=0.0, shapes=cache)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, perf_counter() - started, longest
        now = perf_counter()
        longest, piece = max(longest, now - piece), now


def simplest_loop(snapshot: Snapshot, tasks: list[Task]) -> float:
    """Seconds of the loop that everything is compared with."""
    free = snapshot.table.allocatable - snapshot.used
    inverse = 1.0 / np.maximum(snapshot.table.allocatable, 1)
    started = perf_counter()
    for task in tasks:
        fits = (free >= task.request).all(axis=1)
        scores = ((free - task.request) * inverse).sum(axis=1)
        best = int(np.where(fits, scores, -np.inf).argmax())
        free[best] -= task.request
    return perf_counter() - started


def measure(name: str, of: list[PodShape], *, count: int, size: int) -> str:
    """One line of the table."""
    by, cache = policies(), ShapeCache()
    pending = tuple(gangs(of, count=count, size=size))
    snapshot = cluster(pending)
    rounds = [drive(snapshot, by, cache) for _ in range(ROUNDS)]
    plan, took, _ = min(rounds, key=lambda round_: round_[1])
    pause = min(longest for _, _, longest in rounds)
    placed = sum(len(decided.placements) for decided in plan.placed)
    if placed != PODS or plan.refused:
        raise RuntimeError(f"{placed} of {PODS} placed, {len(plan.refused)} refused")
    bare = simplest_loop(snapshot, [task for gang in pending for task in gang.waiting])
    each = took / PODS * 1e6
    return (
        f"{name:14} {count:6} x {size:<6} {took:6.3f} s {each:6.1f} us"
        f" {pause * 1e3:7.2f} ms {took / bare:6.2f}x"
    )


def on_demand() -> str:
    """One gang of 20 among 500, in a cycle of its own."""
    by, cache = policies(), ShapeCache()
    pending = tuple(gangs(shapes(SHAPES["5 shapes"]), count=500, size=20))
    snapshot = cluster(pending)
    times = []
    for gang in pending[:50]:
        started = perf_counter()
        plan = plan_gang(snapshot, by, key=gang.key, now=0.0, shapes=cache)
        times.append(perf_counter() - started)
        if len(plan.placed) != 1:
            raise RuntimeError(f"{gang.key} was not placed")
    return f"one gang of 20 on demand: median {np.median(times) * 1e3:.2f} ms"


def hopeless() -> str:
    """2,000 gangs of 5 that are in already and for which a full cluster has no room."""
    by, cache = policies(), ShapeCache()
    shape = make_shape(cpu=64_000)
    members = [tuple(make_task(f"g{n}-{i}", shape=shape) for i in range(5)) for n in range(2_000)]
    pending = tuple(make_gang(f"g{n}", waiting=tasks) for n, tasks in enumerate(members))
    plan, took, pause = min(
        (drive(cluster(pending), by, cache) for _ in range(ROUNDS)), key=lambda round_: round_[1]
    )
    if len(plan.refused) != len(pending):
        raise RuntimeError("somebody was placed")
    return f"2,000 equal gangs without room: {took:.3f} s, {pause * 1e3:.2f} ms"


def main() -> None:
    """Measure and print."""
    print(f"{PODS} pods on {NODES} nodes")  # noqa: T201
    print("pods            gangs x size      plan   per pod   longest   ratio")  # noqa: T201
    for name, make in SHAPES.items():
        of = shapes(make)
        for count, size in SIZES:
            print(measure(name, of, count=count, size=size))  # noqa: T201
    print(on_demand())  # noqa: T201
    print(hopeless())  # noqa: T201


if __name__ == "__main__":
    main()
