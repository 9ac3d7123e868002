"""The one door: every change of a member goes through here, is counted, and is told in its story.

A :class:`~app.cache.gangs.members.Member` and the :class:`~app.cache.gangs.signals.Signals` are for
reading everywhere else (``tests/cache/test_one_door.py``). Callers name what happened. A step that
the life of a member does not have (:mod:`app.cache.gangs.members`) is an error, with the story.

The door counts a member in its group and charges nothing: what its room is, is the business of
:mod:`app.cache.reserved`.
"""

import logging
from collections.abc import Callable
from typing import Final

from app.cache.gangs.groups import Group
from app.cache.gangs.members import PLACED_KINDS, Answer, Member, MemberState, Stage
from app.cache.gangs.registry import Registry
from app.cache.gangs.story import GROUP_STEPS, MEMBER_STEPS, Stimulus, as_text, tell
from app.cache.gangs.trail import Trail
from app.cache.gangs.views import task_of
from app.cache.nodes.usage import NodeUsage
from app.model.decision import DecisionKind
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.ids import NO_NODE, GroupKey, NodeName
from app.model.pod import TERMINAL, Pod, TaskStatus
from app.model.workload import GroupPhase

log = logging.getLogger(__name__)

_NEXT: Final = {
    Stage.WAITING: frozenset({Stage.PLANNED}),
    Stage.PLANNED: frozenset(Stage),
    Stage.ASSUMED: frozenset(Stage),
    Stage.BINDING: frozenset({Stage.WAITING, Stage.PLANNED}),
}
"""The stages that a member may go to; a planned one is planned elsewhere, or looks again."""


class ImpossibleStepError(RuntimeError):
    """A member was to take a step that its life does not have; says what it did before."""


