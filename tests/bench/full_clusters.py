"""Full clusters that room is made in: what runs where, in gangs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from app.model.gang import Gang
from app.model.ids import NodeName
from app.model.resources import ResourceAxis
from app.model.running import Running
from app.model.shape import PodShape
from tests.builders import make_pod
from tests.running import Runs, make_running

GPU = "nvidia.com/gpu"
AXIS = ResourceAxis().covering((GPU,))
NOW = 1_000_000.0

Request = tuple[int, int, int, int]
"""Milli-CPU, MiB, pods, GPUs."""


@dataclass(frozen=True)
class Group:
    """Equal pods that run, on these nodes; ``minimum`` must stay."""

    request: Request
    nodes: Sequence[int]
    minimum: int = 1
    priority: int = 0
    since: float = 0.0


@dataclass(frozen=True)
class Full:
    """Nodes of these ``sizes``, and what runs on them."""

    sizes: Sequence[Request]
    groups: Sequence[Group]


def shape_of(request: Request) -> PodShape:
    """What a pod asks for."""
    amounts = zip(("cpu", "memory", "pods", GPU), request, strict=True)
    return PodShape(requests=tuple((name, amount) for name, amount in amounts if amount))


def running_of(groups: Sequence[Group], gangs: Sequence[Gang]) -> Running:
    """The pods of ``groups``, each of which is the gang beside it."""
    shapes = {group.request: shape_of(group.request) for group in groups}
    found: list[Runs] = []
    for gang, group in zip(gangs, groups, strict=True):
        for node in group.nodes:
            pod = make_pod(
                f"{gang.name}-{len(found)}",
                shape=shapes[group.request],
                node=NodeName(f"n{node:04}"),
                phase="Running",
                priority=group.priority,
                created=NOW - group.since,
                started=NOW - group.since,
            )
            found.append(Runs(pod, node, gang.key, gang.queue, counted=True))
    return make_running(found, axis=AXIS)


def uniform(dice: random.Random) -> Full:
    """1,000 nodes, each full with ten pods of one core that have nothing to do with each other."""
    nodes = [(10_000, 40_000, 110, 0)] * 1_000
    since = 3_600.0
    pods = [Group((1_000, 4_000, 1, 0), (at % 1_000,), since=since) for at in range(10_000)]
    return Full(nodes, pods)


def mixed(dice: random.Random) -> Full:
    """1,000 full nodes with about 10,000 pods of different sizes, in jobs of which half may shrink.

    A pod looks for a node among some, so that nodes are left with idle rests of all sizes.
    """
    nodes = [(13_000, 56_000, 110, 0)] * 1_000
    free = [list(node) for node in nodes]
    groups: list[Group] = []
    failed = 0
    while failed < 100:
        cores, memory = dice.choice((500, 1_000, 1_500, 2_000)), dice.choice((2_000, 4_000, 8_000))
        where: list[int] = []
        for _ in range(dice.choice((1, 1, 1, 4, 8, 16))):
            at = next(
                (at for at in dice.sample(range(1_000), 50) if _fits(free[at], cores, memory)), -1
            )
            if at >= 0:
                free[at][0] -= cores
                free[at][1] -= memory
                where.append(at)
        if not where:
            failed += 1
            continue
        size = len(where)
        groups.append(
            Group(
                (cores, memory, 1, 0),
                where,
                minimum=dice.choice((size, (size + 1) // 2)),
                priority=dice.choice((0, 0, 100, 1_000)),
                since=dice.expovariate(1 / 7_200),
            )
        )
    return Full(nodes, groups)


def gpus(dice: random.Random) -> Full:
    """500 nodes of 8 GPUs with 4,000 pods of one, in gangs of 1 to 64 of which few may shrink."""
    nodes = [(96_000, 1_000_000, 110, 8)] * 500
    slots = [at // 8 for at in range(4_000)]
    groups: list[Group] = []
    while slots:
        size = min(dice.choice((1, 1, 2, 4, 8, 8, 16, 64)), len(slots))
        where, slots = slots[:size], slots[size:]
        minimum = dice.choice((size, size, size, max(size // 2, 1)))
        groups.append(
            Group(
                (8_000, 64_000, 1, 1),
                where,
                minimum=minimum,
                priority=dice.choice((0, 0, 100)),
                since=dice.expovariate(1 / 36_000),
            )
        )
    return Full(nodes, groups)


def _fits(free: Sequence[int], cores: int, memory: int) -> bool:
    return free[0] >= cores and free[1] >= memory
