"""A cluster as it will be: what a snapshot looks like once gangs have ended and plans came true.

Counted are the room of nodes and what queues and groups hold, host ports, where members of groups
are, and what rules about other pods see. Not counted, and so as they are in the first snapshot, are
volumes, NUMA nodes, single devices, and devices of claims: their sums are resources of nodes and
are counted as such. Pods of other schedulers stay. A pod that is evicted waits anew, as its owner
makes it again. A gang that has started meanwhile is not evicted.
"""

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from app.core.eta.changes import Held, only, with_places, with_pod, without_places, without_pod
from app.core.planner import EVICTING
from app.core.policy import Policies
from app.core.sums import part_of, with_part, without_part
from app.model.amounts import is_best_effort
from app.model.eviction import EvictionPlan, PipelinedPlace
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, NodeName, QueueName
from app.model.plan import Placement, Plan
from app.model.running import NOT_ASKED
from app.model.snapshot import MemberPlace, QueueUsage, Snapshot
from app.model.workload import GroupPhase

Places = Iterable[Placement | PipelinedPlace]


Holdings = Mapping[GroupKey, tuple[Held, ...]]
"""What members and slots of each gang hold."""

_AT_ONCE: Final = 1_000
"""Pods looked at between two yields."""


def holdings_steps(
    snapshot: Snapshot, slots: Mapping[GroupKey, Collection[MemberPlace]]
) -> Generator[None, None, Holdings]:
    """What the gangs of ``snapshot`` hold, in pieces; it tells what runs.

    ``slots`` are places that gangs keep for members that do not exist yet.
    """
    found: defaultdict[GroupKey, list[Held]] = defaultdict(list)
    running, index = snapshot.running, snapshot.table.index
    for at, (pod, gang) in enumerate(zip(running.pods, running.gangs, strict=True)):
        found[gang].append(
            Held(
                int(running.nodes[at]),
                running.requests[at],
                pod.shape,
                pod.namespace,
                pod.labels,
                bool(running.releasing[at]),
                at,
            )
        )
        if at % _AT_ONCE == 0:
            yield
    for key, kept in slots.items():
        namespace = key.partition("/")[0]
        found[key] += (
            Held(index[each.node], each.request, None, namespace, {})
            for each in kept
            if each.node in index
        )
    return {key: tuple(held) for key, held in found.items()}


def without_pods_of_nodes(snapshot: Snapshot, gone: Collection[NodeName]) -> Snapshot:
    """``snapshot``, in which these nodes are gone, without the pods that ran there."""
    if not gone:
        return snapshot
    rows = [snapshot.table.index[name] for name in sorted(gone)]
    running = snapshot.running
    return replace(snapshot, running=only(running, ~np.isin(running.nodes, rows)))


