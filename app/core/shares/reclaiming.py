"""Queues take pods from one another by what they say that they deserve.

A queue is *within* its share when what it holds, with what it asks for, is no more than it deserves
of the resources that it deserves any of; it is *beyond* its share when it holds more. Where queues
form a tree, the lines from two queues up to the root part somewhere. A queue takes from another one
when, on its own line, all queues below the parting are within their shares, and on the other line
all are beyond theirs. So no pod is taken from a branch that has its due, for whatever its leaves
hold.

With a level ``L`` above 0 the first ``L`` ancestors of a queue may take for it: then only the
queues from one of these up to the parting must be within. A queue that deserves nothing of what a
pod requests has no claim to that pod.

How the taker stands is looked at once: what is evicted for it does not make its line a better one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.ledger import Ledger
from app.core.settling import Settling
from app.core.shares import limits
from app.core.victim_rules import Candidate, Preemptor
from app.model.ids import ROOT_QUEUE, QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import PODS_COLUMN, Vector

Line = tuple[QueueName, ...]
"""A queue and its ancestors, the nearest first, without the root."""


@dataclass(slots=True, eq=False)
class Reclaiming:
    """What queues take from one another on one ledger.

    ``deserved`` has 0 where a queue deserves nothing; ``held`` tells what a queue holds with its
    descendants, ``line`` the queues from it up to the root. ``level`` as above. What pods hold that
    settle (``settling``) does not put a queue beyond its share.
    """

    ledger: Ledger
    deserved: Mapping[QueueName, Vector]
    held: Callable[[QueueName], Vector]
    line: Callable[[QueueName], Sequence[QueueName]]
    settling: Settling
    level: int = 0
    _taker: tuple[Preemptor, frozenset[QueueName]] | None = field(default=None, init=False)

    def objection(self, preemptor: Preemptor) -> Refusal | None:
        """Why no ancestor that may take for the queue is within its share; None: one is."""
        line = self._line(preemptor.gang.queue)
        within = self._within(preemptor)
        if any(self._may_take_for(preemptor, name) and name in within for name in self._own(line)):
            return None
        return self._beyond(line[0] if line else preemptor.gang.queue, preemptor.asked)

    def may_go(self, preemptor: Preemptor, candidate: Candidate) -> bool | None:
        """Whether the pod's queue gives it to that of ``preemptor``; None: it is the same one."""
        if candidate.gang.queue == preemptor.gang.queue:
            return None
        asked, request = preemptor.asked.tolist(), candidate.request.tolist()
        both = [
            at
            for at, (more, less) in enumerate(zip(asked, request, strict=True))
            if more > 0 and less > 0 and at != PODS_COLUMN
        ]
        if not both or self._needs_guarantee(candidate):
            return False
        taking, giving = _parted(self._line(preemptor.gang.queue), self._line(candidate.gang.queue))
        if not self._takes(preemptor, taking):
            return False
        return all(self._is_beyond(preemptor, name, both, request) for name in giving)

    def common(self, left: QueueName, right: QueueName) -> int:
        """How many queues, the root left out, are on both lines."""
        return len(set(self._line(left)) & set(self._line(right)))

    def _takes(self, preemptor: Preemptor, taking: Line) -> bool:
        """Whether the ``taking`` line, from some queue that may take on, is within its shares."""
        within = self._within(preemptor)
        may_take = False
        for at, name in reversed(tuple(enumerate(taking))):
            if name not in within:
                return may_take
            if at <= self.level and self._may_take_for(preemptor, name):
                may_take = True
        return may_take

    def _may_take_for(self, preemptor: Preemptor, name: QueueName) -> bool:
        """Whether the queue deserves some of what each of the pods asks for."""
        deserved = self.deserved[name].tolist()
        requests = {tuple(task.request.tolist()) for task in preemptor.tasks}
        return all(_has_claim(deserved, request) for request in requests)

    def _within(self, preemptor: Preemptor) -> frozenset[QueueName]:
        """The queues of its line that are within their shares, as the ledger stood at first."""
        if self._taker is None or self._taker[0] is not preemptor:
            line = self._line(preemptor.gang.queue)
            within = frozenset(name for name in line if not self._short(name, preemptor.asked))
            self._taker = preemptor, within
        return self._taker[1]

    def _short(self, name: QueueName, asked: Vector) -> tuple[int, ...]:
        """Where the queue would hold more than it deserves."""
        deserved = self.deserved[name]
        short = limits.exceeding(asked, held=self.held(name), limit=deserved)
        return tuple(at for at in short if deserved[at] > 0)

    def _is_beyond(
        self, preemptor: Preemptor, name: QueueName, both: Sequence[int], request: Sequence[int]
    ) -> bool:
        """Whether the queue gives of what ``both`` gangs ask for."""
        deserved = self.deserved[name].tolist()
        if not _has_claim(deserved, request):
            return True
        held = (self.held(name) - self.settling.held(preemptor.gang, name)).tolist()
        return any(held[at] > deserved[at] > 0 for at in both)

    def _needs_guarantee(self, candidate: Candidate) -> bool:
        """Whether the pod's queue would hold less than is guaranteed to it."""
        name, snapshot = candidate.gang.queue, self.ledger.snapshot
        return limits.needs_guarantee(
            snapshot.queues.get(name), candidate.request, held=self.held(name), axis=snapshot.axis
        )

    def _own(self, line: Line) -> Line:
        return line[: self.level + 1]

    def _line(self, queue: QueueName) -> Line:
        return tuple(name for name in self.line(queue) if name != ROOT_QUEUE)

    def _beyond(self, name: QueueName, asked: Vector) -> Refusal:
        axis, deserved = self.ledger.snapshot.axis, self.deserved[name]
        held = self.held(name)
        short = self._short(name, asked) or limits.exceeding(asked, held=held, limit=deserved)
        lack = limits.shortfalls(short, axis=axis, asked=asked, held=held, limit=deserved)
        return limits.no_room(name, lack, cause=Cause.QUEUE_OVERUSED)


def _has_claim(deserved: Sequence[int], request: Sequence[int]) -> bool:
    """Whether some of ``request`` is deserved."""
    return any(
        more > 0 and due > 0 and at != PODS_COLUMN
        for at, (more, due) in enumerate(zip(request, deserved, strict=True))
    )


def _parted(left: Line, right: Line) -> tuple[Line, Line]:
    """Both lines below the queue where they part."""
    common = set(left) & set(right)
    return (
        tuple(name for name in left if name not in common),
        tuple(name for name in right if name not in common),
    )
