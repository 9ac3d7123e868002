"""Pipelined places: room that begun evictions are about to free, and whose it is.

From the moment an eviction plan begins, its places belong to its preemptor. They are no
reservations yet: nothing is charged, and their members wait. What a node has idle beyond what the
victims are still to leave is *kept back*, so that no other pod takes it meanwhile; the planner does
the same on its ledger (:mod:`app.core.actions.begun`).

A place may be a slot, for a member that does not exist yet. When the member comes it takes over the
place of the slot, and when the member of a place goes the place becomes a slot again, for a member
of the same sub-group.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.cache.gangs.missing import missing
from app.cache.gangs.registry import Registry
from app.cache.nodes.usage import NodeUsage
from app.model.amounts import Amounts
from app.model.eviction import EvictionPlan, PipelinedPlace, VictimPod
from app.model.gang import Task
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid
from app.model.parts import NO_SUB_GROUP
from app.model.plan import Placement
from app.model.resources import Vector
from app.model.running import NO_GROUP


@dataclass(slots=True, eq=False)
class _Begun:
    """A plan, and its places as they are by now."""

    plan: EvictionPlan
    places: list[PipelinedPlace] = field(default_factory=list)
    needs: dict[NodeName, Counter[Amounts]] = field(default_factory=dict)
    """What the places take of each node: how many of which request."""


class Pipelined:
    """The plans that have begun, by the name of their intent.

    ``stuck`` are pods that were to be evicted and do not go, ``paused`` groups for which none are
    evicted now, ``shuffled`` is when pods were last shuffled, and ``revoked`` when some had to
    leave nodes of a zone that closed; all are for snapshots.
    """

    def __init__(
        self, node_usage: NodeUsage, *, registry: Registry, members: Mapping[PodUid, Member]
    ) -> None:
        self.stuck: frozenset[PodUid] = frozenset()
        self.paused: frozenset[GroupKey] = frozenset()
        self.shuffled = 0.0
        self.revoked = 0.0
        self._node_usage = node_usage
        self._groups = registry.groups
        self._members = members
        self._begun: dict[str, _Begun] = {}
        self._victims: dict[PodUid, str] = {}
        self._of_node: dict[NodeName, dict[str, None]] = {}
        node_usage.kept_on = self._of_node.keys()
        node_usage.kept_back = self.kept_back

    def __len__(self) -> int:
        return len(self._begun)

    # --- plans begin and end ---------------------------------------------------------------------

    def begin(self, name: str, plan: EvictionPlan) -> None:
        """Keep back the room of its places; its victims are in no other plan."""
        self._begun[name] = _Begun(plan)
        self._victims |= {victim.uid: name for victim in plan.victims}
        self._settle(name, [self._in_its_part(place) for place in plan.places])

    def _in_its_part(self, place: PipelinedPlace) -> PipelinedPlace:
        member = self._members.get(place.task.uid)
        return place if member is None else replace(place, sub_group=member.part.sub_group)

    def end(self, name: str) -> None:
        """End the plan: its places are reserved, or given up."""
        begun = self._begun.pop(name, None)
        if begun is None:
            return
        for victim in begun.plan.victims:
            self._victims.pop(victim.uid, None)
        self._leave_nodes(name, begun)

    def follow(self, name: str) -> bool:
        """Let its places be those of the members that its preemptor has by now.

        False when some of them fit none of the places that are left.
        """
        begun = self._begun[name]
        group = self._groups.get(begun.plan.preemptor)
        if group is None:
            return False
        places = [each for each in begun.places if not self._is_served(each.task)]
        places = [self._of_nobody(each, group) for each in places]
        planned = {each.task.uid for each in places}
        misfits = [
            member
            for member in group.waiting.values()
            if member.pod.uid not in planned and not _takes_slot(member, places)
        ]
        slots = [each for each in places if each.task.is_slot]
        surplus = len(slots) - max(missing(group) - len(group.slots), 0)
        if surplus > 0 and misfits:
            return False
        for each in slots[len(slots) - max(surplus, 0) :]:
            places.remove(each)
        if places != begun.places:
            self._settle(name, places)
        return True

    def _is_served(self, task: Task) -> bool:
        """Whether the task has a place otherwise by now."""
        member = self._members.get(task.uid)
        return member is not None and bool(member.node or member.pod.node)

    def _of_nobody(self, place: PipelinedPlace, group: Group) -> PipelinedPlace:
        """The place for a member to come, if its member is there no more."""
        task = place.task
        if task.is_slot or task.uid in group.waiting:
            return place
        return replace(place, task=replace(task, uid=PodUid("")))

    def _settle(self, name: str, places: list[PipelinedPlace]) -> None:
        begun = self._begun[name]
        self._leave_nodes(name, begun)
        begun.places = places
        for place in places:
            amounts = place.task.shape.requests
            begun.needs.setdefault(place.node, Counter())[amounts] += 1
            self._of_node.setdefault(place.node, {})[name] = None

    def _leave_nodes(self, name: str, begun: _Begun) -> None:
        for node in begun.needs:
            there = self._of_node[node]
            del there[name]
            if not there:
                del self._of_node[node]
        begun.needs.clear()

    # --- how they stand --------------------------------------------------------------------------

    def plans(self) -> tuple[EvictionPlan, ...]:
        """The plans as they are by now, with the victims that still have room."""
        return tuple(self.plan(name) for name in list(self._begun))

    def plan(self, name: str) -> EvictionPlan:
        """One plan as it is by now, with the victims that still have room."""
        begun = self._begun[name]
        plan = begun.plan
        if plan.preemptor:
            self.follow(name)
        places = tuple(replace(each, task=self._task(each.task)) for each in begun.places)
        return replace(plan, victims=self.going(name), places=places)

    def placements(self, name: str) -> tuple[Placement, ...]:
        """The places as they are reserved once the victims have gone."""
        return tuple(
            Placement(self._task(each.task), each.node, each.exchange, each.sub_group)
            for each in self._begun[name].places
        )

    def _task(self, task: Task) -> Task:
        member = self._members.get(task.uid)
        if member is not None:
            return member.task
        return replace(task, request=self._node_usage.vector(task.shape.requests))

    def going(self, name: str) -> tuple[VictimPod, ...]:
        """The plan's victims that still have room on their nodes."""
        charges = self._node_usage.charges
        return tuple(each for each in self._begun[name].plan.victims if each.uid in charges)

    def is_victim(self, uid: PodUid) -> bool:
        """Whether a plan that has begun counts on it that the pod goes."""
        return uid in self._victims

    def preemptors(self) -> dict[GroupKey, str]:
        """The groups that wait for victims, and the names of their plans."""
        return {b.plan.preemptor: name for name, b in self._begun.items() if b.plan.preemptor}

    # --- room ------------------------------------------------------------------------------------

    def kept_back(self, node: NodeName, owner: GroupKey) -> Vector:
        """How much of what is idle there is for others than ``owner``, shape ``(R,)``."""
        kept: Vector = np.maximum(self._awaited(node, owner) - self._coming(node), 0)
        return kept

    def bears(self, plan: EvictionPlan) -> bool:
        """Whether the nodes have room for the plan's places once all that go have gone."""
        usage = self._node_usage
        needs: dict[NodeName, Vector] = {}
        for place in plan.places:
            if not usage.takes(place.node, place.task.shape):
                return False
            request = usage.vector(place.task.shape.requests)
            needs[place.node] = needs[place.node] + request if place.node in needs else request
        for node, need in needs.items():
            leaving = frozenset(v.uid for v in plan.victims if v.node == node)
            free = usage.idle(node) + self._coming(node, leaving)
            free -= self._awaited(node, besides=plan.preemptor)
            if not (free >= need)[need > 0].all():
                return False
        return True

    def _awaited(self, node: NodeName, besides: GroupKey = NO_GROUP) -> Vector:
        """What places there take, but those of one group."""
        vector = self._node_usage.vector
        total = vector(())
        for name in self._of_node.get(node, ()):
            begun = self._begun[name]
            if begun.plan.preemptor == besides:
                continue
            for amounts, count in begun.needs[node].items():
                total = total + vector(amounts) * count
        return total

    def _coming(self, node: NodeName, leaving: frozenset[PodUid] = frozenset()) -> Vector:
        """What pods are about to leave there: terminating ones, victims, and these."""
        usage = self._node_usage
        total = usage.vector(())
        for holder in usage.holders(node):
            charge, uid = usage.charges[holder], PodUid(holder)
            if charge.releasing or uid in self._victims or uid in leaving:
                total = total + charge.vector
        return total


def _takes_slot(member: Member, places: list[PipelinedPlace]) -> bool:
    """Whether a member that came has the place of a slot from now on."""
    pod = member.pod
    for number, place in enumerate(places):
        task = place.task
        fits = task.is_slot and task.role == pod.role and pod.shape.fits_like(task.shape)
        fits &= place.sub_group in (member.part.sub_group, NO_SUB_GROUP)
        if fits and pod.pinned in (place.node, NO_NODE):
            places[number] = replace(place, task=member.task)
            return True
    return False
