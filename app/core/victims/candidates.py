"""Which pods an action may look at for a preemptor, and why it passes over others.

A gang preempts pods of its own queue: those of other gangs, or, inside itself, members of lower
priority. It reclaims pods of other queues that give pods away (``reclaimable``). What is protected
whatever the conf says (:class:`~app.model.running.Protection`) is counted for the reason only.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cmp_to_key

import numpy as np
from numpy.typing import NDArray

from app.core.combining import trailing_number
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.victim_rules import Preemptor
from app.core.victims.units import surplus_of
from app.model.ids import GroupKey, PodUid, QueueName
from app.model.reason import Spared
from app.model.resources import Mask, Rows
from app.model.running import Protection, Running
from app.model.snapshot import Snapshot

PROTECTED: Mapping[Protection, str] = {
    Protection.FOREIGN: "of other schedulers",
    Protection.SYSTEM: "that the cluster itself needs",
    Protection.STATIC: "static",
    Protection.DAEMON_SET: "of DaemonSets",
    Protection.UNBOUND: "not bound yet",
    Protection.ENDING: "about to end",
    Protection.UNPREEMPTABLE: "not preemptable",
}
"""What is said of pods after their number."""
NOT_RECLAIMABLE = "of queues that are not reclaimable"
GONE = "evicted already"
STUCK = "that do not go"
OF_MINIMUM = "of the minimum of their gang (allowWholeBundle is false)"


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """``rows`` are positions in ``snapshot.running``, shape ``(C,)``; ``count`` has all looked at.

    ``spared`` says why the others may not go.
    """

    rows: Rows
    count: int
    spared: tuple[Spared, ...]


def candidates(ledger: Ledger, preemptor: Preemptor, *, inside: bool = False) -> Candidates:
    """The pods that may go for ``preemptor`` as far as no plugin is asked.

    ``inside``: members of its own gang. For an action that reclaims they are of other queues. Pods
    of other schedulers are looked at as well, and never among the ``rows``.
    """
    looked_at = _scope(ledger.snapshot, preemptor, inside=inside)
    return among(ledger, looked_at, reclaims=preemptor.action.reclaims)


def among(ledger: Ledger, looked_at: Mask, *, reclaims: bool = False) -> Candidates:
    """Of the pods ``looked_at``, shape ``(P,)``, those that may go as far as no plugin is asked.

    ``reclaims``: another queue takes their room.
    """
    snapshot = ledger.snapshot
    running = snapshot.running
    left = looked_at.copy()
    spared: list[Spared] = []

    def spare(mask: Mask, reason: str) -> None:
        count = int((mask & left).sum())
        if count:
            spared.append(Spared(reason, count))
            left[mask] = False

    for protection, reason in PROTECTED.items():
        spare(running.protected == protection, reason)
    spare(_unpreemptable_by_group(snapshot), PROTECTED[Protection.UNPREEMPTABLE])
    if reclaims:
        spare(_of_unreclaimable_queues(snapshot), NOT_RECLAIMABLE)
    spare(_among(running, ledger.evicted), GONE)
    spare(_among(running, snapshot.stuck), STUCK)
    rows: Rows = np.flatnonzero(left)
    return Candidates(rows, int(looked_at.sum()), _summed(spared))


def beyond_minimum(found: Candidates, ledger: Ledger, preemptor: Preemptor) -> Candidates:
    """Of the pods ``found`` those that their gangs have beyond their minimum."""
    snapshot = ledger.snapshot
    rows = surplus_of(
        found.rows,
        snapshot.running,
        snapshot.gangs,
        account_of=ledger.gang,
        coming_to=preemptor.coming_to,
    )
    kept = len(found.rows) - len(rows)
    spared = (*found.spared, Spared(OF_MINIMUM, kept)) if kept else found.spared
    return Candidates(rows, found.count, spared)


def in_victim_order(opened: Opened, snapshot: Snapshot, preemptor: Preemptor, rows: Rows) -> Rows:
    """The positions ``rows``, shape ``(C,)``, those that go first in front.

    That is the victim ordering of volcano.md §3.3. Queues are told apart by the plugins, else the
    one that holds most of its share comes first; gangs and members stand in the reverse of their
    order. Of members whose plugins' numbers are the same, the one that saved its work last comes
    first.
    """
    running = snapshot.running
    keys = [running.gangs[at] for at in rows.tolist()]
    gangs = [snapshot.gangs[key] for key in dict.fromkeys(keys)]
    of_queues = _ranks_of_queues(opened, preemptor, {gang.queue for gang in gangs})
    gangs.sort(key=opened.gang_key, reverse=True)
    of_gangs = {gang.key: rank for rank, gang in enumerate(gangs)}
    ranks = np.array([of_queues[gang.queue] for gang in gangs], dtype=np.intp)
    of = np.array([of_gangs[key] for key in keys], dtype=np.intp)
    columns = [*_latest_first(running, rows, of), -running.saved[rows]]
    columns += [order(running, rows) for order in reversed(opened.victim_order)]
    ordered: Rows = rows[np.lexsort((*columns, of, ranks[of]))]
    return ordered


def _latest_first(running: Running, rows: Rows, of: Rows) -> list[NDArray[np.float64]]:
    """Columns of the reverse of the order in which members get their places, the last one first.

    They are their numbers, when they were created, and their names; ``of`` tells gangs apart, shape
    ``(C,)``. Names are looked at where nothing else differs.
    """
    numbers = [trailing_number(running.pods[at].name) for at in rows.tolist()]
    number, created = np.array(numbers, dtype=np.float64), running.created[rows]
    order = np.lexsort((created, number, of))
    same = np.zeros(len(rows), dtype=np.bool_)
    alike = np.logical_and.reduce([np.diff(each[order]) == 0 for each in (of, number, created)])
    same[1:] |= alike
    same[:-1] |= alike
    names = np.zeros(len(rows))
    tied = order[same].tolist()
    for rank, at in enumerate(sorted(tied, key=lambda at: running.pods[rows[at]].name)):
        names[at] = rank
    return [-names, -created, -number]


def _ranks_of_queues(
    opened: Opened, preemptor: Preemptor, queues: set[QueueName]
) -> dict[QueueName, int]:
    def compare(left: QueueName, right: QueueName) -> int:
        said = opened.victim_queue_order(preemptor, left, right)
        return said or -opened.queue_order(left, right)

    in_order = sorted(sorted(queues), key=cmp_to_key(compare))
    return {name: rank for rank, name in enumerate(in_order)}


def _scope(snapshot: Snapshot, preemptor: Preemptor, *, inside: bool) -> Mask:
    running, gang = snapshot.running, preemptor.gang
    own = np.array([key == gang.key for key in _gangs(running)], dtype=np.bool_)
    of_own_gang: Mask = np.append(own, False)[running.kinds.codes]
    if inside:
        return of_own_gang
    code = running.queues.values.get(gang.queue)
    of_own_queue = np.zeros(len(running), dtype=np.bool_)
    if code is not None:
        of_own_queue = running.queues.codes == code
    foreign = running.protected == Protection.FOREIGN
    scope: Mask = foreign | (of_own_queue ^ preemptor.action.reclaims)
    scope &= ~of_own_gang
    return scope


def _of_unreclaimable_queues(snapshot: Snapshot) -> Mask:
    queues = snapshot.running.queues
    keeps = [
        (queue := snapshot.queues.get(name)) is not None and not queue.reclaimable
        for name in queues.values
    ]
    mask: Mask = np.array([*keeps, False], dtype=np.bool_)[queues.codes]
    return mask


def _unpreemptable_by_group(snapshot: Snapshot) -> Mask:
    """Members that say nothing themselves, of groups that say that they are not preemptable."""
    running, gangs = snapshot.running, snapshot.gangs
    flags = [key in gangs and gangs[key].preemptable is False for key in _gangs(running)]
    mask: Mask = np.array([*flags, False], dtype=np.bool_)[running.kinds.codes]
    for at in np.flatnonzero(mask).tolist():
        mask[at] = not running.pods[at].preemptable_in(False)
    return mask


def _gangs(running: Running) -> list[GroupKey]:
    """The gang of each kind, in the order of codes."""
    return [kind.gang for kind in running.kinds.values]


def _among(running: Running, uids: Collection[PodUid]) -> Mask:
    mask = np.zeros(len(running), dtype=np.bool_)
    mask[[running.index[uid] for uid in uids if uid in running.index]] = True
    return mask


def _summed(spared: list[Spared]) -> tuple[Spared, ...]:
    sums: dict[str, int] = {}
    for each in spared:
        sums[each.reason] = sums.get(each.reason, 0) + each.pods
    return tuple(Spared(reason, pods) for reason, pods in sums.items())
