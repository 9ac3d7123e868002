"""How long whole decisions about evictions take, in a cycle of the planner.

One gang waits on a full cluster, under the conf that is shipped for preempting. A decision is all
that happens for it between two yields of the cycle: the proof without victims, candidates, what the
plugins say of them, their order, the search, the proof with victims, and the certificate.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from rich.table import Table

from app.core.placement.statics import ShapeCache
from app.core.planner import plan_steps
from app.core.policy import Policies
from app.core.tiers import build
from app.model.gang import Counts, Gang
from app.model.ids import QueueName
from app.model.plan import Plan
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from app.wire.scheduler_conf import parse_scheduler_conf
from tests.bench.full_clusters import (
    AXIS,
    GPU,
    NOW,
    Full,
    Group,
    Request,
    gpus,
    mixed,
    running_of,
    shape_of,
    uniform,
)
from tests.bench.planner import settle, table_of
from tests.builders import make_gang, make_node, make_queue, make_snapshot, make_task

SEEDS = 5
ROUNDS = 3
HIGH = 5_000
PREEMPTING = Path(__file__).parents[2] / "scheduler-config" / "volcano-scheduler-preempting.conf"
COLUMNS = ("case", "victims", "gangs", "median", "p99", "cycle")
OWN, OTHERS = ("own",), ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A gang asks for ``count`` times ``request``; what runs is in ``queues`` in turn."""

    name: str
    make: Callable[[random.Random], Full]
    request: Request
    count: int
    queues: Sequence[str] = OWN
    priority: int = HIGH
    fits: bool = True

    @property
    def waiting(self) -> Gang:
        """The gang."""
        shape = shape_of(self.request)
        return make_gang(
            "new",
            waiting=tuple(
                make_task(f"new-{at}", shape=shape, axis=AXIS) for at in range(self.count)
            ),
            axis=AXIS,
            queue=QueueName("own"),
            priority=self.priority,
        )


CASES = (
    Case("uniform: preempt 1 x 4 cores", uniform, (4_000, 4_000, 1, 0), 1),
    Case("uniform: preempt 100 x 4 cores", uniform, (4_000, 4_000, 1, 0), 100),
    Case("mixed: preempt 1 x 4 cores", mixed, (4_000, 16_000, 1, 0), 1),
    Case("mixed: preempt 100 x 4 cores", mixed, (4_000, 16_000, 1, 0), 100),
    Case("mixed: reclaim 100 x 4 cores", mixed, (4_000, 16_000, 1, 0), 100, OTHERS),
    Case("mixed: same priority", mixed, (4_000, 16_000, 1, 0), 100, priority=0, fits=False),
    Case("mixed: half may go", mixed, (12_000, 48_000, 1, 0), 900, priority=100, fits=False),
    Case("mixed: preempt 1,500 x 12 cores", mixed, (12_000, 8_000, 1, 0), 1_500, fits=False),
    Case("mixed: reclaim 1 x 20 cores", mixed, (20_000, 8_000, 1, 0), 1, OTHERS, fits=False),
    Case("GPUs: preempt 1 x 8", gpus, (64_000, 256_000, 1, 8), 1),
    Case("GPUs: preempt 64 x 1", gpus, (8_000, 64_000, 1, 1), 64),
    Case("GPUs: preempt 32 x 8", gpus, (64_000, 256_000, 1, 8), 32),
    Case("GPUs: reclaim 32 x 8", gpus, (64_000, 256_000, 1, 8), 32, OTHERS),
    Case("GPUs: same priority", gpus, (64_000, 256_000, 1, 8), 32, priority=0, fits=False),
    Case("GPUs: two thirds may go", gpus, (64_000, 256_000, 1, 8), 450, priority=100, fits=False),
    Case("GPUs: preempt 501 x 8", gpus, (64_000, 256_000, 1, 8), 501, fits=False),
)


