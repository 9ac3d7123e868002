"""Random clusters with running pods, and what a ledger must say after evictions and places.

The naive ledger works everything out from scratch, from the snapshot and from what was done.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from app.core.entries import Entry, Placed
from app.core.ledger import Ledger
from app.core.sums import part_of
from app.model.gang import Counts, Gang
from app.model.ids import GroupKey, NodeName, QueueName
from app.model.parts import NO_SUB_GROUP, Part, SubGroup
from app.model.resources import Vector
from app.model.running import NO_GROUP
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_node, make_pod, make_queue, make_snapshot
from tests.core.actions.rigs import IDLE, members, sized, vector
from tests.running import Runs, make_running

PARENTS = {"top": "", "left": "top", "right": "top"}
QUEUES = tuple(make_queue(name, parent=QueueName(above)) for name, above in PARENTS.items())
NODES = (
    make_node("n0", cpu=8000),
    make_node("n1", cpu=8000),
    make_node("n2", cpu=8000, ready=False),
)
AWAY, UNKNOWN = 2, 3
PARTS = (Part("a"), Part("b"), Part("a", SubGroup("p", "1")))
COUNTED, RELEASING, LOST = "counted", "releasing", "lost"


@dataclass(frozen=True)
class Member:
    """One that has room on a node."""

    node: int
    cpu: int
    part: Part
    state: str

    @property
    def request(self) -> Vector:
        return vector(cpu=self.cpu, pods=1)

    @property
    def lingers(self) -> bool:
        return self.state == RELEASING and self.node not in (AWAY, UNKNOWN)


MEMBERS = st.builds(
    Member,
    node=st.integers(0, UNKNOWN),
    cpu=st.integers(0, 2),
    part=st.sampled_from(PARTS),
    state=st.sampled_from((COUNTED, COUNTED, COUNTED, RELEASING, LOST)),
)
PHASES = st.sampled_from(
    (GroupPhase.RUNNING, GroupPhase.INQUEUE, GroupPhase.PENDING, GroupPhase.COMPLETED)
)


@st.composite
def groups(draw: st.DrawFn) -> tuple[Gang, tuple[Member, ...]]:
    """A gang, and its members that have room."""
    solo, deleted = draw(st.sampled_from(((False, False), (True, False), (False, True))))
    runs = tuple(draw(st.lists(MEMBERS, min_size=1, max_size=1 if solo else 3)))
    name = draw(st.uuids()).hex
    waiting = () if solo else members(name, 2, cpu=1, role="a") + members(name, 1, shape=IDLE)
    claims = None if deleted else draw(st.sampled_from((None, vector(), vector(cpu=3, pods=3))))
    gang = make_gang(
        name,
        uid="" if deleted else f"uid-{name}",
        solo=solo,
        waiting=waiting,
        queue=QueueName(draw(st.sampled_from(("left", "right", "default", "missing")))),
        phase=draw(PHASES),
        min_member=draw(st.integers(1, 2)),
        min_request=claims,
    )
    return seen_with(gang, runs), runs


def seen_with(gang: Gang, runs: Sequence[Member]) -> Gang:
    """``gang`` with these members beside those that wait."""
    ready = [each for each in runs if each.state == COUNTED]
    allocated = sum((each.request for each in ready), vector())
    return replace(
        gang,
        counts=Counts(
            pending=len(gang.waiting),
            running=len(ready),
            releasing=sum(each.state == RELEASING for each in runs),
            unknown=sum(each.state == LOST for each in runs),
        ),
        allocated=allocated,
        request=allocated + sum((task.request for task in gang.waiting), vector()),
        releasing=sum((each.request for each in runs if each.lingers), vector()),
        role_ready=dict(Counter(each.part.role for each in ready)),
        sub_group_ready=dict(
            Counter(e.part.sub_group for e in ready if e.part.sub_group != NO_SUB_GROUP)
        ),
    )


@dataclass(frozen=True)
class Evictable:
    """A snapshot; ``of`` has the members of its gangs, ``foreign`` the other pods."""

    snapshot: Snapshot
    of: tuple[tuple[Gang, tuple[Member, ...]], ...]
    foreign: tuple[Member, ...]


@st.composite
def clusters(draw: st.DrawFn) -> Evictable:
    """A few gangs and pods of others."""
    of = tuple(draw(st.lists(groups(), min_size=1, max_size=4)))
    foreign = tuple(draw(st.lists(MEMBERS, max_size=2)))
    return cluster_of(of, foreign)


def cluster_of(
    of: Sequence[tuple[Gang, tuple[Member, ...]]], foreign: tuple[Member, ...]
) -> Evictable:
    """Of these gangs and other pods."""
    found: list[Runs] = []
    for gang, some in [*of, (None, foreign)]:
        found += runs_of(gang, some, first=len(found))
    running = make_running(found)
    used = np.zeros((len(NODES), 3), dtype=np.int64)
    going = np.zeros_like(used)
    for at, row in enumerate(running.nodes):
        if row != UNKNOWN:
            used[row] += running.requests[at]
            going[row] += running.requests[at] * running.releasing[at]
    parts = {gang.key: part_of(gang) for gang, _ in of}
    snapshot = make_snapshot(
        nodes=NODES,
        queues=QUEUES,
        gangs=tuple(gang for gang, _ in of),
        usage={str(k): v for k, v in usage_of(parts).items()},
        used=used,
        releasing=going,
        running=running,
    )
    return Evictable(snapshot, tuple(of), foreign)


def runs_of(gang: Gang | None, found: Sequence[Member], *, first: int) -> list[Runs]:
    """The same as running pods, named by their positions."""
    return [
        Runs(
            make_pod(
                f"r{first + at}",
                shape=sized(one.cpu),
                node=NodeName(f"n{one.node}"),
                phase="Running",
                deleting=one.state == RELEASING,
            ),
            one.node,
            gang=gang.key if gang else NO_GROUP,
            queue=gang.queue if gang else None,
            part=one.part,
            counted=gang is not None and one.state == COUNTED,
        )
        for at, one in enumerate(found)
    ]


Parts = dict[GroupKey, tuple[QueueName, Any]]


def usage_of(parts: Parts) -> dict[QueueName, QueueUsage]:
    """What queues hold by what their gangs add."""
    sums: dict[QueueName, QueueUsage] = {}
    for queue in {name for name, _ in parts.values()}:
        mine = [part for name, part in parts.values() if name == queue]
        allocated, request, inqueue, elastic, releasing, committed = np.sum(mine, axis=0)
        sums[queue] = QueueUsage(
            allocated,
            request,
            inqueue,
            elastic,
            groups=len(mine),
            releasing=releasing if releasing.any() else None,
            committed=committed if committed.any() else None,
        )
    return sums


def naive(cluster: Evictable, journal: Sequence[Entry]) -> dict[str, Any]:
    """What a ledger on ``cluster`` must say when this was done."""
    evicted = {entry.pod.name for entry in journal if not isinstance(entry, Placed)}
    at = 0
    parts: Parts = {}
    gangs: list[Gang] = []
    for gang, runs in cluster.of:
        there = range(at, at + len(runs))
        left = [run for n, run in zip(there, runs, strict=True) if f"r{n}" not in evicted]
        at += len(runs)
        after = seen_with(gang, left)
        gangs.append(after)
        queue, part = part_of(after)
        for claims in (2, 5):
            part[claims] = np.minimum(part[claims], part_of(gang)[1][claims])
        if left or gang.waiting or (gang.uid and not gang.solo):
            parts[gang.key] = queue, part
    snapshot = replace(
        cluster.snapshot,
        gangs={gang.key: gang for gang in gangs},
        pending=tuple(gangs),
        usage=usage_of(parts),
    )
    ledger = Ledger(snapshot)
    for entry in journal:
        if isinstance(entry, Placed):
            ledger.place(snapshot.gangs[entry.gang.key], entry.task, node=entry.node)
    told = state(ledger, gangs)
    idle, future = nodes_of(cluster, journal)
    return {**told, "idle": idle, "future idle": future}


def nodes_of(cluster: Evictable, journal: Sequence[Entry]) -> tuple[Any, Any]:
    """What is idle, and what will be."""
    idle = cluster.snapshot.table.allocatable - cluster.snapshot.used
    future = idle + cluster.snapshot.releasing
    for entry in journal:
        if isinstance(entry, Placed):
            future[entry.node] -= entry.task.request
            if not entry.pipelined:
                idle[entry.node] -= entry.task.request
        elif entry.node is not None and not entry.releasing:
            future[entry.node] += entry.request
    return idle.tolist(), future.tolist()


def state(ledger: Ledger, gangs: Iterable[Gang]) -> dict[str, Any]:
    """Every number of ``ledger``."""
    return {
        "idle": ledger.idle.tolist(),
        "future idle": ledger.future_idle.tolist(),
        "queues": {name: plain(account) for name, account in ledger.queues().items()},
        "gangs": {
            gang.key: {k: v for k, v in plain(ledger.gang(gang)).items() if k != "losses"}
            for gang in gangs
        },
    }


def plain(account: Any) -> dict[str, Any]:
    """Its numbers; what was looked at and is nothing is as good as absent."""
    found = {name: getattr(account, name) for name in account.__slots__}
    return {
        name: value.tolist()
        if isinstance(value, np.ndarray)
        else {key: n for key, n in value.items() if n}
        if isinstance(value, dict)
        else value
        for name, value in found.items()
    }
