"""The places of pods, followed for a process that answers Filter with them.

Where a pod has a place and nothing else has a say, Filter's answer is that place
(:mod:`app.service.calls.filtering`). Or it is the place of an equal pod for which kube-scheduler
has not asked so far, which has the first one's then: of a sample of nodes the planned one is rarely
one. Equal pods are told to be of one kind.

What such a process knows is a moment old. That does no harm: a place may also be lost between an
answer and the Bind call that follows it, which is refused then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage
from app.model.exchange import NO_EXCHANGE, Exchange
from app.model.ids import PodUid
from app.model.shape import PodShape
from app.service.cycle.leadership import Leadership
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.limits import Limits, PlacementHint
from app.wire.front import PlaceChanges, PodPlace, Told

KINDS_KEPT: Final = 1_000
"""Far more come and go in the life of a cluster; those that come back get another number."""


class _Known(NamedTuple):
    """What was taken of a pod last, and with which change; no place: what is known is in doubt."""

    place: PodPlace | None
    number: int


@dataclass(slots=True, eq=False)
class FrontReservations:
    """What changed since the front was told last; ``news`` is called when there may be something.

    The front is not asked about a pod that is on its node, so its place is forgotten with the next
    news: to tell each one by itself costs as much as a tenth of a Filter call.
    """

    cache: ClusterCache
    cycle: PlanningCycle
    leadership: Leadership
    limits: Limits
    news: Callable[[], None]
    _known: dict[PodUid, _Known] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)
    _number: int = 0
    _kinds: dict[tuple[PodShape, Exchange], int] = field(default_factory=dict)
    _last_kind: int = 0
    _rules: bool = False
    """Whether there were rules about other pods when kinds were told last."""
    _classes: frozenset[str] = frozenset()
    """The domains of the network, as classes of exchange, when kinds were told last."""

    def __post_init__(self) -> None:
        self.cache.node_usage.moved.append(self._note)
        self.cycle.after.append(lambda _changed: self.news())
        self.leadership.stood_by.append(self.news)

    def known(self) -> PlaceChanges:
        """All places, for a front that knows nothing yet."""
        given = {uid: known.place for uid, known in self._known.items() if known.place}
        return PlaceChanges(given, number=self._number)

    def take(self) -> PlaceChanges | None:
        """The new places, and the pods that have none any more: all, while nothing is decided.

        None when nothing changed.
        """
        change = PlaceChanges(number=self._number + 1)
        if self.leadership.deciding.is_set():
            self._follow_rules()
            noted, self._noted = self._noted, set()
            for holder in noted:
                self._compare(PodUid(holder), change)
        else:
            change.lost += self._known
            self._noted.update(self._known)
            self._known.clear()
        if not (change.given or change.lost):
            return None
        self._number = change.number
        return change

    def was_told(self, told: Told) -> None:
        """Follow what was answered: a pod that was told its place does not change it any more.

        Where a change crosses an answer, it is what counts in the end.
        """
        mine, theirs = self._seen(told.uid, told), self._seen(told.other, told)
        if mine is not None:
            self._known[told.uid] = _Known(PodPlace(told.node), mine.number)
        if theirs is not None:
            self._known[told.other] = _Known(mine.place if mine else None, theirs.number)
        if told.other:
            self._noted.update((told.uid, told.other))
            self.news()

    def _seen(self, uid: PodUid, told: Told) -> _Known | None:
        """What was taken of that pod, if the front that answered knew it."""
        known = self._known.get(uid)
        return known if known is not None and known.number <= told.by else None

    def _follow_rules(self) -> None:
        """With the first one that comes, and the last that goes, others are alike.

        So it is when domains of the network get other nodes.
        """
        rules, classes = self.cache.rules.are_between_pods, self.cache.network.classes
        if self._rules is not rules or self._classes is not classes:
            self._rules, self._classes = rules, classes
            self._noted.update(self._known)

    def _compare(self, uid: PodUid, change: PlaceChanges) -> None:
        """Put into ``change`` what is not known of that pod."""
        place, known = self._place(uid), self._known.get(uid)
        if place is not None:
            if known is None or known.place != place:
                change.given[uid] = place
                self._known[uid] = _Known(place, change.number)
        elif known is not None:
            change.lost.append(uid)
            del self._known[uid]

    def _note(self, holder: str) -> None:
        charge = self.cache.node_usage.charges.get(holder)
        is_reservation = charge is not None and charge.reserved
        if not is_reservation and holder not in self._known:
            return
        self._noted.add(holder)
        if is_reservation or charge is None:
            self.news()

    def _place(self, uid: PodUid) -> PodPlace | None:
        member = self.cache.members.get(uid)
        if member is None or not member.reserved:
            return None
        if self.limits.hint is PlacementHint.GUIDE and self.cache.groups[member.group].solo:
            return None
        return PodPlace(member.node, self._kind(member))

    def _kind(self, member: Member) -> int:
        """A number, the same for equal pods whose places are of one class.

        0 for a pod that keeps its place, and for one whose place is known elsewhere.
        """
        pod, exchange = member.pod, self.cache.reservations.exchange_of(member)
        goes_anywhere = not (pod.gates or pod.nominated or pod.shape.looks_at_pods)
        if member.stage is not Stage.PLANNED or member.told or not goes_anywhere:
            return 0
        if exchange == NO_EXCHANGE:
            return 0
        kind = self._kinds.get((pod.shape, exchange))
        if kind is None:
            if len(self._kinds) >= KINDS_KEPT:
                self._kinds.clear()
            kind = self._last_kind = self._kinds[pod.shape, exchange] = self._last_kind + 1
        return kind
