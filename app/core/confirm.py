"""Whether decisions of an older plan fit the limits of queues, as the cluster stands now.

While a cycle plans on its snapshot, limits may be lowered and single gangs be planned on demand.
What both decided may be too much for a queue or for one above it. So the cycle's decisions are
taken up one by one on a ledger of the newer snapshot, by the same rules, those of plugins about
nodes among them; nodes are not chosen again, and whether they have room is for the publisher to
see.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from app.core.actions.enqueue import ballot, comes_in_anyway, shut_out
from app.core.faults import LookingAt
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import NodesNow, Policies
from app.core.tiers import open_policies
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, QueueName
from app.model.plan import GangPlacement, Plan
from app.model.snapshot import Snapshot


def confirmed(plan: Plan, policies: Policies, *, snapshot: Snapshot, now: float) -> Plan:
    """``plan`` with those admitted and placed that their queues may hold together by now.

    The earlier go first; all of a gang's placements or none. Gangs, queues and nodes that are gone
    drop out. Raises `PlanningFault` where a plugin fails at a gang.
    """
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now)
    refuses = ballot if "enqueue" in policies.conf.actions else _closes
    with_places = {each.gang for each in plan.placed if each.whole}
    ahead = (key for key in plan.admitted if key not in with_places)
    admitted = set(_admitted(ledger, opened, ahead, refuses=refuses))
    coming = with_places.intersection(plan.admitted)
    placed: list[GangPlacement] = []
    for each in plan.placed:
        gang = snapshot.gangs.get(each.gang)
        if gang is None or gang.queue not in snapshot.queues:
            continue
        comes = each.whole and each.gang in coming and not gang.inqueue
        if not (comes or gang.inqueue or each.gang in admitted):
            continue
        with LookingAt(gang):
            if comes and _is_kept_out(gang, opened, snapshot, votes=refuses is ballot):
                continue
            if not _place(ledger, opened, gang, each):
                continue
            if comes:
                ledger.admit(gang)
                ledger.commit(gang)
                opened.enqueued(gang)
        if each.gang in coming:
            admitted.add(each.gang)
        placed.append(each)
    return replace(
        plan,
        admitted=tuple(key for key in plan.admitted if key in admitted),
        placed=tuple(placed),
    )


def queue_waits_for(
    decided: GangPlacement, policies: Policies, *, snapshot: Snapshot, now: float
) -> QueueName | None:
    """The queue of the gang, if only its terminating pods keep it from holding these places.

    Those of queues above it, and below these, are meant too. None also if it may hold the places
    now, or not even then.
    """
    gang = snapshot.gangs.get(decided.gang)
    if gang is None or gang.queue not in snapshot.queues:
        return None
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now, explain=False)
    if _place(ledger, opened, gang, decided):
        return None
    ledger.ahead = True
    return gang.queue if _place(ledger, opened, gang, decided) else None


def _is_kept_out(gang: Gang, opened: Opened, snapshot: Snapshot, *, votes: bool) -> bool:
    """Whether a group that comes with its places may not be admitted with them."""
    if not votes:
        return shut_out(gang, snapshot) is not None
    return not comes_in_anyway(gang, snapshot) and opened.admissible(gang) is not None


Refuses = Callable[[Gang, Opened, Snapshot], object]


def _closes(gang: Gang, _opened: Opened, snapshot: Snapshot) -> object:
    """Where the actions admit no groups, only a closed queue keeps them out."""
    return shut_out(gang, snapshot)


def _admitted(
    ledger: Ledger, opened: Opened, keys: Iterable[GroupKey], *, refuses: Refuses
) -> Iterator[GroupKey]:
    snapshot = ledger.snapshot
    for key in keys:
        gang = snapshot.gangs.get(key)
        if gang is None or gang.queue not in snapshot.queues:
            continue
        if not gang.inqueue:  # else it was admitted on demand, and its claim counts already
            with LookingAt(gang):
                if not comes_in_anyway(gang, snapshot) and refuses(gang, opened, snapshot):
                    continue
                ledger.admit(gang)
                opened.enqueued(gang)
        yield key


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
        limits = opened.borrowable if opened.borrows else opened.allocatable
        if limits(gang.queue, task) is not None:
            return False
        node = NodesNow(np.array([row], dtype=np.intp), ledger.idle[[row]].T)
        if not _obeys(opened, gang, task, node):
            return False
        ledger.place(gang, task, node=row)
    return True


def _obeys(opened: Opened, gang: Gang, task: Task, node: NodesNow) -> bool:
    """Whether the rules of plugins let ``task`` have that one node still."""
    return all(
        bool(rule.allows(gang, task, node)[0])
        for rule in opened.node_rules
        if rule.key(gang, task) is not None
    )
