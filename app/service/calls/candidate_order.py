"""Which of many nodes to ask the planner about: each question costs, and the event loop waits.

What a node's victims give back is compared first: when some were not enough, others that give no
more of anything are not either. And at most :data:`QUESTIONS` are asked about, fewer when many
others wait for places that they evicted for, as each question is about those too. The first go in
kube-scheduler's order; but what is short may be the quota of a queue, and those that it prefers
need not be of that queue, so the others are those that give back most to it.
"""

from collections.abc import Callable, Iterable, Mapping

from app.core.protection.victim import Victim
from app.model.amounts import Amounts
from app.model.ids import NodeName, QueueName

QUESTIONS = 8
LEAST = 2
_MANY = 64
"""From how many rivals on a question is about twice as dear."""

Freed = Mapping[tuple[str, str, str], int]
"""What victims give back: by the kind and the name of its holder, and resource."""

_CLUSTER, _QUEUE, _NAMESPACE = "cluster", "queue", "namespace"


def questions_with(rivals: int) -> int:
    """How many questions may be asked when each plans for so many others too."""
    return max(LEAST, QUESTIONS * _MANY // (_MANY + rivals))


def freed_by(victims: Iterable[Victim], *, namespace: str) -> Freed:
    """What the cluster, the queues and this namespace would have again."""
    freed: dict[tuple[str, str, str], int] = {}
    for victim in victims:
        holders = [(_CLUSTER, "")]
        if victim.namespace == namespace:
            holders.append((_NAMESPACE, namespace))
        if victim.there:
            holders += [(_QUEUE, ""), (_QUEUE, victim.queue)]
        for kind, name in holders:
            for resource, amount in victim.request:
                what = kind, name, resource
                freed[what] = freed.get(what, 0) + amount
    return freed


def first_accepted(
    freed: Mapping[NodeName, Freed],
    accepts: Callable[[NodeName], bool],
    *,
    queue: QueueName,
    asked: Amounts,
    questions: int = QUESTIONS,
) -> NodeName | None:
    """The first node that is accepted; ``freed`` is in the order to prefer."""
    search = _Search(freed, accepts)
    found = search.among(freed, limit=questions // 2)
    if found is None and search.cut_short:
        best = sorted(freed, key=lambda node: _lacks(freed[node], queue, asked))
        found = search.among(best, limit=questions)
    return found


class _Search:
    """Remembers what was not enough; ``cut_short``: it left some out that might have been."""

    def __init__(
        self, freed: Mapping[NodeName, Freed], accepts: Callable[[NodeName], bool]
    ) -> None:
        self._freed = freed
        self._accepts = accepts
        self._refused: list[Freed] = []
        self.cut_short = False

    def among(self, order: Iterable[NodeName], *, limit: int) -> NodeName | None:
        """The first in this order that is accepted, with so many refusals in all."""
        self.cut_short = False
        for node in order:
            freed = self._freed[node]
            if any(_no_more(freed, than) for than in self._refused):
                continue
            if len(self._refused) >= limit:
                self.cut_short = True
                return None
            if self._accepts(node):
                return node
            self._refused.append(freed)
        return None


def _lacks(freed: Freed, queue: QueueName, asked: Amounts) -> tuple[float, float]:
    """How little of what is asked for this queue has again, and all queues together."""
    mine, everything = (
        sum(min(freed.get((_QUEUE, name, resource), 0) / n, 1.0) for resource, n in asked if n)
        for name in (queue, "")
    )
    return -mine, -everything


def _no_more(freed: Freed, than: Freed) -> bool:
    return all(amount <= than.get(what, 0) for what, amount in freed.items())
