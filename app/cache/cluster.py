"""The live cluster: events in, promises kept, snapshots out.

Every change goes through one of two doors: *events* (``set_*``/``drop_*``: what the API server
says) and *promises* (``promise``, ``assume``, ``binding``, ``withdraw``, ``release``: what we
decided). The invariant after each call: the rooms hold exactly one charge for every member that has
a node (bound or promised) and is not done, one for every slot, and one for every foreign pod on a
node; nothing else.

Promises that became void by an event (node gone, foreign pod took the room, pod deleted) are given
back at once and listed in :attr:`ClusterCache.lost` for whoever holds a Bind call open.
"""

from collections.abc import Collection
from dataclasses import dataclass

from app.cache.groups import Group
from app.cache.members import PLACED_KINDS, Kind, Member, Slot, Stage, are_equal, decides_like
from app.cache.registry import Registry
from app.cache.rooms import Rooms
from app.cache.views import task_of
from app.model.disruption import DisruptionBudget
from app.model.gang import Task
from app.model.ids import NO_NODE, ROOT_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.node import Node
from app.model.plan import GangPlacement
from app.model.pod import TERMINAL, Pod, TaskStatus
from app.model.resources import Vector
from app.model.shape import HostPort
from app.model.workload import GroupPhase, Namespace, PodGroup, Queue, Quota

_TAKEN = "another pod took the room"


@dataclass(frozen=True, slots=True)
class Lost:
    """A promise that an event made void, and why."""

    uid: PodUid
    group: GroupKey
    why: str


