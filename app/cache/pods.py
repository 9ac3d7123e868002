"""Pods as the watches and Filter calls show them: which pod joins a group, leaves it, or changes.

Those of others count with the room that they have on their nodes. Those that are over and in no
PodGroup that is known do not count: they are kept as history, should there be one.
"""

from collections import Counter
from dataclasses import dataclass

from app.cache.decisions import Decisions
from app.cache.gangs.departed import Departed
from app.cache.gangs.groups import Group
from app.cache.gangs.history import History
from app.cache.gangs.members import PLACED_KINDS, Member, MemberState, Stage, decides_like
from app.cache.gangs.moving import brings_place, moved
from app.cache.gangs.owners_to_ask import OwnersToAsk
from app.cache.gangs.registry import Registry
from app.cache.gangs.views import task_of
from app.cache.neighbours.nominated_pods import NominatedOthers
from app.cache.neighbours.placed_pods import Occupant, PlacedPodTable
from app.cache.neighbours.rules import Rules
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.kept_slots import KeptSlots
from app.cache.reserved.losses import Losses
from app.cache.reserved.reservations import Reservations
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.ids import NO_NODE, NO_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.pod import TERMINAL, Pod, TaskStatus
from app.model.reason import TAKEN
from app.model.shape import PodShape
from app.model.workload import GroupPhase

_UNPLACED = frozenset({MemberState.WAITING, MemberState.GATED})


@dataclass(frozen=True, slots=True)
class Vacated:
    """What a member of a group had on a node until it ended or went, of that class of exchange."""

    group: GroupKey
    pod: Pod
    node: NodeName
    exchange: Exchange