class Afterwards:
    """The cluster of ``snapshot`` as it changes; ``holdings`` are those of its gangs."""

    def __init__(self, snapshot: Snapshot, policies: Policies, holdings: Holdings) -> None:
        self._base = snapshot
        self._evicts = any(name in EVICTING for name in policies.conf.actions)
        self._used, self._releasing = snapshot.used.copy(), snapshot.releasing.copy()
        self._gangs: dict[GroupKey, Gang] = dict(snapshot.gangs)
        self._pending = {gang.key: gang for gang in snapshot.pending}
        self._usage: dict[QueueName, QueueUsage] = dict(snapshot.usage)
        self._places = dict(snapshot.places)
        self._ports = dict(snapshot.ports)
        self._placed_pods = snapshot.placed_pods
        self._collected = snapshot.collected
        self._held = dict(holdings)
        self._stays = np.ones(len(snapshot.running), dtype=np.bool_)
        self._generation = snapshot.generation

    def snapshot(self) -> Snapshot:
        """The cluster as it is by now."""
        self._generation += 1
        pending = tuple(self._pending.values())
        base = self._base
        used, releasing = self._used.copy(), self._releasing.copy()
        used.flags.writeable = releasing.flags.writeable = False
        return replace(
            base,
            generation=self._generation,
            used=used,
            releasing=releasing,
            gangs=dict(self._gangs),
            pending=pending,
            awaited=tuple(gang for gang in pending if gang.is_awaited),
            torn=tuple(gang for gang in pending if gang.partial),
            shown=tuple(gang for gang in base.shown if gang.key in self._pending),
            nominated_room={k: v for k, v in base.nominated_room.items() if k in self._pending},
            affine=tuple(each for each in self._gangs.values() if each.affinity is not None),
            usage=dict(self._usage),
            places=dict(self._places),
            ports=dict(self._ports),
            placed_pods=self._placed_pods,
            collected=tuple(each for each in self._collected if each.gang in self._pending),
            running=only(base.running, self._stays) if self._evicts else NOT_ASKED,
            begun=(),
        )

    def gang(self, key: GroupKey) -> Gang | None:
        """The gang as it is by now; None: it has ended."""
        return self._gangs.get(key)

    def nodes_of(self, key: GroupKey) -> frozenset[int]:
        """The rows of the nodes where the gang has room."""
        return frozenset(each.row for each in self._held.get(key, ()))

    # --- what ends -------------------------------------------------------------------------------

    def end(self, key: GroupKey) -> None:
        """The gang ends: all its members go, and none waits any more."""
        for held in self._held.pop(key, ()):
            self._free(held)
        gang = self._gangs.pop(key, None)
        self._pending.pop(key, None)
        self._places.pop(key, None)
        if gang is not None:
            self._uncount(gang)

    def let_go(self) -> None:
        """The pods that terminate are gone."""
        for key, some in list(self._held.items()):
            going = [each for each in some if each.releasing]
            if not going:
                continue
            for held in going:
                self._free(held)
            self._held[key] = tuple(each for each in some if not each.releasing)
            gang = self._gangs.get(key)
            if gang is not None:
                counts = replace(gang.counts, releasing=0, releasing_placed=0)
                nothing = np.zeros_like(gang.releasing)
                self._put(replace(gang, counts=counts, releasing=nothing))

    # --- what a plan brings ----------------------------------------------------------------------

    def take(self, plan: Plan, *, now: float) -> None:
        """``plan``, made of :meth:`snapshot`, comes true at ``now``, with all its evictions."""
        for key in plan.admitted:
            self._put(replace(self._gangs[key], phase=GroupPhase.INQUEUE))
        for evicts in plan.evictions:
            self.evict(evicts, now=now)
        for placed in plan.placed:
            self._start(placed.gang, placed.placements)
        for key in plan.set_aside:
            self._put(replace(self._gangs[key], set_aside=True))
            self._pending.pop(key, None)
        self._collected = plan.collected
        for kept in plan.collected:
            gang = self._pending.get(kept.gang)
            if gang is not None and not gang.collecting_since:
                self._put(replace(gang, collecting_since=now))

    def evict(self, plan: EvictionPlan, *, now: float) -> None:
        """The victims of ``plan`` are gone and wait anew, and the preemptor has its places."""
        index = self._base.running.index
        gone: defaultdict[GroupKey, list[int]] = defaultdict(list)
        for victim in plan.victims:
            at = index.get(victim.uid)
            if at is not None and self._stays[at]:
                gone[self._base.running.gangs[at]].append(at)
        for key, positions in gone.items():
            self._make_anew(key, positions, now=now)
        gang = self._gangs.get(plan.preemptor)
        if gang is None:
            return
        if plan.admits:
            self._put(replace(gang, phase=GroupPhase.INQUEUE))
        waiting = {task.uid for task in gang.waiting}
        places = [each for each in plan.places if each.task.is_slot or each.task.uid in waiting]
        self._start(plan.preemptor, places)

    def _start(self, key: GroupKey, places: Places) -> None:
        gang, table = self._gangs[key], self._base.table
        placed, new = list(places), list[Held]()
        for place in placed:
            task, row = place.task, table.index[place.node]
            held = Held(row, task.request, task.shape, gang.namespace, _labels(task))
            new.append(held)
            self._used[row] += task.request
            if task.shape.host_ports:
                self._ports[row] = self._ports.get(row, frozenset()) | {*task.shape.host_ports}
            if self._base.inter_pod:
                self._placed_pods = with_pod(self._placed_pods, held)
        self._held[key] = (*self._held.get(key, ()), *new)
        self._places[key] = (
            *self._places.get(key, ()),
            *(
                MemberPlace(
                    place.node,
                    place.task.role,
                    place.task.request,
                    gang.sub_group_of.get(place.task.uid, place.sub_group),
                )
                for place in placed
            ),
        )
        self._put(with_places(gang, [place.task for place in placed]))

    def _make_anew(self, key: GroupKey, positions: Collection[int], *, now: float) -> None:
        """These pods go, and others are made in their stead, which wait."""
        running, tasks = self._base.running, []
        there = {each.at: each for each in self._held[key]}
        for at in positions:
            held, pod = there.pop(at), running.pods[at]
            self._free(held)
            tasks.append(
                Task(
                    uid=pod.uid,
                    name=pod.name,
                    role=pod.role,
                    shape=pod.shape,
                    request=running.requests[at],
                    priority=int(running.priorities[at]),
                    created=now,
                    best_effort=is_best_effort(pod.shape.requests),
                )
            )
        going = set(positions)
        self._held[key] = tuple(each for each in self._held[key] if each.at not in going)
        gang = self._gangs.get(key)
        if gang is not None:
            left = [each.row for each in self._held[key]]
            nodes = {self._base.table.nodes[row].name for row in left if row < len(self._used)}
            self._keep_places(key, nodes)
            self._put(without_places(gang, tasks), waits=True)

    def _keep_places(self, key: GroupKey, nodes: Collection[NodeName]) -> None:
        if key in self._places:
            self._places[key] = tuple(each for each in self._places[key] if each.node in nodes)

    # --- sums ------------------------------------------------------------------------------------

    def _put(self, gang: Gang, *, waits: bool = False) -> None:
        """The gang is like that from now on; it stays among those that wait while it lacks any."""
        self._uncount(self._gangs[gang.key])
        queue, amounts = part_of(gang)
        self._usage[queue] = with_part(self._usage.get(queue), amounts)
        self._gangs[gang.key] = gang
        lacks = bool(gang.waiting) or gang.counts.ready < gang.min_member
        if lacks and (waits or gang.key in self._pending):
            self._pending[gang.key] = gang
        else:
            self._pending.pop(gang.key, None)

    def _uncount(self, gang: Gang) -> None:
        queue, amounts = part_of(gang)
        self._usage[queue] = without_part(self._usage[queue], amounts)

    def _free(self, held: Held) -> None:
        if held.at is not None:
            self._stays[held.at] = False
        if held.row >= len(self._used):
            return
        self._used[held.row] -= held.request
        if held.releasing:
            self._releasing[held.row] -= held.request
        if held.shape is not None and held.shape.host_ports:
            taken = self._ports.get(held.row, frozenset())
            self._ports[held.row] = taken - {*held.shape.host_ports}
        if self._base.inter_pod:
            self._placed_pods = without_pod(self._placed_pods, held, nowhere=len(self._used))


def _labels(task: Task) -> Mapping[str, str]:
    identity = task.shape.spread_identity
    return {} if identity is None else dict(identity[1])
