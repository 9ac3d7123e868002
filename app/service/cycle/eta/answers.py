"""How good forecasts were: of each gang the first one is compared with its real start."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Final, NamedTuple

from app.core.eta.forecast import Eta, EtaOutcome
from app.model.ids import GroupKey, QueueName

MOST_OF_QUEUE: Final = 200
"""Outcomes kept of each queue."""
MOST_QUEUES: Final = 256
MOST_OPEN: Final = 4_096
"""Forecasts that wait for the start."""


class Kept(NamedTuple):
    """A forecast of a gang that has started; times are seconds since the epoch.

    ``p90`` 0: there was none.
    """

    queue: QueueName
    asked: float
    p50: float
    p90: float
    started: float


@dataclass(frozen=True, slots=True)
class Errors:
    """Of the last ``answers`` forecasts of a queue: how far the p50 was from the start, in seconds.

    ``median_s`` is the median of that, ``median_share`` the same as a part of the real wait, and
    ``inside_p90`` the part of the gangs that started by their p90.
    """

    answers: int
    median_s: float
    median_share: float
    inside_p90: float


@dataclass(slots=True, eq=False)
class Answers:
    """Forecasts that wait for the start of their gang, and what came of earlier ones."""

    _open: dict[GroupKey, tuple[QueueName, float, float, float]] = field(default_factory=dict)
    _kept: dict[QueueName, deque[Kept]] = field(default_factory=dict)
    noted: int = 0
    """Outcomes, since this process began."""

    def note(self, queue: QueueName, eta: Eta, *, asked: float) -> None:
        """A forecast was made; only the first of a gang counts, and none of a start at once."""
        if eta.outcome is not EtaOutcome.LATER or eta.p50 is None or eta.key in self._open:
            return
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[eta.key] = (queue, asked, eta.p50, eta.p90 or 0.0)

    def started(self, key: GroupKey, at: float) -> None:
        """The gang has started."""
        found = self._open.pop(key, None)
        if found is not None:
            self.noted += 1
            self.take([Kept(*found, started=at)])

    def gone(self, key: GroupKey) -> None:
        """There is no such gang any more: it never started, or has long since."""
        self._open.pop(key, None)

    def take(self, kept: Iterable[Kept]) -> None:
        """Outcomes, the oldest first."""
        for each in kept:
            of_queue = self._kept.pop(each.queue, None) or deque(maxlen=MOST_OF_QUEUE)
            while len(self._kept) >= MOST_QUEUES:
                del self._kept[next(iter(self._kept))]
            self._kept[each.queue] = of_queue
            of_queue.append(each)

    def all(self) -> list[Kept]:
        """All outcomes that are kept."""
        return [each for of_queue in self._kept.values() for each in of_queue]

    def errors(self, queue: QueueName) -> Errors | None:
        """How good the last forecasts of the queue were; None: there are none."""
        kept = self._kept.get(queue)
        if not kept:
            return None
        off = [abs(each.started - each.p50) for each in kept]
        waits = (max(each.started - each.asked, 1.0) for each in kept)
        return Errors(
            len(kept),
            median(off),
            median(error / wait for error, wait in zip(off, waits, strict=True)),
            sum(each.started <= each.p90 for each in kept) / len(kept),
        )
