"""Filter: read the published plan and answer with one node.

The answer for a pod of ours is its reserved node, the same however often it is asked; asking takes
nothing away. A member of a group that may run but has no place yet is planned on demand. Otherwise
the pod waits: ``FailedAndUnresolvableNodes`` with one constant text per cause (a text that changes,
or plain ``FailedNodes``, makes kube-scheduler try again at once, for ever), or ``Error`` while many
pods wait, which only the back-off ladder tries again.

A pod that comes for the room of its victims is planned anew, and while our watch does not show yet
that they have gone, the call is kept for a moment and then answered by ``Error`` too: after that
kube-scheduler evicts no pod, while after a refusal it would evict others on another node. So it is
while the watch does not show the PodGroup that a controller gave the pod in the meantime. For that
the call of any pod is kept: refused on the nodes with room, it would evict others elsewhere.

A planned node that was not offered is a *veto* by the stock filters when all feasible nodes were
offered. When only a sample was, it may be chance: then the pod changes places with an equal member
of its gang whose node was offered (the plan stays as it is), else an offered node with room takes
the planned one's place, both as far as the class of the place allows (:mod:`app.model.exchange`),
else it waits for a better sample. kube-scheduler goes through the nodes in turn: samples that lack
the node in a row are a veto once they name as many nodes as there are. So it is with a pod that
must be spread: its node may be missing only because others of its kind have not come to theirs yet.
A pod whose place is exchanged with no other is nominated. Until kube-scheduler can know that, three
times as many names are a veto: with pods that take turns, each may begin at the same nodes always.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import ARRIVED, Member, Stage
from app.core.texts import filter_text
from app.model.exchange import NO_EXCHANGE
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid
from app.model.pod import Pod
from app.model.reason import NODES_MAY_HELP, Cause
from app.service.calls.catching_up import LateGroups, comes_true
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.expiry import Expiry
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.on_demand import OnDemand
from app.service.cycle.queries import Queries
from app.service.cycle.vetoes import Vetoes
from app.service.limits import Limits, PlacementHint
from app.service.ports import Clock
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import NOBODY

CATCH_UP_S = 0.05
"""How long a call is kept for the watch."""

_REPLANS = 3
_ROUNDS_BEFORE_NOMINATION = 3
"""How often a pod may be offered as many names as there are nodes while its nomination is due."""
_TIDY_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """One Filter call: the pod (decoded only when asked for) and the nodes it may go to."""

    uid: PodUid
    pod: Callable[[], Pod]
    names: Sequence[NodeName]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The one node."""

    node: NodeName


@dataclass(frozen=True, slots=True)
class Everything:
    """All the nodes that were offered."""