class Decisions:
    """Changes members and groups; ``clock`` dates the steps of their stories."""

    def __init__(
        self, registry: Registry, node_usage: NodeUsage, *, clock: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._node_usage = node_usage
        self._clock = clock
        self.trail = Trail(clock)

    # --- the place of a member -------------------------------------------------------------------

    def put(
        self,
        member: Member,
        stage: Stage,
        *,
        node: NodeName,
        since: float,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
        exchange: Exchange = ANY_EQUAL,
    ) -> None:
        """Give a member a place, another one, or none. The caller charges the room."""
        self._go(member, stage, node, by=by, why=why, generation=generation)
        group = self._registry.groups[member.group]
        group.remove(member)
        member.stage, member.node, member.since = stage, node, since
        member.exchange = exchange
        self.tell(member, told=False)
        member.void = member.sent = False
        member.answer = Answer.OPEN
        group.add(member)

    def exchange(self, member: Member, other: Member, *, now: float) -> None:
        """Two planned members change nodes; the first does so as a pod came for it."""
        mine, theirs = member.node, other.node
        self._go(member, member.stage, theirs, by=Stimulus.FILTER, why="exchanged")
        self._go(other, other.stage, mine, by=Stimulus.FILTER, why="exchanged")
        self._node_usage.exchange(member.pod.uid, other.pod.uid)
        member.node, other.node = theirs, mine
        member.since, member.told = now, False

    def restage(
        self, member: Member, stage: Stage, *, now: float, by: Stimulus, why: str = ""
    ) -> None:
        """A member that has a place goes on or back to a stage in which it has one too."""
        self._go(member, stage, member.node, by=by, why=why)
        arrivals = self._registry.groups[member.group].counted.arrivals
        arrivals.count(member, -1)
        member.stage, member.since = stage, now
        member.sent, member.answer = False, Answer.OPEN
        arrivals.count(member, 1)

    def sent(self, member: Member) -> None:
        """The Binding of a member leaves: from now on the API server may take it."""
        member.sent = True

    def answered(self, member: Member, answer: Answer) -> None:
        """Something is known of the Binding of a member."""
        arrivals = self._registry.groups[member.group].counted.arrivals
        arrivals.count(member, -1)
        member.answer = answer
        arrivals.count(member, 1)

    def avoid(self, member: Member, *, why: str) -> None:
        """The place of a member becomes void, though its Binding is under way."""
        if not member.void:
            stage = member.stage.value
            self._note(member, stage, f"{stage}, void", member.node, by=Stimulus.WATCH, why=why)
        arrivals = self._registry.groups[member.group].counted.arrivals
        arrivals.count(member, -1)
        member.void = True
        arrivals.count(member, 1)

    # --- what kube-scheduler and the pod were told -----------------------------------------------

    def tell(self, member: Member, *, told: bool) -> None:
        """The pod, or kube-scheduler, acts on the present place of a member, or does not."""
        if member.told != told:
            member.told = told
            self._node_usage.tell(member.pod.uid)

    def choose(self, member: Member, node: NodeName, *, now: float) -> None:
        """Filter answers with that node, or with none."""
        if node != member.chosen:
            member.chosen, member.chosen_at = node, now

    def start_time(self, member: Member, *, now: float) -> None:
        """A pod was told its place, or came for it: the time to use that place begins anew."""
        if member.stage is Stage.PLANNED:
            member.since = now

    def answered_filter(self, member: Member) -> None:
        """Filter had nodes for a member: it need not be woken."""
        member.refused, member.missed = False, 0

    def refused(self, member: Member) -> None:
        """kube-scheduler was told to wait, or refused the pod itself: it has to be woken."""
        member.refused = True

    def woken(self, member: Member) -> None:
        """A member that was refused is about to be woken."""
        member.refused = False

    def missed(self, member: Member, *, offered: int) -> None:
        """Note that ``offered`` nodes were offered for a member, and its own was not among them."""
        member.missed += offered

    def vetoed(self, member: Member) -> None:
        """The place of a member is none, as the stock filters say: samples count from zero."""
        member.missed = 0
        group = self._registry.groups[member.group]
        self.trail.of_member(DecisionKind.VETO, group, member, member.node, by=Stimulus.FILTER)

    def nominated(self, member: Member, node: NodeName) -> None:
        """A nomination of a member is ours; NO_NODE: the next is kube-scheduler's."""
        member.hinted = node

    # --- what the API server says ----------------------------------------------------------------

    def confirm(self, member: Member, pod: Pod) -> None:
        """A newer version of a pod says the same in all that counts."""
        member.pod, member.observed = pod, False

    def follow(self, member: Member, pod: Pod, *, now: float) -> bool:
        """A newer version of a pod says something else; returns whether it lost its place."""
        group, before, state = self._registry.groups[member.group], member.kind, state_of(member)
        group.remove(member)
        member.pod, member.observed = pod, False
        loses = member.reserved and pod.status is not TaskStatus.PENDING
        if loses:
            member.stage, member.node = Stage.WAITING, NO_NODE
        if pod.status is TaskStatus.FAILED and pod.node and before in PLACED_KINDS:
            member.failed_at = now
        member.lost = self._is_lost(member, before)
        member.task = task_of(pod, self._node_usage.vector)
        self.look_whether_it_lingers(member)
        group.add(member)
        if member.kind is not before:
            self._note(member, state, state_of(member), pod.node, by=Stimulus.WATCH)
        return loses

    def regrouped(self, member: Member, fresh: Member) -> None:
        """The pod of a member moved to another group, where it is ``fresh``."""
        before, after = state_of(member), state_of(fresh)
        if before != after or fresh.node:
            why = "pod moved to another group"
            self._note(fresh, before, after, fresh.node, by=Stimulus.WATCH, why=why)

    def look_whether_it_lingers(self, member: Member) -> None:
        """See whether a member that its group does not count terminates on a node that is up."""
        on_node = bool(member.pod.node) and member.pod.status is TaskStatus.RELEASING
        member.lingers = on_node and self._node_usage.is_up(member.pod.node)

    def count_lingering(self, member: Member) -> None:
        """The node of a terminating member came up, or went down."""
        group = self._registry.groups[member.group]
        group.remove(member)
        self.look_whether_it_lingers(member)
        group.add(member)
        self._registry.changed(group, replan=False)
        self._registry.signals.note_overfull(when=member.lingers)

    def replace_by_another(self, member: Member, *, lost: bool) -> None:
        """Another member is awaited in the stead of this one from now on, or not any more."""
        if member.lost is lost:
            return
        group = self._registry.groups[member.group]
        group.remove(member)
        member.lost = lost
        group.add(member)
        self._registry.changed(group)

    def _is_lost(self, member: Member, before: MemberState) -> bool:
        """Whether the gang of a member needs another one in its stead.

        So it does when the pod ended since it was deleted, or terminates where none may follow it.
        """
        pod = member.pod
        if not (pod.deleting and pod.node):
            return member.lost
        if pod.status in TERMINAL:
            return pod.status is TaskStatus.FAILED or before is MemberState.RELEASING_PLACED
        closed = pod.node in self._node_usage.nodes and not self._node_usage.takes(
            pod.node, pod.shape
        )
        return member.lost or closed

    # --- groups ----------------------------------------------------------------------------------

    def refuse_room(self, group: Group, *, now: float) -> None:
        """No eviction gave `group` room; the first time of many is remembered."""
        if not group.refused_since:
            group.refused_since = now
            self._registry.changed(group, replan=False, asks_alike=True)

    def admit(self, key: GroupKey, *, generation: int = 0) -> None:
        """The enqueue action admitted the group."""
        group = self._registry.groups.get(key)
        if group is not None and group.phase is not GroupPhase.INQUEUE:
            self.set_phase(key, GroupPhase.INQUEUE)
            kind, by = DecisionKind.ADMIT, Stimulus.CYCLE
            self.trail.of_group(kind, group, by=by, generation=generation)

    def set_phase(self, key: GroupKey, phase: GroupPhase) -> None:
        """Set the phase we decided."""
        group = self._registry.groups.get(key)
        if group is not None and group.phase is not phase:
            self.note_group(group, phase.value or "Pending", by=Stimulus.CYCLE)
            group.phase = phase
            self._registry.changed(group, asks_alike=True)

    def cool_down(self, key: GroupKey, *, until: float) -> None:
        """Keep the group from being planned before ``until``."""
        group = self._registry.groups.get(key)
        if group is not None:
            self.note_group(group, "cool-down", by=Stimulus.TAKEN_BACK, why=f"until {until:.0f}")
            group.cool_down_until = until
            self._registry.changed(group, asks_alike=True)

    def give_up(self, key: GroupKey) -> None:
        """Keep no room for members of the group that do not exist: not before one comes."""
        group = self._registry.groups.get(key)
        if group is not None:
            self.note_group(group, "awaits no members", by=Stimulus.TAKEN_BACK)
            group.given_up = True
            self._registry.changed(group)

    def set_aside(self, group: Group, *, generation: int) -> None:
        """Take the group out of planning: no end of other pods helps it."""
        self.note_group(group, "set aside", by=Stimulus.CYCLE, generation=generation)
        self._registry.set_aside(group)

    def asked_for(self, member: Member) -> None:
        """kube-scheduler came for a member: it does not go last any more."""
        group = self._registry.groups[member.group]
        if member.pod.uid in group.unused:
            group.unused.discard(member.pod.uid)
            self._registry.changed(group, replan=False)

    # --- the story -------------------------------------------------------------------------------

    def note_group(
        self,
        group: Group,
        after: str,
        *,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
        kind: DecisionKind | None = None,
    ) -> None:
        """Tell what happened to a gang; what happens to a single pod is told of its member.

        ``kind``: it is a decision about the gang as a whole.
        """
        if group.solo:
            return
        before = group.phase.value or "Pending"
        group.story = tell(
            group.story,
            by,
            at=self._clock(),
            before=before,
            after=after,
            most=GROUP_STEPS,
            generation=generation,
            why=why,
        )
        if kind is not None:
            self.trail.of_group(kind, group, by=by, cause=after, text=why, generation=generation)
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "group took a step",
                extra={
                    "group": group.key,
                    "stimulus": by.value,
                    "generation": generation,
                    "before": before,
                    "after": after,
                    "why": why,
                },
            )

    def note_member(self, member: Member, after: str, *, by: Stimulus, why: str) -> None:
        """Tell what happened to a member that changes nothing of its place."""
        self._note(member, state_of(member), after, member.charged_node, by=by, why=why)

    def _go(
        self,
        member: Member,
        stage: Stage,
        node: NodeName,
        *,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
    ) -> None:
        """Tell of a step of our own, which must be one that a member can take."""
        before, after = member.stage, stage
        if after not in _NEXT[before]:
            raise ImpossibleStepError(
                f"{member.pod.key} cannot go from {before.value} to {after.value}"
                f" by {by.value}; its story: {as_text(member.story) or 'none'}"
            )
        self._note(member, before.value, after.value, node, by=by, why=why, generation=generation)
        group = self._registry.groups[member.group]
        self.trail.step(group, member, after, node, by=by, why=why, generation=generation)

    def _note(
        self,
        member: Member,
        before: str,
        after: str,
        node: NodeName,
        *,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
    ) -> None:
        member.story = tell(
            member.story,
            by,
            at=self._clock(),
            before=before,
            after=after,
            most=MEMBER_STEPS,
            generation=generation,
            node=node,
            why=why,
        )
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "member took a step",
                extra={
                    "pod": member.pod.key,
                    "group": member.group,
                    "stimulus": by.value,
                    "generation": generation,
                    "before": before,
                    "after": after,
                    "node": node,
                    "why": why,
                },
            )


def state_of(member: Member) -> str:
    """How far a member has come, in one word."""
    if member.pod.node or member.pod.status is not TaskStatus.PENDING:
        return member.kind.value
    return member.stage.value
