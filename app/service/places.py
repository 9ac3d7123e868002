"""The places of pods, followed for a process that answers Filter with them.

Where a pod has a place and nobody else has a say, Filter's answer is that place
(:mod:`app.service.filtering`). What such a process knows is a moment old. That does no harm: a
place may also be lost between an answer and the Bind call that follows it, which is refused then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.model.ids import NO_NODE, NodeName, PodUid
from app.service.limits import Hint, Limits
from app.service.planning import Planning


@dataclass(slots=True, eq=False)
class Places:
    """What changed since it was asked last; ``news`` is called when there may be something.

    Nobody asks where a pod may go that is on its node, so its place is forgotten with the next
    news: to tell each one by itself costs as much as a tenth of a Filter call.
    """

    cache: ClusterCache
    planning: Planning
    limits: Limits
    news: Callable[[], None]
    _known: dict[PodUid, NodeName] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cache.rooms.moved.append(self._note)
        self.planning.after.append(lambda _changed: self.news())
        self.planning.stood_by.append(self.news)

    def known(self) -> dict[PodUid, NodeName]:
        """All that was taken, for who knows nothing yet."""
        return dict(self._known)

    def take(self) -> tuple[dict[PodUid, NodeName], list[PodUid]]:
        """The new places, and the pods that have none any more: all, while nothing is decided."""
        if not self.planning.deciding.is_set():
            lost, self._known = list(self._known), {}
            self._noted.update(lost)
            return {}, lost
        given: dict[PodUid, NodeName] = {}
        lost = []
        noted, self._noted = self._noted, set()
        for holder in noted:
            uid = PodUid(holder)
            node = self._place(uid)
            if node == self._known.get(uid, NO_NODE):
                continue
            if node:
                given[uid] = self._known[uid] = node
            else:
                del self._known[uid]
                lost.append(uid)
        return given, lost

    def _note(self, holder: str) -> None:
        charge = self.cache.rooms.charges.get(holder)
        is_on_node = charge is not None and not charge.promised
        if is_on_node and holder not in self._known:
            return
        self._noted.add(holder)
        if not is_on_node:
            self.news()

    def _place(self, uid: PodUid) -> NodeName:
        member = self.cache.members.get(uid)
        if member is None or not member.promised:
            return NO_NODE
        if self.limits.hint is Hint.GUIDE and self.cache.groups[member.group].solo:
            return NO_NODE
        return member.node
