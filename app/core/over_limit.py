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

A queue or a gang that a plugin fails at is left out: it keeps what is reserved, since what it may
hold is not known. So do all where a plugin cannot be opened.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from app.core.faults import MOST_FAULTS, LookingAt, PlanningFault, PluginFault
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.model.ids import QueueName
from app.model.plan import Revocable
from app.model.snapshot import Snapshot

ReservationsIn = Callable[[Collection[QueueName]], Iterable[Revocable]]
"""What can be taken back of the gangs in these queues; all of it counts in the snapshot."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenBack:
    """``over`` are queues that hold too much, or are below one that does; ``given_back`` goes.

    ``faults`` are of what was left out: queues, gangs, or everything.
    """

    over: frozenset[QueueName] = frozenset()
    given_back: tuple[Revocable, ...] = ()
    faults: tuple[PlanningFault | PluginFault, ...] = ()


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
    ``now`` is seconds since the epoch. Raises the error that is of no single queue or gang, and the
    last one of a plugin that fails at many.
    """
    faults: list[PlanningFault] = []
    while True:
        ledger = Ledger(snapshot)
        opened = open_policies(policies, ledger, now=now, explain=False)
        if opened.fault is not None:
            return GivenBack(faults=(opened.fault,))
        left_out = {fault.queue for fault in faults}
        try:
            over = frozenset(
                queue for queue in queues if queue not in left_out and _is_over(queue, opened)
            )
            ranked = _ranked(reservations_in(over), opened, snapshot, faults) if over else []
            for each in ranked:
                ledger.charge(snapshot.gangs[each.gang].queue, -each.request)
            goes = tuple(each for each in ranked if not _takes_up(each, ledger, opened))
        except PlanningFault as fault:
            faults.append(fault)
            if len(faults) > MOST_FAULTS:
                raise
        else:
            return GivenBack(over, goes, tuple(faults))


def _is_over(queue: QueueName, opened: Opened) -> bool:
    with LookingAt(queue=queue):
        return bool(opened.excess(queue).any())


def _ranked(
    reservations: Iterable[Revocable],
    opened: Opened,
    snapshot: Snapshot,
    faults: Collection[PlanningFault],
) -> list[Revocable]:
    """The earlier first, without those of gangs that a plugin failed at."""
    keyed = []
    for each in reservations:
        gang = snapshot.gangs[each.gang]
        if not any(fault.blames(gang) for fault in faults):
            with LookingAt(gang):
                keyed.append((each.since, opened.gang_key(gang), each))
    return [each for *_, each in sorted(keyed, key=lambda key: key[:2])]


def _takes_up(reserve: Revocable, ledger: Ledger, opened: Opened) -> bool:
    """Whether the queue may hold the reservation too; then it counts."""
    queue = ledger.snapshot.gangs[reserve.gang].queue
    ledger.charge(queue, reserve.request)
    with LookingAt(queue=queue):
        if not opened.excess(queue)[reserve.request > 0].any():
            return True
    ledger.charge(queue, -reserve.request)
    return False
