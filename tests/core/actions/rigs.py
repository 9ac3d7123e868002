"""A cycle on a small cluster, and what it decided by names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.core import texts
from app.core.planner import plan, plan_gang
from app.core.policy import Policies
from app.core.tiers import build
from app.model.amounts import Amounts
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName, QueueName, group_key
from app.model.node import Node
from app.model.plan import GangPlacement, Plan
from app.model.reason import Refusal
from app.model.resources import Matrix, Vector
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import (
    AXIS,
    GIB,
    make_amounts,
    make_gang,
    make_node,
    make_shape,
    make_snapshot,
    make_table,
    make_task,
)

Tiers = Sequence[Sequence[str | PluginConf]]

ACTIONS = ("enqueue", "allocate", "backfill")
BARE: Tiers = (("priority", "gang"), ("predicates",))
HELM: Tiers = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)
"""Volcano's Helm defaults."""
STRICT: Tiers = (
    HELM[0],
    tuple(
        PluginConf(name, arguments={"borrowing": False}) if name == "proportion" else name
        for name in HELM[1]
    ),
)
"""The same with Volcano's strict shares."""

IDLE = make_shape(cpu=0, memory=0)
"""Requests nothing."""


def policies(tiers: Tiers = BARE, actions: Sequence[str] = ACTIONS) -> Policies:
    """The policies of ``tiers``, plugins by name or with their configuration."""
    conf = tuple(
        tuple(p if isinstance(p, PluginConf) else PluginConf(p) for p in tier) for tier in tiers
    )
    return build(SchedulerConf(actions=tuple(actions), tiers=conf))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan, asked by the names of gangs in the namespace ``default``."""

    plan: Plan

    @property
    def admitted(self) -> list[str]:
        """Gangs let in, in that order."""
        return [key.partition("/")[2] for key in self.plan.admitted]

    @property
    def order(self) -> list[str]:
        """Gangs in the order of their placements."""
        return [placed.gang.partition("/")[2] for placed in self.plan.placed]

    def decisions(self, gang: str) -> list[GangPlacement]:
        """What was decided for ``gang``."""
        return [placed for placed in self.plan.placed if placed.gang == group_key("default", gang)]

    def nodes(self, gang: str) -> dict[str, str]:
        """Member (or slot) -> node."""
        return {p.task.name: p.node for d in self.decisions(gang) for p in d.placements}

    def members(self, gang: str) -> list[str]:
        """Members with a place, in the order they got them."""
        return [p.task.name for d in self.decisions(gang) for p in d.placements]

    def refusal(self, gang: str) -> Refusal:
        """The reason that was given."""
        return self.plan.refused[group_key("default", gang)]

    def text(self, gang: str) -> str:
        """The reason in words."""
        return texts.describe(self.refusal(gang))

    @property
    def refused(self) -> set[str]:
        """Gangs with a reason."""
        return {key.partition("/")[2] for key in self.plan.refused}


def cycle(
    *gangs: Gang,
    nodes: Sequence[Node] = (),
    queues: Sequence[Queue] = (),
    by: Policies | None = None,
    now: float = 0.0,
    on_demand: str = "",
    **snapshot: Any,
) -> Outcome:
    """Plan on that cluster: a whole cycle, or the gang ``on_demand``."""
    picture: Snapshot = make_snapshot(
        nodes=tuple(nodes), gangs=tuple(gangs), queues=tuple(queues), **snapshot
    )
    by = by or policies()
    if on_demand:
        key = group_key("default", on_demand)
        return Outcome(plan_gang(picture, by, key=key, now=now, shapes=None))
    return Outcome(plan(picture, by, now=now, shapes=None))


def cores(*sizes: int, pods: int = 110) -> tuple[Node, ...]:
    """Nodes ``n0``, ``n1``, … with that many cores and memory enough for all."""
    return tuple(
        make_node(f"n{i}", cpu=size * 1000, memory=1000 * GIB, pods=pods)
        for i, size in enumerate(sizes)
    )


def sized(cpu: float = 1, **fields: Any) -> PodShape:
    """A shape of ``cpu`` cores and nothing else."""
    return make_shape(cpu=int(cpu * 1000), memory=0, **fields)


def members(
    gang: str,
    count: int,
    *,
    cpu: float = 1,
    role: str = "",
    shape: PodShape | None = None,
    **f: Any,
) -> tuple[Task, ...]:
    """``gang-0``, ``gang-1``, …, or ``gang-role-0``, …; equal ones of ``cpu`` cores."""
    shape = shape or sized(cpu)
    stem = f"{gang}-{role}" if role else gang
    return tuple(make_task(f"{stem}-{i}", shape=shape, role=role, **f) for i in range(count))


def gang_of(name: str, count: int, *, cpu: float = 1, **fields: Any) -> Gang:
    """A gang of ``count`` equal members, all needed and waiting."""
    return make_gang(name, waiting=members(name, count, cpu=cpu), **fields)


def newcomer(name: str, *, cpu: float | None, queue: str = "default", **fields: Any) -> Gang:
    """A group that is not in yet and has no pods; its ``minResources`` are ``cpu`` cores."""
    return make_gang(
        name,
        queue=QueueName(queue),
        phase=GroupPhase.PENDING,
        min_request=None if cpu is None else vector(cpu=cpu),
        **({"min_member": 1} | fields),
    )


def counts_of(waiting: Sequence[Task], **others: int) -> Counts:
    """Counts of a gang with these waiting members and ``others``."""
    idle = sum(task.best_effort for task in waiting)
    return Counts(pending=len(waiting), pending_best_effort=idle, **others)


def vector(*, cpu: float = 0, pods: int = 0) -> Vector:
    """A vector of cores."""
    return AXIS.vector(amounts_of(cpu=cpu, pods=pods))


def amounts_of(*, cpu: float = 0, pods: int = 0) -> Amounts:
    """Amounts of cores."""
    return make_amounts(cpu=int(cpu * 1000), pods=pods)


def used(nodes: Sequence[Node], **cpu: float) -> Matrix:
    """The ``used`` matrix with that many cores taken on the named nodes."""
    table = make_table(tuple(nodes))
    matrix = np.zeros_like(table.allocatable)
    for name, taken in cpu.items():
        matrix[table.index[NodeName(name)], 0] = int(taken * 1000)
    return matrix
