"""What is given back when a queue holds more than its limit.

A limit may be lowered after places were reserved, and pods come onto nodes by other means while
those places are not used yet. So the reservations that can be taken back are taken up one by one
again, the earlier first. A reservation goes if it does not fit what a queue, or one above it, may
hold by now. That is the latest of them, and none in vain: a reservation goes only if it has of what
there is too much of, and does not fit with those before it.

Limits are values that are set in queues. What a queue deserves, or the cluster has, shrinks all the
time when others come: what was reserved by that stays, as in Volcano what a session has allocated.
So it does when its queue closes, or keeps room for members that autoscalers see.

Which pods may be evicted is another question (:mod:`app.core.victims`): nothing given back here
runs, and the queue's own limit asks for it, not another pod. What of a gang goes together is said
by the :class:`Revocable` values, made where the gang's members are known.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.model.ids import QueueName
from app.model.plan import Revocable
from app.model.snapshot import Snapshot

ReservationsIn = Callable[[Collection[QueueName]], Iterable[Revocable]]
"""What can be taken back of the gangs in these queues; all of it counts in the snapshot."""


class GivenBack(NamedTuple):
    """``over`` are queues that hold too much, or are below one that does; ``given_back`` goes."""

    over: frozenset[QueueName]
    given_back: tuple[Revocable, ...] = ()


def give_back(
    snapshot: Snapshot,
    policies: Policies,
    *,
    queues: Iterable[QueueName],
    reservations_in: ReservationsIn,
    now: float,
) -> GivenBack:
    """Which of ``queues`` hold too much, and which reservations there have to go.

    Of equally old reservations those of the gang of lower rank go, and of one gang the later ones.
    ``now`` is seconds since the epoch.
    """
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now, explain=False)
    over = frozenset(queue for queue in queues if opened.excess(queue).any())
    if not over:
        return GivenBack(over)
    gangs = snapshot.gangs
    ranked = sorted(
        reservations_in(over), key=lambda each: (each.since, opened.gang_key(gangs[each.gang]))
    )
    for each in ranked:
        ledger.charge(gangs[each.gang].queue, -each.request)
    return GivenBack(over, tuple(each for each in ranked if not _takes_up(each, ledger, opened)))


def _takes_up(reserve: Revocable, ledger: Ledger, opened: Opened) -> bool:
    """Whether the queue may hold the reservation too; then it counts."""
    queue = ledger.snapshot.gangs[reserve.gang].queue
    ledger.charge(queue, reserve.request)
    if not opened.excess(queue)[reserve.request > 0].any():
        return True
    ledger.charge(queue, -reserve.request)
    return False