def policies() -> Policies:
    """The conf that is shipped for preempting."""
    return build(parse_scheduler_conf(PREEMPTING.read_text()))


def snapshot_of(full: Full, waiting: Gang, queues: Sequence[str]) -> Snapshot:
    """The gangs of ``full`` run in these ``queues``, in turn; one waits.

    Its queue asks for more than the cluster has, so it deserves as much as any.
    """
    gangs = [_gang(f"g{at}", each, queues[at % len(queues)]) for at, each in enumerate(full.groups)]
    running = running_of(full.groups, gangs)
    used = np.zeros((len(full.sizes), len(AXIS)), dtype=np.int64)
    np.add.at(used, running.nodes, running.requests)
    more = make_gang("more", axis=AXIS, queue=waiting.queue, request=np.full(len(AXIS), 1 << 40))
    return make_snapshot(
        nodes=tuple(
            make_node(f"n{at:04}", cpu=cpu, memory=memory, pods=pods, extra={GPU: gpu})
            for at, (cpu, memory, pods, gpu) in enumerate(full.sizes)
        ),
        gangs=(*gangs, waiting, more),
        queues=tuple(make_queue(name) for name in dict.fromkeys((*queues, "own"))),
        axis=AXIS,
        used=used,
        running=running,
        pending=(waiting,),
    )


def _gang(name: str, group: Group, queue: str) -> Gang:
    count = len(group.nodes)
    held = np.array(group.request, dtype=np.int64) * count
    return make_gang(
        name,
        axis=AXIS,
        queue=QueueName(queue),
        priority=group.priority,
        min_member=group.minimum,
        phase=GroupPhase.RUNNING,
        counts=Counts(running=count),
        allocated=held,
        request=held,
        role_ready={"": count},
        role_valid={"": count},
    )


def decided(snapshot: Snapshot, by: Policies, cache: ShapeCache) -> tuple[Plan, float, float]:
    """A cycle: what it decided, and processor seconds of its longest piece and of all of it.

    The first piece opens the ledger and the plugins.
    """
    steps = plan_steps(snapshot, by, now=NOW, shapes=cache)
    next(steps)
    longest, first = 0.0, process_time()
    while True:
        began = process_time()
        try:
            next(steps)
        except StopIteration as done:
            plan: Plan = done.value
            return plan, longest, process_time() - first
        finally:
            longest = max(longest, process_time() - began)


def row(case: Case) -> Sequence[str]:
    """One row of the table; raises where the answer is wrong."""
    by, cache = policies(), ShapeCache()
    snapshots = [
        snapshot_of(case.make(random.Random(seed)), case.waiting, case.queues)
        for seed in range(SEEDS)
    ]
    settle()
    longest: list[float] = []
    cycles: list[float] = []
    plans: list[Plan] = []
    for snapshot in snapshots * (ROUNDS + 1):
        plan, piece, all_of_it = decided(snapshot, by, cache)
        if bool(plan.evictions) is not case.fits:
            raise RuntimeError(f"{case.name}: {plan.evictions} {plan.refused}")
        longest.append(piece * 1e3)
        cycles.append(all_of_it * 1e3)
        plans.append(plan)
    victims = [victim for plan in plans for each in plan.evictions for victim in each.victims]
    gangs = {
        (at, v.gang) for at, plan in enumerate(plans) for e in plan.evictions for v in e.victims
    }
    return (
        case.name,
        f"{len(victims) / len(plans):.0f}" if victims else "",
        f"{len(gangs) / len(plans):.0f}" if victims else "",
        f"{median(longest[SEEDS:]):.1f}",
        f"{np.percentile(longest[SEEDS:], 99):.1f}",
        f"{median(cycles[SEEDS:]):.1f}",
    )


def table() -> Table:
    """Whole decisions."""
    found = table_of(f"Whole decisions ({SEEDS} clusters, ms)", *COLUMNS)
    for case in CASES:
        found.add_row(*row(case))
    return found
