"""Whether decisions of an older plan still fit, as the cluster stands now.

While a cycle plans on its snapshot, limits may be lowered and single gangs be planned on demand.
What both decided may be too much for a queue or for one above it. So the cycle's decisions are
taken up one by one on a ledger of the newer snapshot, by the same rules; nodes are not chosen
again, and whether they have room is for whoever publishes to see.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from app.core.actions.enqueue import ballot, comes_in_anyway, shut_out
from app.core.ledger import Ledger
from app.core.policy import Opened, Policies
from app.core.tiers import open_policies
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.plan import GangPlacement, Plan
from app.model.snapshot import Snapshot


def confirmed(plan: Plan, policies: Policies, *, snapshot: Snapshot, now: float) -> Plan:
    """``plan`` with those admitted and placed that their queues may hold together by now.

    The earlier go first; all of a gang's placements or none. Raises nothing: gangs, queues and
    nodes that are gone drop out.
    """
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now)
    refuses = ballot if "enqueue" in policies.conf.actions else _closes
    admitted = frozenset(_admitted(ledger, opened, plan.admitted, refuses=refuses))
    placed = (each for each in plan.placed if _is_in(each.gang, snapshot, admitted))
    return replace(
        plan,
        admitted=tuple(key for key in plan.admitted if key in admitted),
        placed=tuple(_placed(ledger, opened, placed)),
    )


Refuses = Callable[[Gang, Opened, Snapshot], object]


def _closes(gang: Gang, _opened: Opened, snapshot: Snapshot) -> object:
    """Where nobody is asked to let groups in, only a closed queue keeps them out."""
    return shut_out(gang, snapshot)


def _admitted(
    ledger: Ledger, opened: Opened, keys: Iterable[GroupKey], *, refuses: Refuses
) -> Iterator[GroupKey]:
    snapshot = ledger.snapshot
    for key in keys:
        gang = snapshot.gangs.get(key)
        if gang is None or gang.queue not in snapshot.queues:
            continue
        if not gang.inqueue:  # else it was let in on demand, and its claim counts already
            if not comes_in_anyway(gang, snapshot) and refuses(gang, opened, snapshot):
                continue
            ledger.admit(gang)
            opened.enqueued(gang)
        yield key


def _is_in(key: GroupKey, snapshot: Snapshot, admitted: frozenset[GroupKey]) -> bool:
    gang = snapshot.gangs.get(key)
    return gang is not None and (gang.inqueue or key in admitted)


def _placed(
    ledger: Ledger, opened: Opened, placed: Iterable[GangPlacement]
) -> Iterator[GangPlacement]:
    for decided in placed:
        gang = ledger.snapshot.gangs[decided.gang]
        if _place(ledger, opened, gang, decided) or _lends(ledger, opened, gang, decided):
            yield decided


def _lends(ledger: Ledger, opened: Opened, gang: Gang, decided: GangPlacement) -> bool:
    """Whether it fits with what its queue may hold beyond its share, as when it was decided."""
    take_back = opened.lend(gang) if decided.whole else None
    if take_back is None:
        return False
    placed = _place(ledger, opened, gang, decided)
    if not placed:
        take_back()
    return placed


def _place(ledger: Ledger, opened: Opened, gang: Gang, decided: GangPlacement) -> bool:
    with ledger.trial() as trial:
        placed = _allot(ledger, opened, gang, decided)
        if placed:
            trial.keep()
    return placed


def _allot(ledger: Ledger, opened: Opened, gang: Gang, decided: GangPlacement) -> bool:
    rows, width = ledger.snapshot.table.index, len(ledger.snapshot.axis)
    for placement in decided.placements:
        row, task = rows.get(placement.node), placement.task
        if row is None or len(task.request) != width:
            return False
        if opened.allocatable(gang.queue, task) is not None:
            return False
        ledger.place(gang, task, node=row)
    return True
