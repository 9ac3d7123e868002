"""How fast nodes are found: 10,000 tasks on 5,000 nodes, one after another.

The last table of :mod:`tests.bench.planner`: processor time, per task, and as a ratio to the bare
ledger (place without find), so that runs on different machines can be compared.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from time import process_time

from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.policy import Predicates, Scoring
from app.model.gang import Gang, Task
from app.model.node import Taint
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement, Spread
from app.model.snapshot import Snapshot
from tests.builders import GIB, make_gang, make_node, make_shape, make_snapshot, make_task

NODES = 5_000
TASKS = 10_000
ON_DEMAND = 20
ROUNDS = 5
SCORING = Scoring(
    least_requested=1,
    balanced=1,
    node_affinity=2,
    pod_affinity=2,
    taint_toleration=3,
    image_locality=1,
    topology_spread=2,
    binpack_weight=1,
    binpack={"cpu": 1, "memory": 1},
)
"""The weights of Volcano's Helm defaults."""


def cluster() -> Snapshot:
    """Nodes in ten zones, one in ten tainted, as a snapshot without usage."""
    nodes = tuple(
        make_node(
            f"node-{i:05}",
            cpu=32_000,
            memory=128 * GIB,
            labels={"kubernetes.io/hostname": f"node-{i:05}", "zone": f"z{i % 10}"},
            taints=(Taint("dedicated", "gpu", "NoSchedule"),) if i // 10 % 10 == 0 else (),
        )
        for i in range(NODES)
    )
    return make_snapshot(nodes=nodes)


def tasks(shapes: Sequence[PodShape], count: int) -> Gang:
    """One gang of ``count`` tasks that go through ``shapes`` in turn."""
    waiting = tuple(make_task(f"t{i}", shape=shapes[i % len(shapes)]) for i in range(count))
    return make_gang(waiting=waiting)


def place_all(snapshot: Snapshot, gang: Gang, cache: ShapeCache) -> float:
    """Seconds to find and place every task of ``gang`` on a fresh ledger."""
    ledger = Ledger(snapshot)
    started = process_time()
    placer = Placer(ledger, predicates=Predicates(), scoring=SCORING, cache=cache)
    for task in gang.waiting:
        row = placer.find(gang, task)
        if row is None:
            raise RuntimeError(f"{task.name} found no node")
        ledger.place(gang, task, node=row)
    return process_time() - started


def place_blindly(snapshot: Snapshot, gang: Gang) -> float:
    """Seconds of the ledger's part alone."""
    ledger = Ledger(snapshot)
    started = process_time()
    for number, task in enumerate(gang.waiting):
        ledger.place(gang, task, node=number % NODES)
    return process_time() - started


def middle(run: Callable[[], float]) -> float:
    """The median of a few rounds."""
    return median(run() for _ in range(ROUNDS))


def cases() -> dict[str, Gang]:
    """What is measured."""
    identity = ("default", (("app", "web"),))
    web = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
    apart = PodTerm("kubernetes.io/hostname", web, ("default",))
    spread = Spread(1, "zone", hard=True, selector=web)
    spread_shape = make_shape(spread=(spread,), spread_identity=identity)
    apart_shape = make_shape(pod_anti_affinity=(apart,), spread_identity=identity)
    different: list[Task] = [
        make_task(f"t{i}", shape=make_shape(cpu=500 + i % 997, memory=GIB + i * 4096))
        for i in range(TASKS)
    ]
    return {
        "identical": tasks([make_shape()], TASKS),
        "5 shapes": tasks([make_shape(cpu=500 + 100 * i) for i in range(5)], TASKS),
        "all different": make_gang(waiting=tuple(different)),
        "zone spread": tasks([spread_shape], 2_000),
        "one per host": tasks([apart_shape], 2_000),
    }


COLUMNS = ("tasks", "count", "cpu s", "us/task", "ratio")
"""The ratio is to the bare ledger."""


def rows() -> Iterator[Sequence[str]]:
    """A row per case, and one for a few tasks on demand."""
    snapshot, cache = cluster(), ShapeCache()
    for name, gang in cases().items():
        count = len(gang.waiting)
        bare = middle(partial(place_blindly, snapshot, gang))
        took = middle(partial(place_all, snapshot, gang, cache))
        yield name, f"{count}", f"{took:.3f}", f"{took / count * 1e6:.1f}", f"{took / bare:.1f}"
    few = tasks([make_shape()], ON_DEMAND)
    took = middle(partial(place_all, snapshot, few, cache))
    yield "on demand", f"{ON_DEMAND}", f"{took:.5f}", f"{took / ON_DEMAND * 1e6:.1f}", ""