@dataclass(frozen=True, slots=True)
class Some:
    """Some of the offered nodes; the others are kept for ``text``."""

    nodes: tuple[NodeName, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Wait:
    """No offered node, and no other would do: ``FailedAndUnresolvableNodes`` with ``text``."""

    text: str


@dataclass(frozen=True, slots=True)
class Protect:
    """None, and do not ask again soon: ``Error`` with ``text``."""

    text: str


@dataclass(frozen=True, slots=True)
class Behind:
    """No node that we know of, but kube-scheduler may know better: ``Error`` with ``text``."""

    text: str


Answer = Chosen | Everything | Some | Wait | Protect | Behind

_GUARD_TEXT = "room is reserved for a gang"
_VETOED = "the stock filters refuse the node"


class Filtering:
    """Answers Filter."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        on_demand: OnDemand,
        queries: Queries,
        last_plan: LastPlan,
        expiry: Expiry,
        vetoes: Vetoes,
        allowed_victims: AllowedVictims,
        late_groups: LateGroups,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._on_demand = on_demand
        self._queries = queries
        self._last_plan = last_plan
        self._expiry = expiry
        self._vetoes = vetoes
        self._allowed_victims = allowed_victims
        self._late_groups = late_groups
        self._limits = limits
        self._clock = clock
        self._waiting: dict[PodUid, Cause] = {}
        """What each ungated pod without a place was told last."""
        self._guessed: dict[PodUid, NodeName] = {}
        """The only node that a pod was offered last, in vain."""
        self._next_tidying = 0.0

    def answer(self, question: Question) -> Answer:
        """Where the pod may go."""
        member = self._cache.members.get(question.uid)
        if member is None:
            pod = question.pod()
            if not self._cache.pods.ours(pod):
                return self._guard(pod, question.names)
            self._cache.set_pod(pod, now=self._clock(), observed=True)
            member = self._cache.members.get(question.uid)
            if member is None:  # it is gone, or it is over and its group is not there
                return Wait(filter_text(Cause.GROUP_MISSING))
        self._expiry.asked_at = self._clock()
        self._cache.decisions.asked_for(member)
        answer = self._place(member, question.names)
        if answer is None:
            return self._wait(member, question.names)
        self._cache.decisions.tell(member, told=isinstance(answer, Chosen))
        if isinstance(answer, Chosen):
            self._cache.decisions.choose(member, answer.node, now=self._clock())
        self._has_answer(member)
        return answer

    def was_told(self, uid: PodUid, node: NodeName, *, other: PodUid = NOBODY) -> None:
        """The front (:mod:`app.service.calls.front_reservations`) answered a call with ``node``.

        The node was that of an ``other`` pod, if one is named, which has this one's now. When that
        is not so any more, Bind sees whether there is room for it.
        """
        member, now = self._cache.members.get(uid), self._clock()
        if other:
            self._cache.reservations.change_places(uid, other, now=now)
        self._expiry.asked_at = now
        if member is None or member.stage in ARRIVED:
            return  # it is gone, or came to Bind in the meantime
        self._cache.decisions.asked_for(member)
        self._cache.decisions.choose(member, node, now=now)
        if member.node == node:
            self._cache.decisions.start_time(member, now=now)
            self._cache.decisions.tell(member, told=True)
            self._has_answer(member)

    async def answer_in_time(self, question: Question) -> Answer:
        """The answer once the watch shows its group, and its victims gone, if it does soon."""
        answer, names = self.answer(question), question.names
        if await self._late_groups.comes(question.uid):
            answer = self.answer(question)
        if not isinstance(answer, Behind) or not self._allowed_victims.allows(question.uid, names):
            return answer
        if await comes_true(
            lambda: self._allowed_victims.are_done(question.uid), within_s=CATCH_UP_S
        ):
            return self.answer(question)
        return answer

    def scores(self, question: Question) -> list[tuple[NodeName, int]]:
        """0 to 10 per offered node: the planned one first, else as the policies rate them."""
        member = self._cache.members.get(question.uid)
        if member is None:
            return [(name, 0) for name in question.names]
        if member.stage is not Stage.WAITING and self._limits.hint is not PlacementHint.GUIDE:
            return [(name, 10 * (name == member.node)) for name in question.names]
        return self._queries.rate(member, question.names)

    def waiting(self) -> int:
        """How many ungated pods of ours were told to wait and are still unplaced."""
        return len(self._waiting)

    def told_something_else(self) -> list[PodUid]:
        """Waiting pods that were told another cause than holds now; of a crowd none."""
        if len(self._waiting) > self._limits.protect_above:
            return []
        return [
            uid
            for uid, told in self._waiting.items()
            if self._is_without_place(uid) and self._cause(self._cache.members[uid]) is not told
        ]

    def after_cycle(self, _changed: Collection[GroupKey]) -> None:
        """Forget, now and then, waiting pods that are gone or got their place."""
        now = self._clock()
        if self._waiting and now >= self._next_tidying:
            self._next_tidying = now + _TIDY_EVERY_S
            self._waiting = {
                uid: told for uid, told in self._waiting.items() if self._is_without_place(uid)
            }
            members = self._cache.members
            self._guessed = {uid: node for uid, node in self._guessed.items() if uid in members}

    def _is_without_place(self, uid: PodUid) -> bool:
        member = self._cache.members.get(uid)
        return member is not None and member.stage is Stage.WAITING and not member.pod.node

    def _place(self, member: Member, names: Sequence[NodeName]) -> Answer | None:
        for _ in range(_REPLANS):
            if not self._has_place(member, names):
                return None
            if self._is_guided(member):
                return self._with_room(member, names)
            if member.node in names:
                return self._chosen(member)
            if member.stage is not Stage.PLANNED or self._only_a_guess(member, names):
                return None
            if member.pod.shape.must_spread or len(names) >= SAMPLE_FLOOR:
                if self._swap(member, names):
                    return self._chosen(member)
                if self._may_be_chance(member, names):
                    return None
            if self._veto(member, names):
                return self._chosen(member)
        return None

    def _has_answer(self, member: Member) -> None:
        """Note that the member has its answer and does not wait."""
        self._cache.decisions.answered_filter(member)
        self._waiting.pop(member.pod.uid, None)
        self._guessed.pop(member.pod.uid, None)

    def _chosen(self, member: Member) -> Chosen:
        """The member's node; a planned pod's time begins anew, as kube-scheduler came for it."""
        self._cache.decisions.start_time(member, now=self._clock())
        return Chosen(member.node)

    def _has_place(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Whether the member has a place, planned for now if need be."""
        if member.stage is not Stage.WAITING:
            return True
        anew = self._comes_after_preemption(member, names)
        is_sample = SAMPLE_FLOOR <= len(names) < len(self._cache.node_usage.nodes)
        if is_sample and not anew and self._on_demand.at_once(member, names):
            return True
        return self._on_demand.plan(member.group, anew=anew) and member.reserved

    def _comes_after_preemption(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Whether others had to leave an offered node for the member; a gang never preempts.

        A nomination tells it of victims that take longer to go than an allowed eviction is kept.
        kube-scheduler clears it after an error, so without an allowed eviction there is one error
        only.
        """
        group = self._cache.groups[member.group]
        if group.is_gang:
            return False
        return self._allowed_victims.allows(member.pod.uid, names) or member.evicted_for_on in names

    def _is_guided(self, member: Member) -> bool:
        """Whether kube-scheduler may choose among nodes with room."""
        guides = self._limits.hint is PlacementHint.GUIDE and member.exchange_class.is_open
        return guides and self._cache.groups[member.group].solo

    def _with_room(self, member: Member, names: Sequence[NodeName]) -> Answer | None:
        """Guided placement: every offered node that has room; kube-scheduler chooses by score."""
        node_usage, request, shape = self._cache.node_usage, member.task.request, member.pod.shape

        def cpus(name: NodeName) -> bool:
            return shape.numa is None or self._cache.numa.admits(name, [shape.numa])

        roomy = tuple(
            name
            for name in names
            if name == member.node
            or (node_usage.takes(name, shape) and node_usage.has_room(name, request) and cpus(name))
        )
        return Some(roomy, _GUARD_TEXT) if roomy else None

    def _only_a_guess(self, member: Member, names: Sequence[NodeName]) -> bool:
        """One offered name may be a nominated node or a hint: then all others are offered next.

        When the same one comes again, it is all there is. It is at once for a pod that is pinned,
        and for one that must be spread, to which the others may leave one node.
        """
        uid, pod = member.pod.uid, member.pod
        may_be_all = pod.pinned or pod.shape.must_spread or len(self._cache.node_usage.nodes) == 1
        if len(names) > 1 or may_be_all:
            self._guessed.pop(uid, None)
            return False
        before = self._guessed.get(uid)
        self._guessed[uid] = names[0]
        return before != names[0]

    def _swap(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Give the member an offered node instead of the planned one."""
        uid, now = member.pod.uid, self._clock()
        return self._cache.reservations.exchange(uid, frozenset(names), now=now) or self._move(
            member, names
        )

    def _move(self, member: Member, names: Sequence[NodeName]) -> bool:
        chosen = self._queries.best_of(member, names)
        uid, now = member.pod.uid, self._clock()
        return chosen is not None and self._cache.reservations.move(uid, chosen, now=now)

    def _may_be_chance(self, member: Member, names: Sequence[NodeName]) -> bool:
        self._cache.decisions.missed(member, offered=len(names))
        rounds = _ROUNDS_BEFORE_NOMINATION if _will_be_nominated(member) else 1
        return member.missed < rounds * len(self._cache.node_usage.nodes)

    def _veto(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Remember the member's node as refused; returns whether an offered one could replace it.

        That is tried first: planning anew could go through all nodes that are not offered.
        """
        now = self._clock()
        self._cache.decisions.vetoed(member)
        self._vetoes.add(member.pod.shape, member.node, now=now)
        if self._move(member, names):
            return True
        self._cache.reservations.withdraw(member.pod.uid, now=now, why=_VETOED)
        return False

    def _wait(self, member: Member, names: Sequence[NodeName]) -> Answer:
        self._cache.decisions.refused(member)
        self._cache.decisions.choose(member, NO_NODE, now=self._clock())
        cause = self._waiting[member.pod.uid] = self._cause(member)
        text = filter_text(cause)
        if self._is_behind(member, names):
            return Behind(text)
        # Autoscalers look at pods that are unschedulable, not at those with a scheduler's error.
        is_for_autoscalers = member.task.shown and cause in NODES_MAY_HELP
        if len(self._waiting) > self._limits.protect_above and not is_for_autoscalers:
            return Protect(text)
        return Wait(text)

    def _is_behind(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Whether kube-scheduler may know what we do not: its group, or that its victims went."""
        lacks = self._late_groups.lacks(member.pod.uid)
        shows_all = not lacks and self._allowed_victims.are_done(member.pod.uid)
        return not shows_all and self._comes_after_preemption(member, names)

    def _cause(self, member: Member) -> Cause:
        if not self._cache.groups[member.group].known:
            return Cause.GROUP_MISSING
        refusal = self._last_plan.refusals.get(member.group)
        return refusal.cause if refusal else Cause.NOT_ADMITTED

    def _guard(self, pod: Pod, names: Sequence[NodeName]) -> Answer:
        """The answer for a foreign pod (form C): it may not take room that is reserved."""
        node_usage = self._cache.node_usage
        reserved = node_usage.reserved_nodes().union(node_usage.kept_on)
        if not reserved:
            return Everything()
        request = node_usage.vector(pod.shape.requests)
        full = {
            node
            for node in reserved
            if node in node_usage.nodes and not node_usage.has_room(node, request)
        }
        free = tuple(name for name in names if name not in full)
        return Everything() if len(free) == len(names) else Some(free, _GUARD_TEXT)


def _will_be_nominated(member: Member) -> bool:
    """Whether the member's node is looked at first once its nomination has been written."""
    pod = member.pod
    settled = member.exchange_class == NO_EXCHANGE and not (pod.pinned or pod.shape.must_spread)
    return settled and pod.nominated != member.node
