"""Units of victims: pods that go together or not at all, and what a set of units costs.

A *unit* is a pod beyond the minimum of its gang, a single pod, or a whole gang. A gang that has
more than its minimum gives units of both sorts: any ``spare`` of its pods, or all of them. The last
pod of a gang that has several ends the gang as well, though its minimum be one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.accounts import GangAccount
from app.core.protection.gang_minimum import spares
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.parts import Part
from app.model.resources import Rows, Vector
from app.model.running import Running

NO_PRIORITY = -(1 << 31)
"""The priority of no victim at all; no pod has a lower one."""
_LONGEST_S = 1e8
_USUAL_GRACE_S = 30.0
"""What Kubernetes gives a pod that says nothing."""
_MILLIONTHS = 1e6


class Unit(NamedTuple):
    """``pods`` are positions in ``snapshot.running``, in ascending order.

    ``whole``: they are all members of ``gang``, which is of more than one and ends by their loss.
    ``spare``: so many units of the gang that are not ``whole`` may go together.
    ``priority`` is the highest of a pod and its group. ``lost`` is the work that is lost, in
    millionths of the cluster times seconds (:func:`lost_work`).
    """

    pods: tuple[int, ...]
    gang: GroupKey
    whole: bool
    spare: int
    priority: int
    lost: int

    def kind(self, *, single: bool) -> str:
        """``gang``, ``single`` (its gang is but one pod) or ``surplus``."""
        if self.whole:
            return "gang"
        return "single" if single else "surplus"


class SetCost(NamedTuple):
    """The cost of evicting a set of units: what stands first counts first."""

    gangs: int
    priority: int
    lost: int
    pods: int


def is_single(gang: Gang, *, size: int) -> bool:
    """Whether ``gang``, of whose pods ``size`` run, is but one pod."""
    return gang.is_of_one and size <= 1


def pods_of(units: Iterable[Unit]) -> list[int]:
    """The positions of all pods of ``units``, unit by unit."""
    return [at for unit in units for at in unit.pods]


def cost_of(units: Iterable[Unit]) -> SetCost:
    """The cost of ``units``, none of which has a pod of another one."""
    gangs, priority, lost, pods = 0, NO_PRIORITY, 0, 0
    for unit in units:
        gangs += unit.whole
        priority = max(priority, unit.priority)
        lost += unit.lost
        pods += len(unit.pods)
    return SetCost(gangs, priority, lost, pods)


def work_since(running: Running, *, now: float) -> NDArray[np.float64]:
    """Since when each running pod's work is lost if it goes, shape ``(P,)``, as seconds.

    That is when it was saved; a pod that has not started has none to lose. A pod that may take long
    to end counts for so much older, as its room comes late.
    """
    since = np.where(running.saved > 0, running.saved, now)
    older: NDArray[np.float64] = since - np.maximum(running.grace - _USUAL_GRACE_S, 0)
    return older


def lost_work(
    running: Running, *, total: Vector, saved: NDArray[np.float64], now: float
) -> NDArray[np.int64]:
    """What is lost of each running pod's work, shape ``(P,)``.

    The dominant share of its request in the cluster's ``total`` times the seconds since its work
    was ``saved`` (:func:`work_since`), in millionths.
    """
    shares = (running.requests / np.maximum(total, 1)).max(axis=1, initial=0.0)
    seconds = np.clip(now - saved, 0.0, _LONGEST_S)
    lost: NDArray[np.int64] = np.rint(shares * seconds * _MILLIONTHS).astype(np.int64)
    return lost


def _none_come(_key: GroupKey) -> Sequence[Part]:
    return ()


def units_of(
    rows: Rows,
    running: Running,
    gangs: Mapping[GroupKey, Gang],
    *,
    account_of: Callable[[Gang], GangAccount],
    lost: NDArray[np.int64],
    coming_to: Callable[[GroupKey], Sequence[Part]] = _none_come,
) -> tuple[Unit, ...]:
    """The units that the pods at ``rows`` make, in their order: those that go first in front.

    ``rows`` are positions of the pods that may go, ``lost`` as of :func:`lost_work`, ``account_of``
    what ``gangs`` have now, ``coming_to`` what members count for that come to a gang: then others
    of it may go in their stead, and it does not end. Of a gang that
    :attr:`~app.model.gang.Gang.ends_whole`, or that has no more than its minimum, all pods go
    together; not when one of them is not among ``rows``, or a member got a place in this cycle and
    would be left alone. A whole gang stands where its last pod does.
    """
    work: list[int] = lost.tolist()
    priorities: list[int] = running.priorities.tolist()
    of_gang: dict[GroupKey, list[int]] = defaultdict(list)
    ordered: list[int] = rows.tolist()
    for at in ordered:
        of_gang[running.gangs[at]].append(at)
    sizes = Counter(compress(running.gangs, (~running.releasing).tolist()))
    single: dict[int, Unit] = {}
    whole: dict[int, Unit] = {}
    for key, members in of_gang.items():
        gang = gangs[key]
        base = gang.priority
        alone = is_single(gang, size=sizes[key])
        come, spare = coming_to(key), 1
        singles: Sequence[int] = members
        if not alone:
            singles, spare = _beyond_minimum(
                gang, members, running, account=account_of(gang), coming=come
            )
        for at in singles:
            priority = max(priorities[at], base)
            single[at] = Unit((at,), key, False, spare, priority, work[at])
        stays = bool(come) or _has_grown(gang, account_of(gang))
        if not (alone or stays) and len(members) == sizes[key]:
            whole[members[-1]] = Unit(
                pods=tuple(sorted(members)),
                gang=key,
                whole=True,
                spare=spare,
                priority=max(base, *(priorities[at] for at in members)),
                lost=sum(work[at] for at in members),
            )
    found = ((single.get(at), whole.get(at)) for at in ordered)
    return tuple(unit for both in found for unit in both if unit is not None)


def surplus_of(
    rows: Rows,
    running: Running,
    gangs: Mapping[GroupKey, Gang],
    *,
    account_of: Callable[[Gang], GangAccount],
    coming_to: Callable[[GroupKey], Sequence[Part]],
) -> Rows:
    """Of the pods at ``rows`` those that may go while their gang keeps its minimum; see above.

    A single pod is the minimum of its gang.
    """
    sizes = Counter(compress(running.gangs, (~running.releasing).tolist()))
    of_gang: dict[GroupKey, list[int]] = defaultdict(list)
    for at in rows.tolist():
        of_gang[running.gangs[at]].append(at)
    found: list[int] = []
    for key, members in of_gang.items():
        gang = gangs[key]
        if not is_single(gang, size=sizes[key]):
            account, coming = account_of(gang), coming_to(key)
            found += _beyond_minimum(gang, members, running, account=account, coming=coming)[0]
    kept: Rows = rows[np.isin(rows, found)]
    return kept


def _has_grown(gang: Gang, account: GangAccount) -> bool:
    """Whether members got places in this cycle, which are not among the running ones."""
    lost = 0 if account.losses is None else account.losses.ready
    return account.ready + lost > gang.counts.ready


def _beyond_minimum(
    gang: Gang,
    members: Sequence[int],
    running: Running,
    *,
    account: GangAccount,
    coming: Sequence[Part],
) -> tuple[Sequence[int], int]:
    """The members that may go by themselves, and how many of them at most."""
    if gang.ends_whole:
        return (), 0
    spare = account.existing(gang)[0] + len(coming) - gang.min_member
    if spare <= 0:
        return (), 0
    parts = {running.parts[at] for at in members}
    free = {part for part in parts if spares(gang, account, (part,), coming=coming)}
    return [at for at in members if running.parts[at] in free], spare
