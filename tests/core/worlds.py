"""Hypothesis strategies: small clusters with queues and gangs that fight for them.

Nodes, shapes and placed pods are those of the placement tests; here come queues with limits, gangs
in every state, and the configurations that a cycle is run with.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from app.cache.gangs.sums import QueueSums
from app.core.policy import Policies
from app.core.sums import part_of
from app.model.conf import PluginConf
from app.model.gang import Counts, Gang, Task
from app.model.ids import NO_NODE, NodeName, PodUid, QueueName
from app.model.parts import Policies as SubGroupPolicies
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.resources import Vector
from app.model.shape import PodShape
from app.model.snapshot import Claim, NominatedRoom, Snapshot
from app.model.workload import GroupPhase, Queue, QueueState
from tests.builders import make_gang, make_pod, make_queue, make_task
from tests.core.actions.rigs import BARE, HELM, policies
from tests.core.placement.strategies import Theme, shapes, snapshots
from tests.core.plugins.sessions import amounts_of
from tests.placed_pods import PlacedPod, make_placed_pods, read_placed_pods

NOW = 1.0
PARENTS = {"top": "", "left": "top", "right": "top", "alone": ""}
LEAVES = ("left", "right", "alone", "default")
TREE = PluginConf("capacity", switches={"enableHierarchy": True})
CONFIGURED: dict[str, Policies] = {
    "bare": policies(BARE),
    "helm": policies(HELM),
    "capacity": policies((("priority", "gang"), ("drf", "predicates", "capacity", "nodeorder"))),
    "tree": policies((("priority", "gang"), ("overcommit", "predicates", TREE, "binpack"))),
    "hdrf": policies(
        (
            ("gang",),
            (PluginConf("drf", switches={"enableHierarchy": True}), "predicates", "capacity"),
        )
    ),
}
SUB_GROUPS = (SubGroup("s", "0"), SubGroup("s", "1"))
PARTED: tuple[SubGroupPolicies, ...] = (
    *[()] * 3,
    *(
        (SubGroupPolicy("s", keys=("k",), size=size, least=least),)
        for size, least in ((2, 0), (2, 1), (2, 2), (1, 2), (3, 1))
    ),
)


@dataclass(frozen=True, slots=True)
class World:
    """A cluster, and the configuration it is planned with."""

    name: str
    snapshot: Snapshot

    @property
    def by(self) -> Policies:
        """The policies of that configuration."""
        return CONFIGURED[self.name]


def cores_or_none(most: int) -> st.SearchStrategy[Any]:
    """Amounts of some cores, or none."""
    return st.one_of(st.just(()), st.integers(0, most).map(lambda cpu: (("cpu", cpu * 1000),)))


@st.composite
def queues(draw: st.DrawFn) -> tuple[Queue, ...]:
    """The queues of :data:`PARENTS`, each with some limits."""
    return tuple(
        make_queue(
            name,
            parent=QueueName(parent),
            weight=draw(st.integers(1, 3)),
            priority=draw(st.sampled_from((0, 0, 1))),
            capability=draw(cores_or_none(6)),
            deserved=draw(cores_or_none(4)),
            guarantee=amounts_of(cpu=draw(st.sampled_from((0, 0, 1)))),
            created=float(draw(st.integers(0, 1))),
            state=draw(st.sampled_from((QueueState.OPEN,) * 7 + (QueueState.CLOSED,))),
            annotations={"volcano.sh/hierarchy": f"root/{parent or name}/{name}"},
        )
        for name, parent in PARENTS.items()
    )


@st.composite
def waiting_tasks(
    draw: st.DrawFn, gang: str, known: Sequence[PodShape], snapshot: Snapshot
) -> tuple[Task, ...]:
    """A few members, mostly equal."""
    count = draw(st.integers(0, 4))
    alike = draw(st.sampled_from(known)) if draw(st.booleans()) else None
    names = [NO_NODE] * 8 + [node.name for node in snapshot.table.nodes] + [NodeName("gone")]
    return tuple(
        make_task(
            f"{gang}-{number}",
            shape=alike or draw(st.sampled_from(known)),
            axis=snapshot.axis,
            role=draw(st.sampled_from(("a", "b"))),
            priority=draw(st.sampled_from((1, 1, 2))),
            pinned=draw(st.sampled_from(names)),
            nominated=draw(st.sampled_from(names)),
            queue_first=(asks := draw(st.booleans())),
            shown=asks and draw(st.booleans()),
        )
        for number in range(count)
    )


@dataclass(frozen=True, slots=True)
class Held:
    """Members of a gang that have a place already: their role, shape and row."""

    role: str
    shape: PodShape
    row: int


@st.composite
def sub_groups(draw: st.DrawFn, waiting: Sequence[Task], held: Sequence[Held]) -> dict[str, Any]:
    """How a gang is parted, if it is: most members are in one of two sub-groups."""
    policies = draw(st.sampled_from(PARTED))
    if not policies:
        return {}
    of = st.sampled_from((*SUB_GROUPS * 2, None))
    asked = {task.uid: sub_group for task in waiting if (sub_group := draw(of))}
    placed = Counter(sub_group for _ in held if (sub_group := draw(of)))
    return {
        "sub_groups": policies,
        "sub_group_of": asked,
        "sub_group_ready": placed,
        "sub_group_valid": placed + Counter(asked.values()),
    }


@st.composite
def gangs(draw: st.DrawFn, name: str, known: Sequence[PodShape], at: Snapshot) -> tuple[Gang, Any]:
    """A gang, and what it holds already, room for members that do not exist included."""
    waiting = draw(waiting_tasks(name, known, at))
    rows = st.integers(0, len(at.table.nodes) - 1)
    some_held = st.builds(Held, st.sampled_from(("a", "b")), st.sampled_from(known), rows)
    held = draw(st.lists(some_held, max_size=2))
    asked = sum_of([task.request for task in waiting], at)
    minimum = draw(st.integers(0, len(waiting) + len(held) + 2))
    missing = minimum - len(waiting) - len(held)
    slots = draw(st.lists(some_held, max_size=missing)) if missing > 0 else []
    kept = sum_of([at.axis.vector(s.shape.requests) for s in slots], at)
    allocated = sum_of([at.axis.vector(h.shape.requests) for h in held], at) + kept
    ready = {role: sum(h.role == role for h in (*held, *slots)) for role in "ab"}
    roles = {role: ready[role] + sum(t.role == role for t in waiting) for role in "ab"}
    gated = draw(st.sampled_from((0, 0, 0, 1)))
    if held or slots:
        phases = st.sampled_from((GroupPhase.RUNNING, GroupPhase.INQUEUE, GroupPhase.UNKNOWN))
    else:
        phases = st.sampled_from((GroupPhase.PENDING, GroupPhase.INQUEUE, GroupPhase.NEW))
    gang = make_gang(
        name,
        waiting=waiting,
        queue_first=tuple(task for task in waiting if task.queue_first),
        axis=at.axis,
        queue=QueueName(draw(st.sampled_from((*LEAVES * 3, "missing")))),
        phase=draw(phases),
        priority=draw(st.integers(0, 1)),
        created=float(draw(st.integers(0, 1))),
        min_member=minimum,
        role_minimum=draw(st.dictionaries(st.sampled_from("ab"), st.integers(0, 2))),
        role_ready=ready,
        role_valid=roles,
        role_slots={role: sum(slot.role == role for slot in slots) for role in "ab"},
        **draw(sub_groups(waiting, held)),
        allocated=allocated,
        kept=kept,
        request=allocated + asked,
        min_request=draw(st.sampled_from((None, allocated + asked, allocated + 2 * asked))),
        cool_down_until=draw(st.sampled_from((0.0,) * 9 + (NOW + 1,))),
        partial=0 < len(held) < minimum,
        given_up=draw(st.sampled_from((False, False, True))),
        unused=frozenset(
            task.uid for task in waiting if draw(st.sampled_from((False, False, True)))
        ),
        yields_until=draw(st.sampled_from((0.0, 0.0, NOW + 1))),
        counts=Counts(
            pending=len(waiting) + gated,
            pending_best_effort=sum(t.best_effort for t in waiting),
            running=len(held),
            gated=gated,
            slots=len(slots),
        ),
    )
    return gang, [*held, *slots]


@st.composite
def nominated_room(draw: st.DrawFn, found: Sequence[Gang], at: Snapshot) -> dict[Any, Any]:
    """Members of gangs of no more than one that others were evicted for."""
    names = st.sampled_from([*(node.name for node in at.table.nodes), NodeName("gone")])
    places = st.builds(NominatedRoom, names, st.booleans())
    made = {
        gang.key: {task.uid: draw(places) for task in gang.waiting if draw(st.booleans())}
        for gang in found
        if gang.is_of_one
    }
    return {key: node_usage for key, node_usage in made.items() if node_usage}


@st.composite
def claims(draw: st.DrawFn, known: Sequence[PodShape], at: Snapshot) -> tuple[Claim, ...]:
    """Pods of others that pods were evicted for."""
    names = st.sampled_from([*(node.name for node in at.table.nodes), NodeName("gone")])
    requests = st.sampled_from(known).map(lambda shape: at.axis.vector(shape.requests))
    one = st.builds(Claim, names, requests, st.integers(0, 1))
    found = draw(st.lists(one, max_size=2))
    return tuple(sorted(found, key=lambda claim: -claim.priority))


@st.composite
def worlds(draw: st.DrawFn, theme: Theme) -> World:
    """A cluster with gangs and queues, and a configuration."""
    known = draw(st.lists(shapes(theme), min_size=1, max_size=3))
    snapshot = draw(snapshots(theme, known))
    used, placed_pods = snapshot.used.copy(), placed_pods_of(snapshot)
    ports = {row: set(taken) for row, taken in snapshot.ports.items()}
    found: list[Gang] = []
    for number in range(draw(st.integers(1, 5))):
        gang, held = draw(gangs(f"g{number}", known, snapshot))
        found.append(gang)
        for count, each in enumerate(held):
            used[each.row] += snapshot.axis.vector(each.shape.requests)
            placed_pods.append(
                PlacedPod.of(pod_of(f"{gang.name}-old{count}", each.shape), each.row)
            )
            ports.setdefault(each.row, set()).update(each.shape.host_ports)
    base = replace(
        snapshot,
        used=used,
        placed_pods=make_placed_pods(placed_pods),
        ports={row: frozenset(taken) for row, taken in ports.items()},
        queues=dict(snapshot.queues) | {queue.name: queue for queue in draw(queues())},
        nominated_room=draw(nominated_room(found, snapshot)),
        claims=draw(claims(known, snapshot)),
    )
    return World(draw(st.sampled_from(tuple(CONFIGURED))), with_gangs(base, found))


def placed_pods_of(snapshot: Snapshot) -> list[PlacedPod]:
    """The pods that are there, as inter-pod rules see them."""
    return read_placed_pods(snapshot.placed_pods, nodes=len(snapshot.table.nodes))


def pod_of(name: str, shape: PodShape) -> Any:
    """A pod of ``shape`` as inter-pod rules see it."""
    namespace, labels = shape.spread_identity or ("default", ())
    return make_pod(name, uid=PodUid(name), namespace=namespace, labels=dict(labels), shape=shape)


def sum_of(vectors: Sequence[Vector], at: Snapshot) -> Vector:
    """The sum of ``vectors``."""
    total: Vector = sum(vectors, np.zeros(len(at.axis), dtype=np.int64))
    return total


def with_gangs(snapshot: Snapshot, found: Sequence[Gang]) -> Snapshot:
    """``snapshot`` with these gangs: what is pending and the queues' sums, as the cache has it."""
    sums = QueueSums()
    for gang in found:
        sums.put(part_of(gang))
    pending = tuple(gang for gang in found if wants_planning(gang))
    return replace(
        snapshot,
        gangs={gang.key: gang for gang in found},
        pending=pending,
        awaited=tuple(gang for gang in pending if gang.is_awaited),
        torn=tuple(gang for gang in pending if gang.partial),
        shown=tuple(gang for gang in found if any(task.shown for task in gang.queue_first)),
        usage=sums.usage(),
    )


def wants_planning(gang: Gang) -> bool:
    """Whether the planner has something to decide about ``gang``."""
    return bool(gang.waiting) or not gang.inqueue or gang.counts.ready < gang.min_member


def shuffled(snapshot: Snapshot, order: Any) -> Snapshot:
    """The same cluster with everything that has no order of its own in another one."""

    def mixed(items: Any) -> list[Any]:
        found = list(items)
        order.shuffle(found)
        return found

    regrouped = [
        replace(
            gang,
            waiting=tuple(mixed(gang.waiting)),
            role_shapes=dict(mixed(gang.role_shapes.items())),
        )
        for gang in mixed(snapshot.gangs.values())
    ]
    again = with_gangs(snapshot, regrouped)
    return replace(
        again,
        pending=tuple(mixed(again.pending)),
        queues=dict(mixed(snapshot.queues.items())),
        usage=dict(mixed(again.usage.items())),
        placed_pods=make_placed_pods(mixed(placed_pods_of(snapshot))),
        ports=dict(mixed(snapshot.ports.items())),
        nominated_room=dict(mixed(snapshot.nominated_room.items())),
    )
