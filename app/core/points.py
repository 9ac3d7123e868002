"""The table of extension points: one row each, in the class body of :class:`Opened`.

A row says which hook of a plugin takes part, how the hooks of all plugins are combined
(:mod:`app.core.combining`), and which key of the plugin's configuration turns it off; points
without such a key cannot be turned off. A new point is one row here, and a field with its type in
:class:`~app.core.policy.Hooks`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar, overload

from app.core import combining, evicting, moving
from app.core.combining import Opening, Tiers
from app.core.faults import PluginFault
from app.core.policy import Hooks
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction, GangEviction, GangEvictions

Hook = TypeVar("Hook")
Answer = TypeVar("Answer")
Configured = Sequence[Sequence[tuple[PluginConf, Hooks]]]
"""The plugins of each tier, with what they answer."""
_USUAL = GangEviction()


@dataclass(slots=True, eq=False)
class Point(Generic[Hook, Answer]):
    """One extension point.

    As an attribute of :class:`Opened` it is the combined answer, which is made when it is first
    asked for and then kept.
    """

    of: Callable[[Hooks], Hook | None]
    combine: Callable[[Tiers[Hook], Opening], Answer]
    switch: str | None = None
    name: str = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, opened: None, owner: type) -> Self: ...
    @overload
    def __get__(self, opened: "Opened", owner: type) -> Answer: ...
    def __get__(self, opened: "Opened | None", owner: type) -> Self | Answer:
        if opened is None:
            return self
        answer = self.combine(self._taking_part(opened.configured), opened.opening)
        vars(opened)[self.name] = answer
        return answer

    def _taking_part(self, configured: Configured) -> Tiers[Hook]:
        return [
            [
                hook
                for conf, hooks in tier
                if self.switch is None or conf.enabled(self.switch)
                if (hook := self.of(hooks)) is not None
            ]
            for tier in configured
        ]


class Opened:
    """The combined answers of all tiers for one cycle; each attribute is a row of the table.

    ``faults`` has the plugins, by name, that could not be opened. ``fault`` is of one of these that
    planning cannot do without.
    """

    def __init__(
        self,
        configured: Configured,
        opening: Opening,
        gang_evictions: GangEvictions,
        *,
        faults: Mapping[str, PluginFault],
        fault: PluginFault | None,
    ) -> None:
        self.faults = faults
        self.fault = fault
        self.configured = configured
        self.opening = opening
        self._gang_evictions = gang_evictions

    def gang_eviction(self, action: EvictionAction) -> GangEviction:
        """How the action looks for victims."""
        return self._gang_evictions.get(action, _USUAL)

    gang_key = Point(lambda h: h.gang_order, combining.key_of_gangs, "enableJobOrder")
    """Ends in creation time and name, so the order is total."""
    task_key = Point(lambda h: h.task_order, combining.key_of_tasks, "enableTaskOrder")
    """The order of the members and slots of a gang, smaller first."""
    queue_order = Point(lambda h: h.queue_order, combining.order_of_queues, "enableQueueOrder")

    gang_valid = Point(lambda h: h.gang_valid, combining.first_refusal)
    gang_ready = Point(lambda h: h.gang_ready, combining.all_ready, "enableJobReady")

    enqueueable = Point(lambda h: h.enqueueable, combining.vote, "enableJobEnqueued")
    """None for yes."""
    admissible = Point(lambda h: h.admissible or h.enqueueable, combining.vote, "enableJobEnqueued")
    """The vote on a gang when what admitted groups without places claim is left out."""
    admissible_given_room = Point(
        lambda h: h.admissible or h.enqueueable, combining.vote_given_room, "enableJobEnqueued"
    )
    """``admissible`` when the cluster as a whole is taken to have room enough."""
    enqueued = Point(lambda h: h.enqueued, combining.all_told, "enableJobEnqueued")

    allocatable = Point(lambda h: h.allocatable, combining.first_limit, "enabledAllocatable")
    borrowable = Point(
        lambda h: h.borrowable or h.allocatable, combining.first_limit, "enabledAllocatable"
    )
    """``allocatable`` without the shares of queues: only what they may really hold counts."""
    permitted = Point(lambda h: h.permitted, combining.first_limit, "enabledAllocatable")
    """``allocatable`` if the cluster were as large as one could wish: only set limits count."""
    excess = Point(lambda h: h.excess, combining.largest, "enabledAllocatable")
    """Of set limits too; the queue may be closed or missing."""
    overused = Point(lambda h: h.overused, combining.first_overuse, "enabledOverused")
    is_below_share = Point(
        lambda h: h.is_below_share, combining.all_below_share, "enabledAllocatable"
    )
    """True where no plugin shares the cluster."""
    queue_shares = Point(lambda h: h.queue_shares, combining.first_set)
    """None when no plugin shares the cluster among the queues."""

    borrows = Point(lambda h: h.borrowing, combining.all_borrow)
    """Whether queues may hold more than their share."""
    patience = Point(lambda h: (h.patience, h.borrowing), combining.first_patience)
    """After how many seconds of waiting room is collected for a gang."""

    starving = Point(lambda h: h.starving, combining.first_tier_agrees, "enableJobStarving")
    """Whether pods may be evicted for a gang."""
    pipelined = Point(lambda h: h.pipelined, combining.vote, "enableJobPipelined")
    """None: a gang has room enough once the victims have gone."""
    preemptable = Point(lambda h: h.preemptable, evicting.by_tiers, "enablePreemptable")
    """The pods that may go for a gang of the same queue, or of the same gang."""
    reclaimable = Point(lambda h: h.reclaimable, evicting.by_tiers, "enableReclaimable")
    """The pods that may go for a gang of another queue."""
    unified_evictable = Point(lambda h: h.unified_evictable, evicting.by_tiers)
    """Both, for the actions that take gangs."""
    preemptive = Point(lambda h: h.preemptive, combining.first_objection, "enablePreemptive")
    victim_order = Point(lambda h: h.victim_order, combining.in_order, "enableVictimOrder")
    victim_queue_order = Point(lambda h: h.victim_queue_order, evicting.order_of_victim_queues)
    """0 where no plugin tells two queues apart."""

    most_domains = Point(lambda h: h.most_domains, combining.first_set, "enabledHyperNodeGradient")
    """In how many domains of a tier victims are looked for; None: no plugin says that."""

    victim_tasks = Point(lambda h: h.victim_tasks, moving.first_tier_wants, "enabledVictim")
    """The pods that are wanted on other nodes, with what wants each."""

    revoked = Point(lambda h: h.revoked, combining.in_order, "enabledVictim")
    """The pods that have to leave their nodes, whether any gang asks for room or not."""

    predicates = Point(lambda h: h.predicates, combining.first_rules, "enablePredicate")
    node_rules = Point(lambda h: h.node_rules, combining.all_rules, "enablePredicate")
    scoring = Point(lambda h: h.scoring, combining.sum_of_weights, "enableNodeOrder")
    node_areas = Point(lambda h: h.node_area, combining.in_order, "enablePredicate")
    """Where searches for a gang, or a sub-group, look at all: all must hold."""
    node_scores = Point(lambda h: h.node_score, combining.in_order, "enableNodeOrder")
    """Scores of nodes that are added to what ``scoring`` gives."""
    domain_scores = Point(lambda h: h.domain_score, combining.in_order, "enabledHyperNodeOrder")
    """Which domains of a tier are tried first: those with the highest sum."""
    place_classes = Point(lambda h: h.place_class, combining.in_order)
    """Each says with which others a place may be exchanged, and all must hold."""