class Pods:
    """Every pod that counts; ``schedulers`` are the names that are ours."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        schedulers: frozenset[str],
        node_usage: NodeUsage,
        registry: Registry,
        members: dict[PodUid, Member],
        rules: Rules,
        slots: KeptSlots,
        losses: Losses,
        reservations: Reservations,
    ) -> None:
        self.schedulers = schedulers
        self.foreign: dict[PodUid, Pod] = {}
        self.foreign_members = registry.foreign_members
        self.nominated = NominatedOthers()
        self.waiting: dict[PodUid, PodShape] = {}
        """What foreign pods look like that wait for a node and are nominated to none."""
        self.nominated_members: set[PodUid] = set()
        """Pods of ours that show a nomination."""
        self.table = PlacedPodTable(self._occupant, node_usage.charges)
        node_usage.moved.append(self.table.note)
        self.awaited = OwnersToAsk()
        self.vacated: list[Vacated] = []
        """What members of gangs had that are over or gone: it is kept for their gangs."""
        self._decisions = decisions
        self._node_usage = node_usage
        self._registry = registry
        self._groups = registry.groups
        self._signals = registry.signals
        self._members = members
        self._rules = rules
        self._slots = slots
        self._losses = losses
        self._reservations = reservations
        self._observed: dict[PodUid, float] = {}
        self._history = History()
        self._departed = Departed()

    def ours(self, pod: Pod) -> bool:
        """Whether the pod's ``schedulerName`` is one of ours."""
        return pod.scheduler in self.schedulers

    def pod(self, uid: PodUid) -> Pod | None:
        """A pod that counts, ours or foreign."""
        member = self._members.get(uid)
        return member.pod if member is not None else self.foreign.get(uid)

    def shape_of(self, holder: str) -> PodShape | None:
        """The shape of a pod that counts, or of a slot; None: there is no such holder."""
        pod = self.pod(PodUid(holder))
        kept = self._slots.find(holder) if pod is None else None
        return kept[1].shape if kept is not None else None if pod is None else pod.shape

    def set_pod(self, pod: Pod, *, now: float, observed: bool = False) -> None:
        """Add or replace a pod. ``observed``: seen in a Filter call, the watch is still behind."""
        if observed and self._is_past(pod):
            return
        self._departed.discard(pod.uid)
        self._note_rules(pod)
        self._history.drop(pod.uid)
        if not self.ours(pod):
            self._set_foreign(pod)
            return
        old = self._members.get(pod.uid)
        if old is None:
            if observed:
                self._observed[pod.uid] = now
            self._join(self._newcomer(pod, observed=observed, now=now), now=now)
        elif observed:
            return
        else:
            self._update(old, pod, now=now)

    def _update(self, old: Member, pod: Pod, *, now: float) -> None:
        if pod.complaint and pod.complaint != old.pod.complaint:
            self._decisions.choose(old, NO_NODE, now=now)  # refused: it is not in PreBind
        if pod.group != old.group:
            self._regroup(old, pod, now=now)
        elif decides_like(old.pod, pod):
            if (pod.complaint, pod.trouble) != (old.pod.complaint, old.pod.trouble):
                self._signals.note_group(old.group)
            self._decisions.confirm(old, pod)
        else:
            self._replace(old, pod, now=now)

    def _newcomer(self, pod: Pod, *, observed: bool, now: float) -> Member:
        """A pod that is seen for the first time, with what a process before this one left on it.

        A place that this process has not given is exchanged with no other.
        """
        return Member(
            pod,
            pod.group,
            task_of(pod, self._node_usage.vector),
            exchange=NO_EXCHANGE if pod.node else ANY_EQUAL,
            since=now,
            refused=bool(pod.complaint),
            hinted=pod.left_nomination,
            lost=pod.failed_leaving,
            observed=observed,
        )

    def drop_pod(self, uid: PodUid) -> None:
        """A pod is gone; what it held is free at once, and only the watch can bring it back."""
        if uid in self._members or uid in self._history:
            self._departed.add(uid)
        self._drop(uid)

    def set_nominated(self, pod: Pod) -> None:
        """A foreign pod waits for room that pods were evicted from, or does so elsewhere.

        One that is known to have a node does not: two watches tell of it.
        """
        if pod.uid not in self.foreign:
            self._signals.note_freed(when=self.nominated.note(pod))

    def drop_nominated(self, uid: PodUid) -> None:
        """Drop a pod that is not nominated any more: it has its node, was refused, or is gone."""
        self._signals.note_freed(when=self.nominated.drop(uid))

    def set_waiting(self, pod: Pod) -> None:
        """A foreign pod waits for a node, or does not any more."""
        if pod.node or pod.deleting or pod.gates or pod.status in TERMINAL:
            self.drop_waiting(pod.uid)
        else:
            self.waiting[pod.uid] = pod.shape

    def drop_waiting(self, uid: PodUid) -> None:
        """A foreign pod waits no more, or claims room by a nomination."""
        self.waiting.pop(uid, None)

    def _drop(self, uid: PodUid) -> None:
        self._forget_rules(uid)
        self._history.drop(uid)
        if self.foreign.pop(uid, None) is not None:
            self._registry.count_foreign(self.foreign_members.drop(uid))
            self._signals.note_freed(when=self._node_usage.discharge(uid))
            return
        member = self._members.get(uid)
        if member is None:
            return
        if member.reserved:
            self._losses.note(member, "pod was deleted")
        self._vacate(member, member.charged_node)
        self._leave(member)
        group = self._groups.get(member.group)
        if group is not None and not group.on_nodes:
            group.reached = Counter()  # if it comes again it comes whole

    def _vacate(self, member: Member, node: NodeName) -> None:
        """Take away what the member had on ``node``."""
        if node and member.pod.grouped:
            self.vacated.append(Vacated(member.group, member.pod, node, member.exchange))

    def _is_past(self, pod: Pod) -> bool:
        """Whether the pod is gone or over, though kube-scheduler does not know that yet."""
        gone = pod.uid in self._departed or pod.uid in self._history
        return gone or self._is_history(pod)

    def _is_history(self, pod: Pod) -> bool:
        """Whether the pod is over, and its PodGroup too: it does not count."""
        if pod.status not in TERMINAL:
            return False
        group = self._groups.get(pod.group)
        return pod.grouped and (group is None or not group.known)

    def _note_rules(self, pod: Pod) -> None:
        if pod.status in TERMINAL:
            self._forget_rules(pod.uid)
            return
        ours = self.ours(pod)
        self._rules.note(pod.uid, pod.shape, ours=ours)
        if ours and pod.nominated and not pod.node:
            self.nominated_members.add(pod.uid)
        else:
            self.nominated_members.discard(pod.uid)

    def _forget_rules(self, uid: PodUid) -> None:
        self._rules.drop(uid)
        self.nominated_members.discard(uid)

    def _occupant(self, holder: str) -> Occupant | None:
        """The pod or slot that has room under that name, as other pods see it."""
        member = self._members.get(PodUid(holder))
        pod = self.foreign.get(PodUid(holder)) if member is None else member.pod
        if pod is None:
            kept = self._slots.find(holder)
            return Occupant.of_slot(kept[1], namespace=kept[0].namespace) if kept else None
        node = pod.node if member is None else member.charged_node
        return Occupant.of(pod, node) if node else None

    def _set_foreign(self, pod: Pod) -> None:
        self._signals.note_freed(when=self.nominated.drop(pod.uid))
        if not pod.node or pod.status in TERMINAL:
            self._drop(pod.uid)
            return
        old = self.foreign.get(pod.uid)
        if old is None or not decides_like(old, pod):
            self._node_usage.tell(pod.uid)
        self.foreign[pod.uid] = pod
        self._registry.namespaces_heard_of.add(pod.namespace)
        self._registry.count_foreign(self.foreign_members.note(pod))
        changed = self._node_usage.charge(
            pod.uid,
            pod.node,
            pod.shape.requests,
            reserved=False,
            releasing=pod.status is TaskStatus.RELEASING,
        )
        if changed:
            self._signals.note_freed()
            self._losses.relieve(pod.node, TAKEN)

    def _join(self, member: Member, *, now: float, left: QueueName = NO_QUEUE) -> None:
        """``left``: the queue that it counted for so far."""
        if self._is_history(member.pod):
            self._history.keep(member.pod)
            return
        group = self._registry.open(member.group, solo=not member.pod.grouped)
        self._members[member.pod.uid] = member
        self._decisions.look_whether_it_lingers(member)
        group.add(member)
        group.given_up = False
        self._signals.note_overfull(when=member.kind in PLACED_KINDS and group.queue != left)
        if group.solo:
            self._await_owner(group, member)
        if group.slots and member.kind in (MemberState.WAITING, *PLACED_KINDS):
            # first: it need not have room besides
            self._reservations.adopt_slot(group, member, now=now)
        self._losses.charge(member)
        self._registry.changed(group, replan=group.wants_planning)

    def _leave(self, member: Member) -> None:
        group = self._groups[member.group]
        queue = group.queue
        group.remove(member)
        self._registry.moved(group, queue)  # the others may count for another queue without it
        group.unused.discard(member.pod.uid)
        del self._members[member.pod.uid]
        self._await_not(group, member.pod.uid)
        self._node_usage.discharge(member.pod.uid)
        self._registry.changed(group)

    def retire(self, group: Group) -> None:
        """The PodGroup of ``group`` went: its members that are over are history."""
        for member in list(group.members.values()):
            if member.pod.status in TERMINAL:
                self._retire(member)

    def recall(self, group: Group) -> None:
        """There is a PodGroup: pods of it that are over count again."""
        for pod in self._history.take(group.key):
            task = task_of(pod, self._node_usage.vector)
            member = self._members[pod.uid] = Member(pod, group.key, task, lost=pod.failed_leaving)
            group.add(member)

    def _retire(self, member: Member) -> None:
        self._leave(member)
        self._history.keep(member.pod)

    def _regroup(self, member: Member, pod: Pod, *, now: float) -> None:
        before, group = self._groups[member.group], self._groups.get(pod.group)
        brings = brings_place(member, pod, before, group)
        fresh = moved(member, pod, task_of(pod, self._node_usage.vector), brings=brings, now=now)
        if member.stage is not Stage.WAITING and fresh.stage is Stage.WAITING:
            self._losses.note(member, "pod moved to another group")
        self._decisions.regrouped(member, fresh)
        left = before.queue
        self._leave(member)
        self._join(fresh, now=now, left=left)
        if brings:
            self._come_in(self._groups[pod.group])
            self._reservations.housed.append(pod.uid)

    def _come_in(self, group: Group) -> None:
        """Admit the group without a vote, as it has a place already."""
        if group.phase in (GroupPhase.NEW, GroupPhase.PENDING):
            self._decisions.admit(group.key)

    def _replace(self, member: Member, pod: Pod, *, now: float) -> None:
        group = self._groups[member.group]
        before, requests, queue = member.kind, member.pod.shape.requests, group.queue
        had = member.charged_node
        if self._decisions.follow(member, pod, now=now):
            self._losses.note(member, "pod is being deleted" if pod.deleting else "pod is over")
        if group.awaits:
            self._await_not(group, pod.uid)
            self._await_owner(group, member)
        grows = before not in PLACED_KINDS or requests != pod.shape.requests
        self._signals.note_overfull(when=grows and member.kind in PLACED_KINDS)
        self._registry.moved(group, queue)
        moved = self._losses.charge(member)
        if pod.status in TERMINAL:
            self._vacate(member, had)
        self._node_usage.tell(pod.uid)
        stays = before in PLACED_KINDS and member.kind in PLACED_KINDS and not moved
        self._registry.changed(group, replan=not stays)
        if self._is_history(pod):
            self._retire(member)
        elif group.slots and before is MemberState.GATED and member.kind is MemberState.WAITING:
            self._reservations.adopt_slot(group, member, now=now)

    # --- pods whose owner may want a gang --------------------------------------------------------

    def _await_owner(self, group: Group, member: Member) -> None:
        """Let a pod without a node wait if its owner may want a gang, until that is known."""
        owner = member.pod.owner
        if member.kind not in _UNPLACED or owner is None:
            return
        if self.awaited.may_gather(owner):
            self.awaited.file(member.pod, owner.uid)
            group.awaits = owner.uid

    def _await_not(self, group: Group, uid: PodUid) -> None:
        self.awaited.take_out(uid, group.awaits)
        group.awaits = ""

    def await_no_group(self, owner: str) -> None:
        """The owner of that UID wants no gang: its pods stand alone, those to come too."""
        for uid in self.awaited.stand_alone(owner):
            member = self._members.get(uid)
            if member is not None:
                group = self._groups[member.group]
                group.awaits = ""
                self._registry.changed(group)

    # --- pods that only a Filter call has shown --------------------------------------------------

    def observed(self, scheduler: str = "") -> frozenset[PodUid]:
        """Pods that only a Filter call has shown so far; of one scheduler name if given."""
        seen = (self._members[uid] for uid in self._observed if uid in self._members)
        return frozenset(
            member.pod.uid
            for member in seen
            if member.observed and scheduler in ("", member.pod.scheduler)
        )

    def forget_observed(self, *, before: float) -> None:
        """Drop pods that only a Filter call showed and the watch never did.

        Not those whose Binding was sent: the API server knows them, so the watch is late. It may
        be so for the others too: a call brings them back.
        """
        for uid, seen in list(self._observed.items()):
            member = self._members.get(uid)
            if member is None or not member.observed:
                del self._observed[uid]
            elif seen < before and member.stage is not Stage.BINDING:
                del self._observed[uid]
                self._drop(uid)
