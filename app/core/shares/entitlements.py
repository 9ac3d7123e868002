"""What each queue deserves of the cluster (:mod:`app.core.shares.water_filling`).

A queue asks for what its groups hold, for their waiting members, and for members that do not exist
yet, of groups that wait for admission as well (:func:`~app.core.ledger.unadmitted_request`): those
get their places first and are created for them, so a queue that had to wait for its pods to exist
would never deserve any, and queues whose groups are admitted first would take the others' shares.

Unlike in Volcano, a queue deserves at least what makes its gangs that are bound in part whole: they
were placed within what it deserved, and a crash must not leave them in part because others have
come since.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.core.gangs.need import Need
from app.core.gangs.slots import request_of
from app.core.ledger import Ledger
from app.core.shares import limits, water_filling
from app.core.shares.shares import Share, share_of
from app.core.shares.water_filling import Shares
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Matrix, Vector
from app.model.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Entitlement:
    """What a queue asks for and deserves, in whole units; ``exact`` is the latter unrounded."""

    request: Vector
    deserved: Vector
    exact: Shares

    @cached_property
    def share(self) -> Share:
        """How much of what it deserves a queue holds; few queues are ever compared."""
        return share_of(self.exact)


def entitlements(ledger: Ledger, real: Mapping[QueueName, Vector]) -> dict[QueueName, Entitlement]:
    """The entitlements of all queues that have groups, admissions of the cycle included."""
    snapshot = ledger.snapshot
    names = sorted(name for name, account in ledger.queues().items() if account.groups)
    if not names:
        return {}
    unseen = _unseen(ledger)
    request = np.array([ledger.queue(name).request + unseen.get(name, 0) for name in names])
    ceiling = np.array([real[name] for name in names])
    shares = water_filling.fill(
        snapshot.total,
        np.array([snapshot.queues[name].weight for name in names], dtype=np.int64),
        request=request,
        ceiling=ceiling,
        floor=_guarantees(snapshot, names),
    )
    deserved = np.minimum(np.maximum(water_filling.whole(shares), _owed(ledger, names)), ceiling)
    return {
        name: Entitlement(request=request[row], deserved=deserved[row], exact=shares[row])
        for row, name in enumerate(names)
    }


def _guarantees(snapshot: Snapshot, names: Sequence[QueueName]) -> Matrix:
    floor = np.zeros((len(names), len(snapshot.axis)), dtype=np.int64)
    for row, name in enumerate(names):
        guarantee = snapshot.queues[name].guarantee
        if guarantee:
            floor[row] = limits.on_axis(guarantee, snapshot.axis)
    return floor


def _owed(ledger: Ledger, names: Sequence[QueueName]) -> Matrix:
    """What queues with gangs bound in part hold, and what those lack of their minimums."""
    axis = ledger.snapshot.axis
    owed = np.zeros((len(names), len(axis)), dtype=np.int64)
    torn: defaultdict[QueueName, list[Gang]] = defaultdict(list)
    for gang in ledger.snapshot.torn:
        torn[gang.queue].append(gang)
    for row, name in enumerate(names):
        if name in torn:
            rests = limits.total((rest_of(gang.as_it_was, ledger) for gang in torn[name]), axis)
            owed[row] = ledger.queue(name).allocated + rests
    return owed


def rest_of(gang: Gang, ledger: Ledger) -> Vector:
    """What the members that ``gang`` lacks ask for at most, those that do not exist included."""
    rest = request_of(gang, ledger.snapshot)
    lacking = Need.of(gang, ledger.gang(gang)).members
    if gang.waiting and lacking > 0:
        requests = np.sort([task.request for task in gang.waiting], axis=0)
        rest = rest + requests[-lacking:].sum(axis=0)
    return rest


def _unseen(ledger: Ledger) -> dict[QueueName, Vector]:
    """What members that do not exist yet will ask for, by queue."""
    found: dict[QueueName, Vector] = {}
    for gang in ledger.snapshot.awaited:
        # No queue deserves more than there is, whatever its groups say that they need.
        unseen = np.minimum(_unseen_of(gang, ledger.snapshot), ledger.snapshot.total)
        at = found.get(gang.queue)
        found[gang.queue] = unseen if at is None else at + unseen
    return found


def _unseen_of(gang: Gang, snapshot: Snapshot) -> Vector:
    """What members of ``gang`` that do not exist yet will ask for.

    Finished members hold nothing any more: what ``minResources`` leave after those that do would
    count them once again.
    """
    if gang.min_request is None or gang.counts.completed:
        return request_of(gang, snapshot)
    unseen: Vector = np.maximum(gang.min_request - gang.request, 0)
    return np.maximum(unseen, request_of(gang, snapshot)) if gang.role_shapes else unseen
