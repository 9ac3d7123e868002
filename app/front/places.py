"""The places that the extender promised, and the answers that follow from them alone."""

import time
from collections.abc import Callable

from app.model.ids import NodeName, PodUid
from app.wire import filter_by_name
from app.wire.front import Change, Told

Tell = Callable[[Told], None]


class Places:
    """What the front knows. ``tell`` lets the extender know who was told its place."""

    def __init__(self, tell: Tell, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._tell = tell
        self._clock = clock
        self._of: dict[PodUid, NodeName] = {}

    def learn(self, change: Change) -> None:
        """Follow the extender."""
        self._of.update(change.given)
        for uid in change.lost:
            self._of.pop(uid, None)

    def forget(self) -> None:
        """The extender decides nothing any more."""
        self._of.clear()

    def answer(self, body: bytes) -> bytes | None:
        """The answer to a Filter call; None when it takes more than the place.

        The extender is told first: it is to know before kube-scheduler comes to Bind.
        """
        began = self._clock()
        asked = filter_by_name.asked(body)
        if asked is None:
            return None
        uid, names = asked
        node = self._of.get(uid)
        if node is None or node not in names:
            return None
        answer = filter_by_name.answer([node])
        self._tell(Told(uid, node, self._clock() - began))
        return answer