class ClusterCache:
    """Nodes, pods, groups, queues and every promise. ``schedulers`` are the names that are ours."""

    def __init__(self, *, schedulers: frozenset[str]) -> None:
        self.schedulers = schedulers
        self.rooms = Rooms()
        self.registry = Registry(self.rooms)
        self.groups = self.registry.groups
        self.signals = self.registry.signals
        self.members: dict[PodUid, Member] = {}
        self.foreign: dict[PodUid, Pod] = {}
        self.queues: dict[QueueName, Queue] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.quotas: dict[str, Quota] = {}
        self.budgets: dict[str, DisruptionBudget] = {}
        self.choosy: set[PodUid] = set()
        """Pods with a rule about other pods: while there are any, snapshots list the residents."""
        self.with_ports: dict[str, frozenset[HostPort]] = {}
        """Host ports of pods and slots that ask for some, by holder."""
        self.lost: list[Lost] = []
        self._observed: dict[PodUid, float] = {}
        self._listed = False

    # --- events: nodes ---------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """Add or replace a node; promises on a node that no longer takes pods are given back."""
        if not self.rooms.set_node(node):
            return
        self.signals.dirty = True
        if self.rooms.takes(node.name):
            self._relieve(node.name, "node became smaller")
        else:
            self._lose_promises(node.name, "node does not take pods any more")

    def drop_node(self, name: NodeName) -> None:
        """Forget a node; promises on it are given back."""
        if self.rooms.drop_node(name):
            self.signals.dirty = True
            self._lose_promises(name, "node is gone")

    # --- events: pods ----------------------------------------------------------------------------

    def ours(self, pod: Pod) -> bool:
        """Whether its ``schedulerName`` is one of ours."""
        return pod.scheduler in self.schedulers

    def set_pod(self, pod: Pod, *, now: float, observed: bool = False) -> None:
        """Add or replace a pod. ``observed``: seen in a Filter call, the watch is still behind."""
        self._note_rules(pod)
        if not self.ours(pod):
            self._set_foreign(pod)
            return
        old = self.members.get(pod.uid)
        if old is None:
            if self._is_history(pod):
                return
            if observed:
                self._observed[pod.uid] = now
            task = task_of(pod, self.rooms.vector)
            self._join(Member(pod, pod.group, task, since=now, observed=observed), now=now)
        elif observed:
            return
        elif pod.group != old.group:
            self._regroup(old, pod, now=now)
        elif decides_like(old.pod, pod):
            old.pod, old.observed = pod, False
        else:
            self._replace(old, pod, now=now)

    def drop_pod(self, uid: PodUid) -> None:
        """Forget a pod; what it held is free at once."""
        self._forget_rules(uid)
        if self.foreign.pop(uid, None) is not None:
            self.signals.dirty |= self.rooms.discharge(uid)
            return
        member = self.members.get(uid)
        if member is None:
            return
        if member.stage is not Stage.WAITING and not member.pod.node:
            self.lost.append(Lost(uid, member.group, "pod was deleted"))
        self._leave(member)

    def _is_history(self, pod: Pod) -> bool:
        """Whether it is over, and its PodGroup too: nobody counts it."""
        if pod.status not in TERMINAL or not self._listed:
            return False
        group = self.groups.get(pod.group)
        return pod.grouped and (group is None or not group.known)

    def _note_rules(self, pod: Pod) -> None:
        shape = pod.shape
        self._forget_rules(pod.uid)
        if pod.status in TERMINAL:
            return
        if shape.pod_anti_affinity or (shape.looks_at_pods and self.ours(pod)):
            self.choosy.add(pod.uid)
        if shape.host_ports:
            self.with_ports[pod.uid] = frozenset(shape.host_ports)

    def _forget_rules(self, uid: PodUid) -> None:
        self.choosy.discard(uid)
        self.with_ports.pop(uid, None)

    def _set_foreign(self, pod: Pod) -> None:
        if not pod.node or pod.status in TERMINAL:
            self.drop_pod(pod.uid)
            return
        self.foreign[pod.uid] = pod
        changed = self.rooms.charge(
            pod.uid,
            pod.node,
            pod.shape.requests,
            promised=False,
            releasing=pod.status is TaskStatus.RELEASING,
        )
        if changed:
            self.signals.dirty = True
            self._relieve(pod.node, _TAKEN)

    def _join(self, member: Member, *, now: float) -> None:
        group = self.registry.open(member.group, solo=not member.pod.grouped)
        self.members[member.pod.uid] = member
        group.add(member)
        self._charge(member)
        self.registry.changed(group)
        if group.slots and member.kind is Kind.WAITING:
            self._adopt_slot(group, member, now=now)

    def _leave(self, member: Member) -> None:
        group = self.groups[member.group]
        group.remove(member)
        del self.members[member.pod.uid]
        self.rooms.discharge(member.pod.uid)
        self.registry.changed(group)

    def _regroup(self, member: Member, pod: Pod, *, now: float) -> None:
        """It moved to another group; a promise was made to the old one and stays there.

        Not when its Binding is under way: that cannot be taken back.
        """
        fresh = Member(
            pod, pod.group, task_of(pod, self.rooms.vector), since=now, refused=member.refused
        )
        if member.stage is Stage.BINDING or pod.node:
            fresh.stage, fresh.node, fresh.since = member.stage, member.node, member.since
        elif member.stage is not Stage.WAITING:
            self.lost.append(Lost(pod.uid, member.group, "pod moved to another group"))
        self._leave(member)
        self._join(fresh, now=now)

    def _replace(self, member: Member, pod: Pod, *, now: float) -> None:
        group = self.groups[member.group]
        before = member.kind
        group.remove(member)
        member.pod, member.observed = pod, False
        if member.promised and pod.status is not TaskStatus.PENDING:
            why = "pod is being deleted" if pod.deleting else "pod is over"
            self.lost.append(Lost(pod.uid, member.group, why))
            member.stage, member.node = Stage.WAITING, NO_NODE
        member.task = task_of(pod, self.rooms.vector)
        group.add(member)
        moved = self._charge(member)
        stays = before in PLACED_KINDS and member.kind in PLACED_KINDS and not moved
        self.registry.changed(group, replan=not stays)
        if self._is_history(pod):
            self._leave(member)
        elif group.slots and before is Kind.GATED and member.kind is Kind.WAITING:
            self._adopt_slot(group, member, now=now)

    def _charge(self, member: Member) -> bool:
        """Let it take room where it is; returns whether any sum changed."""
        node, pod = member.charged_node, member.pod
        if not node:
            return self.rooms.discharge(pod.uid)
        changed = self.rooms.charge(
            pod.uid,
            node,
            pod.shape.requests,
            promised=not pod.node,
            releasing=pod.status is TaskStatus.RELEASING,
        )
        if changed:
            self._relieve(node, _TAKEN)
        return changed

    # --- events: groups and the rest -------------------------------------------------------------

    def set_group(self, pod_group: PodGroup) -> None:
        """Add or replace a PodGroup; its phase is taken over only the first time we see it."""
        group = self.registry.open(pod_group.key, solo=False)
        if group.pod_group is None or group.pod_group.uid != pod_group.uid:
            group.phase = pod_group.phase
        group.pod_group = pod_group
        group.template_shapes = self.registry.templates.get(pod_group.owner_uid, {})
        if pod_group.min_resources:
            self.rooms.vector(pod_group.min_resources)
        self.registry.changed(group)

    def drop_group(self, key: GroupKey) -> None:
        """Forget a PodGroup; members that are not on a node yet lose their places.

        Finished members are forgotten with it: nobody counts them any more.
        """
        group = self.groups.get(key)
        if group is None or group.pod_group is None:
            return
        self.release(key, why="PodGroup was deleted")
        group.pod_group = None
        group.phase = GroupPhase.NEW
        self.registry.changed(group)
        self._forget_finished(group)

    def forget_finished(self) -> None:
        """Pods and PodGroups have been listed: finished pods of groups that are not there may go.

        From now on: such pods are not taken up again either.
        """
        self._listed = True
        for group in list(self.groups.values()):
            if not group.known:
                self._forget_finished(group)

    def _forget_finished(self, group: Group) -> None:
        for member in list(group.members.values()):
            if member.pod.status in TERMINAL:
                self._leave(member)

    def set_queue(self, queue: Queue) -> None:
        """Add or replace a queue."""
        for limits in (queue.capability, queue.deserved, queue.guarantee):
            self.rooms.vector(limits)
        self.queues[queue.name] = queue
        self.signals.dirty = True

    def ancestors(self, name: QueueName) -> list[QueueName]:
        """The queues above ``name`` up to the root, nearest first; cut at a cycle or a gap."""
        path = [name]
        while path[-1] != ROOT_QUEUE and path[-1] in self.queues:
            above = self.queues[path[-1]].parent or ROOT_QUEUE
            if above in path or above not in self.queues:
                break
            path.append(above)
        return path[1:]

    def drop_queue(self, name: QueueName) -> None:
        """Forget a queue."""
        if self.queues.pop(name, None) is not None:
            self.signals.dirty = True

    # --- promises --------------------------------------------------------------------------------

    def promise(self, decided: GangPlacement, *, now: float) -> bool:
        """Publish placements, all or none; False when the live cluster has moved on.

        Checked against what is true now: members still wait, nodes still take pods, room is there.
        """
        group = self.groups.get(decided.gang)
        if group is None or not group.known or group.deleting:
            return False
        if not self._still_holds(group, decided):
            return False
        for placement in decided.placements:
            if placement.task.is_slot:
                self._add_slot(group, placement.task, node=placement.node, now=now)
            else:
                self._move(
                    self.members[placement.task.uid], Stage.PLANNED, node=placement.node, now=now
                )
        if any(placement.task.is_slot for placement in decided.placements):
            for late in [m for m in group.waiting.values() if m.since > now]:
                self._adopt_slot(group, late, now=now)
        return True

    def _still_holds(self, group: Group, decided: GangPlacement) -> bool:
        needs: dict[NodeName, Vector] = {}
        for placement in decided.placements:
            task = placement.task
            if not task.is_slot and task.uid not in group.waiting:
                return False
            if not self.rooms.takes(placement.node):
                return False
            request = self.rooms.vector(task.shape.requests)
            at = needs.get(placement.node)
            needs[placement.node] = request if at is None else at + request
        return all((self.rooms.idle(node) >= need).all() for node, need in needs.items())

    def move(self, uid: PodUid, node: NodeName, *, now: float) -> bool:
        """Give a planned member another node instead; False (and no change) if there is no room."""
        member = self.members.get(uid)
        if member is None or member.stage not in (Stage.PLANNED, Stage.WAITING):
            return False
        if member.kind not in (Kind.PLACED, Kind.WAITING) or not self.rooms.takes(node):
            return False
        if not self.groups[member.group].known:
            return False
        if member.node != node and not (self.rooms.idle(node) >= member.task.request).all():
            return False
        self._move(member, Stage.PLANNED, node=node, now=now)
        return True

    def exchange(self, uid: PodUid, offered: Collection[NodeName], *, now: float) -> bool:
        """Let a planned member and an equal one of its gang change nodes.

        So that the first has one that is ``offered``; all room stays as it was planned.
        """
        member = self.members.get(uid)
        if member is None or member.stage is not Stage.PLANNED or member.pod.pinned:
            return False
        for other in self.groups[member.group].members.values():
            if other.node in offered and other.stage is Stage.PLANNED and are_equal(member, other):
                mine, theirs = member.node, other.node
                # Both on one node for a moment would look as if it had no room.
                self.rooms.discharge(other.pod.uid)
                self._move(member, Stage.PLANNED, node=theirs, now=now)
                self._move(other, Stage.PLANNED, node=mine, now=other.since)
                return True
        return False

    def assume(self, uid: PodUid, *, now: float) -> None:
        """Bind was called for a planned member."""
        member = self.members.get(uid)
        if member is not None and member.revocable:
            self._stage(member, Stage.ASSUMED, now=now)

    def binding(self, uid: PodUid, *, now: float) -> bool:
        """Its Binding is about to be sent; False when it has lost its place meanwhile.

        From here on no event takes the place away but the pod's own end.
        """
        member = self.members.get(uid)
        if member is None or member.stage is Stage.WAITING:
            return False
        if not member.pod.node:
            self._stage(member, Stage.BINDING, now=now)
        return True

    def unassume(self, uid: PodUid, *, now: float) -> None:
        """The scheduler gave the Bind call up (or it failed): planned again, the room is kept.

        Unless the place became void while the Binding was under way: then it waits.
        """
        member = self.members.get(uid)
        if member is None or not member.promised:
            return
        node = member.node
        kept = self.rooms.takes(node) and self.groups[member.group].known
        if kept and not self.rooms.is_short(node):
            self._stage(member, Stage.PLANNED, now=now)
        else:
            self._move(member, Stage.WAITING, node=NO_NODE, now=now)

    def _stage(self, member: Member, stage: Stage, *, now: float) -> None:
        group = self.groups[member.group]
        group.remove(member)
        member.stage, member.since = stage, now
        group.add(member)

    def withdraw(self, uid: PodUid, *, now: float) -> None:
        """Take the place of one member back; it waits again. Not while its Binding is under way."""
        member = self.members.get(uid)
        if member is None or not member.revocable:
            return
        if member.stage is Stage.ASSUMED:
            self.lost.append(Lost(uid, member.group, "place was taken back"))
        self._move(member, Stage.WAITING, node=NO_NODE, now=now)

    def release(self, key: GroupKey, *, why: str) -> None:
        """Give back every promise of a group whose Binding is not on its way."""
        group = self.groups.get(key)
        if group is None:
            return
        for holder in list(group.slots):
            self._drop_slot(group, holder)
        for member in list(group.members.values()):
            if member.revocable:
                self.lost.append(Lost(member.pod.uid, key, why))
                self._move(member, Stage.WAITING, node=NO_NODE, now=member.since)

    def overdue(self, *, before: float) -> list[tuple[Group, tuple[PodUid, ...]]]:
        """Members that got their place before that time and that nobody came for, by group."""
        late: list[tuple[Group, tuple[PodUid, ...]]] = []
        for group in self.registry.promised.values():
            uids = tuple(
                m.pod.uid
                for m in group.members.values()
                if m.stage is Stage.PLANNED and not m.pod.node and m.since < before
            )
            if uids:
                late.append((group, uids))
        return late

    def stale_slots(self, *, before: float) -> list[Group]:
        """Groups with slots that nobody has filled since before that time."""
        return [
            group
            for group in self.registry.promised.values()
            if any(slot.since < before for slot in group.slots.values())
        ]

    def observed(self) -> frozenset[PodUid]:
        """Pods that only a Filter call has shown so far."""
        return frozenset(
            u for u in self._observed if u in self.members and self.members[u].observed
        )

    def forget_observed(self, *, before: float) -> None:
        """Drop pods that only a Filter call showed and the watch never did.

        Not those whose Binding was sent: the API server knows them, so the watch is late.
        """
        for uid, seen in list(self._observed.items()):
            member = self.members.get(uid)
            if member is None or not member.observed:
                del self._observed[uid]
            elif seen < before and member.stage is not Stage.BINDING:
                del self._observed[uid]
                self.drop_pod(uid)

    def admit(self, key: GroupKey) -> None:
        """The enqueue action let the group in."""
        self.set_phase(key, GroupPhase.INQUEUE)

    def set_phase(self, key: GroupKey, phase: GroupPhase) -> None:
        """Set the phase we decided."""
        group = self.groups.get(key)
        if group is not None and group.phase is not phase:
            group.phase = phase
            self.registry.changed(group)

    def hold(self, key: GroupKey, *, until: float) -> None:
        """Keep the group from being planned before ``until``."""
        group = self.groups.get(key)
        if group is not None:
            group.hold_until = until
            self.registry.changed(group)

    def _move(self, member: Member, stage: Stage, *, node: NodeName, now: float) -> None:
        group = self.groups[member.group]
        group.remove(member)
        had_node = bool(member.node)
        member.stage, member.node, member.since = stage, node, now
        group.add(member)
        self._charge(member)
        self.registry.changed(group, replan=had_node)

    def _add_slot(self, group: Group, task: Task, *, node: NodeName, now: float) -> None:
        group.serial += 1
        holder = f"{group.key}#{group.serial}"
        self.rooms.charge(holder, node, task.shape.requests, promised=True, releasing=False)
        if task.shape.host_ports:
            self.with_ports[holder] = frozenset(task.shape.host_ports)
        group.add_slot(Slot(holder, task.role, node, task.shape, now))
        self.registry.changed(group, replan=False)

    def _drop_slot(self, group: Group, holder: str) -> None:
        group.remove_slot(holder)
        self.rooms.discharge(holder)
        self.with_ports.pop(holder, None)
        self.registry.changed(group)

    def _adopt_slot(self, group: Group, member: Member, *, now: float) -> None:
        """Give a new member the room kept for it.

        When no slot is like it, one is given back all the same, so that what is kept never exceeds
        what the group needs: the member is planned like any other.
        """
        pod = member.pod
        hint = pod.pinned or pod.nominated
        mine = sorted(
            (slot for slot in group.slots.values() if slot.role in (pod.role, "")),
            key=lambda slot: (slot.node != hint, slot.role != pod.role),
        )
        if not mine:
            return
        chosen = next(
            (
                slot
                for slot in mine
                if slot.shape.fits_like(pod.shape) and pod.pinned in (slot.node, NO_NODE)
            ),
            None,
        )
        self._drop_slot(group, (chosen or mine[0]).holder)
        if chosen is not None:
            self._move(member, Stage.PLANNED, node=chosen.node, now=now)

    # --- promises made void by events ------------------------------------------------------------

    def _lose_promises(self, node: NodeName, why: str) -> None:
        for holder in sorted(self.rooms.holders(node)):
            self._lose(holder, why)

    def _lose(self, holder: str, why: str) -> bool:
        member = self.members.get(PodUid(holder))
        if member is None:
            group = self.groups.get(_group_of_slot(holder))
            if group is None or holder not in group.slots:
                return False
            self._drop_slot(group, holder)
            return True
        if not member.revocable:
            return False
        self.lost.append(Lost(member.pod.uid, member.group, why))
        self._move(member, Stage.WAITING, node=NO_NODE, now=member.since)
        return True

    def _relieve(self, node: NodeName, why: str) -> None:
        """Give promises back, latest first, while the node has less room than it promised."""
        if not self.rooms.is_short(node):
            return
        for holder in sorted(self.rooms.holders(node), key=self._age, reverse=True):
            if self._lose(holder, why) and not self.rooms.is_short(node):
                return

    def _age(self, holder: str) -> tuple[float, str]:
        """When the promise was made; holders without one do not matter."""
        member = self.members.get(PodUid(holder))
        if member is not None:
            return (member.since, holder)
        group = self.groups.get(_group_of_slot(holder))
        slot = group.slots.get(holder) if group else None
        return (slot.since if slot else 0.0, holder)


def _group_of_slot(holder: str) -> GroupKey:
    return GroupKey(holder.rpartition("#")[0])
