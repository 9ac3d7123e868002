"""The reservations that the extender told the front, and the answers that follow from them alone.

kube-scheduler may offer a sample of nodes without the pod's. Then the pod exchanges places with an
equal pod whose node was offered, and for which kube-scheduler has not asked so far: the plan stays
as it is.
"""

import time
from collections.abc import Callable, Iterable

from app.model.ids import NodeName, PodUid
from app.wire import filter_by_name
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import NOBODY, PlaceChanges, PodPlace, Told

Tell = Callable[[Told], None]

_Uids = dict[PodUid, None]
_On = dict[NodeName, _Uids]


class Places:
    """What the front knows; ``tell`` tells the extender which pod was told which place."""

    def __init__(self, tell: Tell, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._tell = tell
        self._clock = clock
        self._of: dict[PodUid, PodPlace] = {}
        self._alike: dict[int, _On] = {}
        """Pods that may exchange places, by kind and node; no entry of a node is empty."""
        self._number = 0

    def learn(self, change: PlaceChanges) -> None:
        """Follow the extender."""
        self._number = change.number
        for uid, place in change.given.items():
            self._put(uid, place)
        for uid in change.lost:
            self._drop(uid)

    def forget(self) -> None:
        """The extender decides nothing any more."""
        self._of.clear()
        self._alike.clear()

    def answer(self, body: bytes) -> bytes | None:
        """The answer to a Filter call; None when it takes more than the places.

        The extender is told first: it is to know before kube-scheduler comes to Bind.
        """
        began = self._clock()
        asked = filter_by_name.asked(body)
        if asked is None:
            return None
        uid, names = asked
        place, other = self._of.get(uid), NOBODY
        if place is None:
            return None
        node = place.node
        if node not in names:
            other = self._other(place.kind, names)
            if not other:
                return None
            node = self._of[other].node
            self._put(other, place)
        if place.kind:
            self._put(uid, PodPlace(node))
        answer = filter_by_name.answer([node])
        self._tell(Told(uid, node, self._clock() - began, self._number, other))
        return answer

    def _other(self, kind: int, names: list[NodeName]) -> PodUid:
        """An equal pod of that kind with a place on an offered node; `NOBODY` where there is none.

        Nor is there one when all feasible nodes were offered. Then the stock filters refuse the
        planned node, which is for the extender to know.
        """
        on = self._alike.get(kind)
        if on is None or len(names) < SAMPLE_FLOOR:
            return NOBODY
        found: Iterable[_Uids | None] = map(on.get, names)
        return next((next(iter(there)) for there in found if there), NOBODY)

    def _put(self, uid: PodUid, place: PodPlace) -> None:
        self._drop(uid)
        self._of[uid] = place
        if place.kind:
            self._alike.setdefault(place.kind, {}).setdefault(place.node, {})[uid] = None

    def _drop(self, uid: PodUid) -> None:
        place = self._of.pop(uid, None)
        if place is None or not place.kind:
            return
        on = self._alike[place.kind]
        there = on[place.node]
        del there[uid]
        if not there:
            del on[place.node]
        if not on:
            del self._alike[place.kind]
