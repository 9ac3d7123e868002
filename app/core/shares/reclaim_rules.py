"""What the plugins that share the cluster by queues say of pods that other queues want.

A plugin tells which pods a queue gives, each by itself. Pods that go at once may together take the
queue below its guarantee, though none of them does: that is looked at here, for all such plugins.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from app.core.ledger import Ledger
from app.core.shares import limits
from app.core.victim_rules import Candidate, Evictable, EvictionRule, Preemptor, Together, Trait
from app.model.ids import QueueName
from app.model.resources import Vector

Held = Callable[[QueueName], Vector]
"""What a queue holds with its descendants, shape ``(R,)``."""

_SPARES = "of queues that hold no more than they deserve"
_LOOKS_AT = frozenset({Trait.QUEUE, Trait.REQUEST})


def reclaim_rules(
    plugin: str, gives: Evictable, *, ledger: Ledger, held: Held
) -> tuple[EvictionRule, EvictionRule]:
    """The rule of ``plugin`` for reclaiming, and the one for actions that evict for any reason.

    The second has no say where the action does not reclaim.
    """

    def evictable(preemptor: Preemptor, candidate: Candidate) -> bool | None:
        return gives(preemptor, candidate) if preemptor.action.reclaims else None

    reclaimable = EvictionRule(
        plugin, gives, _SPARES, _LOOKS_AT, binds=True, together=_keeps_guarantee(ledger, held)
    )
    return reclaimable, replace(reclaimable, allows=evictable)


def _keeps_guarantee(ledger: Ledger, held: Held) -> Together:
    """Whether the queue of pods of one gang keeps what is guaranteed to it when they go."""

    def keeps(preemptor: Preemptor, rows: Collection[int]) -> bool:
        snapshot, positions = ledger.snapshot, list(rows)
        name = snapshot.gangs[snapshot.running.gangs[positions[0]]].queue
        if name == preemptor.gang.queue:
            return True
        request = snapshot.running.requests[positions].sum(axis=0)
        queue = snapshot.queues.get(name)
        return not limits.needs_guarantee(queue, request, held=held(name), axis=snapshot.axis)

    return keeps
