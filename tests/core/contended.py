"""Clusters on which gangs run, for tests of what is evicted for others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.core.policy import Policies
from app.model.eviction import EvictionPlan
from app.model.gang import Counts, Gang
from app.model.ids import NodeName, QueueName, group_key
from app.model.node import Node
from app.model.parts import Part
from app.model.pod import Pod
from app.model.running import Protection
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_pod, make_table
from tests.core.actions.rigs import Outcome, cycle, sized, vector
from tests.evictions import assert_certified
from tests.running import Runs, make_running

DEFAULT = QueueName("default")


@dataclass(frozen=True)
class RunningGang:
    """A gang all of whose members run, and its pods with the rows of their nodes."""

    gang: Gang
    runs: tuple[Runs, ...]


def running_gang(
    name: str,
    rows: Sequence[int],
    *,
    cpu: float = 1,
    minimum: int | None = None,
    queue: str = "default",
    priority: int = 0,
    task_priority: int | None = None,
    pod: dict[str, Any] | None = None,
    protected: Protection = Protection.NONE,
    **fields: Any,
) -> RunningGang:
    """``name-0``, ``name-1``, … of ``cpu`` cores each on the nodes of ``rows``; all are needed."""
    shape = sized(cpu)
    own = {"created": 1.0, "started": 1.0} | (pod or {})
    pods: list[Pod] = [
        make_pod(
            f"{name}-{number}",
            shape=shape,
            node=NodeName(f"n{row}"),
            phase="Running",
            priority=priority if task_priority is None else task_priority,
            **own,
        )
        for number, row in enumerate(rows)
    ]
    held = vector(cpu=cpu, pods=1) * len(rows)
    gang = make_gang(
        name,
        queue=QueueName(queue),
        priority=priority,
        phase=GroupPhase.RUNNING,
        min_member=len(rows) if minimum is None else minimum,
        counts=Counts(running=len(rows)),
        allocated=held,
        request=held,
        role_ready={"": len(rows)},
        role_valid={"": len(rows)},
        **fields,
    )
    queue_name = QueueName(queue)
    return RunningGang(
        gang,
        tuple(
            Runs(pod, row, gang.key, queue_name, Part(""), counted=True, protected=protected)
            for pod, row in zip(pods, rows, strict=True)
        ),
    )


def contended(
    *waiting: Gang,
    running: Sequence[RunningGang] = (),
    foreign: Sequence[Runs] = (),
    kept: Sequence[int] = (),
    nodes: Sequence[Node],
    queues: Sequence[Queue] = (),
    by: Policies,
    now: float = 10.0,
    **snapshot: Any,
) -> Outcome:
    """A cycle for the ``waiting`` gangs on nodes where those ``running`` have their room.

    On the nodes of the rows ``kept`` a core is kept for a slot.
    """
    there = [one for each in running for one in each.runs] + list(foreign)
    table = make_table(tuple(nodes))
    used, releasing = np.zeros_like(table.allocatable), np.zeros_like(table.allocatable)
    for one in there:
        used[one.node] += one.request
        if one.pod.deleting:
            releasing[one.node] += one.request
    for row in kept:
        used[row] += vector(cpu=1, pods=1)
    gangs = (*waiting, *(each.gang for each in running))
    outcome = cycle(
        *gangs,
        nodes=nodes,
        queues=queues,
        by=by,
        now=now,
        used=used,
        releasing=releasing,
        running=make_running(there),
        **({"pending": tuple(waiting)} | snapshot),
    )
    for plan in outcome.plan.evictions:
        assert_certified(plan)
    return outcome


def victims(outcome: Outcome) -> set[str]:
    """The names of all pods that the plan evicts."""
    return {victim.name for plan in outcome.plan.evictions for victim in plan.victims}


def eviction_for(outcome: Outcome, gang: str) -> EvictionPlan:
    """The one decision to evict for ``gang``."""
    key = group_key("default", gang)
    [plan] = [plan for plan in outcome.plan.evictions if plan.preemptor == key]
    return plan


def places(plan: EvictionPlan) -> dict[str, str]:
    """Member -> node that it has once the victims are gone."""
    return {place.task.name: place.node for place in plan.places}


def foreign_pod(name: str, row: int, *, cpu: float = 1) -> Runs:
    """A pod of another scheduler on the node of ``row``."""
    pod = make_pod(name, shape=sized(cpu), node=NodeName(f"n{row}"), phase="Running")
    return Runs(pod, row, protected=Protection.FOREIGN)


def terminating(gang: RunningGang) -> RunningGang:
    """The same, its pods about to go."""
    runs = tuple(
        replace(one, pod=replace(one.pod, deleting=True), protected=Protection.ENDING)
        for one in gang.runs
    )
    return RunningGang(gang.gang, runs)
