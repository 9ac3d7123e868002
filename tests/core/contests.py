"""Gangs that run and a gang that wants their room, in cores and GiB."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.core.ledger import Ledger
from app.core.plugins import catalogue
from app.core.policy import Hooks, Session
from app.core.victim_rules import Candidate, EvictionRule, Preemptor
from app.model.conf import PluginConf, SchedulerConf
from app.model.eviction import EvictionAction
from app.model.gang import Counts, Gang
from app.model.ids import NodeName, QueueName
from app.model.parts import NO_SUB_GROUP, Part
from app.model.pod import Pod
from app.model.resources import Vector
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import AXIS, GIB, make_gang, make_node, make_pod, make_shape, make_snapshot
from tests.core.plugins.sessions import sized_task
from tests.running import Runs, make_running

NODE = make_node("n1", cpu=1_000_000, memory=10_000 * GIB, pods=10_000)
PREEMPT, RECLAIM = EvictionAction.PREEMPT, EvictionAction.RECLAIM
NOTHING = np.zeros(len(AXIS), dtype=np.int64)
NO_ROLE = Part("")


@dataclass(frozen=True, eq=False)
class Runner:
    """A gang that runs, and its pods with what they count for."""

    gang: Gang
    pods: tuple[tuple[Pod, Part], ...]

    @property
    def name(self) -> str:
        return self.gang.name


def runs(
    name: str,
    pods: int = 1,
    *,
    cpu: float = 1,
    gib: float = 0,
    queue: str = "default",
    minimum: int = 1,
    parts: Collection[Part] = (),
    task_priority: int = 1,
    pod: dict[str, Any] | None = None,
    **fields: Any,
) -> Runner:
    """A gang of ``pods`` that run on ``n1``, all alike; ``parts`` tells what each counts for."""
    of = tuple(parts) or (NO_ROLE,) * pods
    shape = make_shape(cpu=int(cpu * 1000), memory=int(gib * GIB))
    members = tuple(
        (
            make_pod(
                f"{name}-{number}",
                shape=shape,
                node=NodeName("n1"),
                phase="Running",
                priority=task_priority,
                **(pod or {}),
            ),
            part,
        )
        for number, part in enumerate(of)
    )
    waiting = fields.get("waiting", ())
    held = sum((AXIS.vector(pod.shape.requests) for pod, _ in members), NOTHING)
    counts = Counts(running=len(members), pending=len(waiting))
    gang = make_gang(
        name,
        queue=QueueName(queue),
        min_member=minimum,
        allocated=held,
        phase=GroupPhase.RUNNING,
        role_ready=dict(Counter(part.role for part in of)),
        sub_group_ready=dict(
            Counter(part.sub_group for part in of if part.sub_group != NO_SUB_GROUP)
        ),
        **({"counts": counts} | fields),
    )
    return Runner(gang, members)


def wants(
    name: str = "new", tasks: int = 1, *, cpu: float = 1, gib: float = 0, **fields: Any
) -> Gang:
    """A gang whose members all wait."""
    priority = fields.pop("task_priority", 1)
    waiting = tuple(
        sized_task(f"{name}-{number}", cpu=cpu, gib=gib, priority=priority)
        for number in range(tasks)
    )
    queue = QueueName(fields.pop("queue", "default"))
    return make_gang(name, waiting=waiting, queue=queue, **fields)


def cluster(
    *runners: Runner, waits: Collection[Gang] = (), queues: Collection[Queue] = (), **fields: Any
) -> Snapshot:
    """One large node with these gangs, and gangs that wait."""
    pods = [
        Runs(pod, 0, gang=each.gang.key, queue=each.gang.queue, part=part, counted=True)
        for each in runners
        for pod, part in each.pods
    ]
    running = make_running(pods)
    gangs = (*(each.gang for each in runners), *waits)
    snapshot = make_snapshot(
        **({"nodes": (NODE,), "gangs": gangs, "queues": tuple(queues)} | fields),
        running=running,
    )
    used = snapshot.used.copy()
    used[0] += running.requests.sum(axis=0)
    return replace(snapshot, used=used)


def preemptor(gang: Gang, action: EvictionAction = PREEMPT) -> Preemptor:
    """All that wait of ``gang``, for which others are to go."""
    asked: Vector = sum((task.request for task in gang.waiting), NOTHING)
    return Preemptor(action, gang, gang.waiting, asked)


@dataclass(frozen=True, eq=False)
class Contest:
    """A plugin opened on a snapshot, asked about pods by their names."""

    hooks: Hooks
    ledger: Ledger

    def asks(self, rule: EvictionRule | None, by: Preemptor, pod: str) -> bool | None:
        """What ``rule`` says of the pod now."""
        assert rule is not None
        return rule.allows(by, Candidate.of(self.ledger.snapshot, self.at(pod)))

    def preempts(self, gang: Gang, pod: str) -> bool | None:
        """Whether the pod may go for ``gang`` of its queue."""
        return self.asks(self.hooks.preemptable, preemptor(gang), pod)

    def reclaims(self, gang: Gang, pod: str) -> bool | None:
        """Whether the pod may go for ``gang`` of another queue."""
        return self.asks(self.hooks.reclaimable, preemptor(gang, RECLAIM), pod)

    def evicts(self, *pods: str) -> None:
        """Count on it that they go."""
        for pod in pods:
            self.ledger.evict(self.at(pod))

    def at(self, pod: str) -> int:
        """Its position."""
        names = [each.name for each in self.ledger.snapshot.running.pods]
        return names.index(pod)


def contest(
    plugin: str,
    snapshot: Snapshot,
    *,
    now: float = 0.0,
    switches: dict[str, bool] | None = None,
    arguments: dict[str, object] | None = None,
) -> Contest:
    """The plugin of that name on ``snapshot``."""
    conf = PluginConf(name=plugin, switches=switches or {}, arguments=arguments or {})
    ledger = Ledger(snapshot)
    session = Session(ledger=ledger, conf=SchedulerConf(actions=(), tiers=((conf,),)), now=now)
    return Contest(catalogue.PLUGINS[plugin](conf)(session), ledger)
