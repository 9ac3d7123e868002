"""resourcequota: a group is admitted only if its claim fits the ResourceQuotas of its namespace.

A quota counts pods that exist. Unlike in Volcano, a group is not asked again for those of its own,
or an operator's gang would need room for twice its size, and members that do not exist yet keep
their part once their group is admitted, or groups that are admitted one after the other would share
it. A quota's status comes behind the pods that it counts: no less is taken than pods of ours ask
for. Quotas with scopes are not looked at.

Only quotas count limits, so vectors here are on a longer axis: that of the snapshot and the lines
of limits (``limits.cpu``). Of these a group tells only what its minimum takes together, and every
member is taken for an equal part of that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, Session, Vote
from app.core.shares import limits
from app.kit.quantities import amount_text
from app.model.amounts import LIMITS, REQUESTS, amounts
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import ResourceAxis, Vector
from app.model.snapshot import Snapshot
from app.model.workload import Quota

_COUNT = "count/"


@dataclass(frozen=True, slots=True)
class Limit:
    """One line of a quota: ``resource`` is its name there, ``position`` that on the axis."""

    resource: str
    position: int
    hard: int
    used: int


class Over(NamedTuple):
    """A group would exceed ``line`` of a quota: it asks for ``asked``, and ``used`` is taken."""

    line: Limit
    asked: int
    used: int

    @property
    def more(self) -> int:
        """By how much the line is exceeded."""
        return self.asked + self.used - self.line.hard


@dataclass(slots=True, eq=False)
class Taken:
    """What groups take of a namespace, both of shape ``(len(axis),)``.

    ``reserved``: by members of groups that were admitted, before they are created.
    """

    by_pods: Vector
    reserved: Vector


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    snapshot = session.ledger.snapshot
    axis = snapshot.axis.covering(_lines_of_limits(snapshot.quotas))
    by_namespace = _quota_limits(snapshot.quotas, axis)

    @cache
    def taken() -> Mapping[str, Taken]:
        return _taken(snapshot, by_namespace, axis)

    def enqueueable(gang: Gang) -> Ballot:
        asked = _uncreated(gang, axis) if gang.namespace in by_namespace else None
        if asked is None:
            return PERMIT
        of_namespace = taken()[gang.namespace]
        found = (_over(quota, asked, of_namespace) for quota in by_namespace[gang.namespace])
        refusing = [over for over in found if over]
        if refusing:
            return Ballot(Vote.REJECT, _refusal(_firmest(refusing), gang))
        return PERMIT

    def enqueued(gang: Gang) -> None:
        asked = _uncreated(gang, axis) if gang.namespace in by_namespace else None
        if asked is not None:
            taken()[gang.namespace].reserved += asked

    return Hooks(enqueueable=enqueueable, enqueued=enqueued)


def _taken(snapshot: Snapshot, namespaces: Collection[str], axis: ResourceAxis) -> dict[str, Taken]:
    """What is taken of these namespaces before the cycle admits any group."""
    gangs: defaultdict[str, list[Gang]] = defaultdict(list)
    for gang in snapshot.gangs.values():
        if gang.namespace in namespaces:
            gangs[gang.namespace].append(gang)
    return {name: _taken_by(gangs[name], axis) for name in namespaces}


def _taken_by(gangs: Sequence[Gang], axis: ResourceAxis) -> Taken:
    by_pods = limits.total((_created(gang, axis) for gang in gangs), axis)
    rests = [_uncreated(gang, axis) for gang in gangs if gang.keeps_claim]
    reserved = limits.total((rest for rest in rests if rest is not None), axis)
    return Taken(by_pods=by_pods, reserved=reserved)


def _created(gang: Gang, axis: ResourceAxis) -> Vector:
    """What the gang's pods take; of limits no more than the minimum does."""
    alive = gang.counts.tasks - gang.counts.completed
    return _widened(gang.request - gang.kept, _limits_of(gang, alive), axis)


def _uncreated(gang: Gang, axis: ResourceAxis) -> Vector | None:
    """What members of the minimum take that do not exist; None: the group does not tell."""
    rest = gang.uncreated
    if rest is None:
        return None
    created = _limits_of(gang, gang.counts.tasks)
    return _widened(rest, {name: n - created[name] for name, n in gang.min_limits}, axis)


def _limits_of(gang: Gang, members: int) -> Mapping[str, int]:
    """The part of so many members in the limits of the minimum, rounded down."""
    least = max(gang.min_member, 1)
    return {name: n * min(members, least) // least for name, n in gang.min_limits}


def _widened(vector: Vector, amounts: Mapping[str, int], axis: ResourceAxis) -> Vector:
    """``vector`` on a longer axis; what no quota limits is left out."""
    if len(vector) == len(axis):
        return vector
    wide: Vector = np.zeros(len(axis), dtype=np.int64)
    wide[: len(vector)] = vector
    for name in axis.index.keys() & amounts.keys():
        wide[axis.index[name]] = amounts[name]
    return wide


def _lines_of_limits(quotas: Iterable[Quota]) -> set[str]:
    return {name for quota in quotas for name, _ in quota.hard if name.startswith(LIMITS)}


def _quota_limits(
    quotas: Iterable[Quota], axis: ResourceAxis
) -> Mapping[str, list[tuple[Limit, ...]]]:
    """Per namespace, the lines of each quota that concern resources of the axis."""
    found: dict[str, list[tuple[Limit, ...]]] = {}
    for quota in quotas:
        if not quota.scoped:
            found.setdefault(quota.namespace, []).append(_lines(quota, axis))
    return found


def _over(quota: Iterable[Limit], asked: Vector, taken: Taken) -> list[Over]:
    """The lines of a quota that ``asked`` would exceed."""
    over: list[Over] = []
    for line in quota:
        want = int(asked[line.position])
        used = max(line.used, int(taken.by_pods[line.position]))
        used += int(taken.reserved[line.position])
        if want > 0 and want + used > line.hard:
            over.append(Over(line, want, used))
    return over


def _firmest(refusing: Sequence[Sequence[Over]]) -> Sequence[Over]:
    """The lines of the first quota that never has room for as much, else of the first one."""
    never = (over for over in refusing if any(each.asked > each.line.hard for each in over))
    return next(never, refusing[0])


def _refusal(over: Sequence[Over], gang: Gang) -> Refusal:
    return Refusal(
        cause=Cause.NAMESPACE_QUOTA,
        where=gang.namespace,
        shortfalls=tuple(
            Shortfall(line.resource, asked=want, free=max(line.hard - used, 0), limit=line.hard)
            for line, want, used in over
        ),
        detail="resource quota insufficient, "
        f"requested: {_listed((line.resource, want) for line, want, _ in over)}, "
        f"used: {_listed((line.resource, line.used) for line, _, _ in over)}, "
        f"limited: {_listed((line.resource, line.hard) for line, _, _ in over)}",
    )


def exceeded(snapshot: Snapshot, gang: Gang) -> list[tuple[Quota, list[Over]]]:
    """The ResourceQuotas that keep ``gang`` from being admitted now, each with its lines."""
    quotas = [each for each in snapshot.quotas if each.namespace == gang.namespace]
    axis = snapshot.axis.covering(_lines_of_limits(quotas))
    asked = _uncreated(gang, axis)
    if asked is None:
        return []
    taken = _taken(snapshot, {gang.namespace}, axis)[gang.namespace]
    each = (
        (quota, _over(_lines(quota, axis), asked, taken)) for quota in quotas if not quota.scoped
    )
    return [(quota, over) for quota, over in each if over]


def without_pods_of(snapshot: Snapshot, gang: Gang) -> tuple[Quota, ...]:
    """The ResourceQuotas of its namespace as they are once the pods of ``gang`` are gone."""
    quotas = [each for each in snapshot.quotas if each.namespace == gang.namespace]
    axis = snapshot.axis.covering(_lines_of_limits(quotas))
    gone = _created(gang, axis)
    found: list[Quota] = []
    for quota in quotas:
        less = {
            line.resource: max(line.used - int(gone[line.position]), 0)
            for line in _lines(quota, axis)
        }
        found.append(replace(quota, used=amounts({**dict(quota.used), **less})))
    return tuple(found)


def _lines(quota: Quota, axis: ResourceAxis) -> tuple[Limit, ...]:
    used = dict(quota.used)
    lines: list[Limit] = []
    for resource, hard in quota.hard:
        asked = resource.removeprefix(_COUNT).removeprefix(REQUESTS)
        position = axis.index.get(resource, axis.index.get(asked))
        if position is not None:
            lines.append(Limit(resource, position, hard=hard, used=used.get(resource, 0)))
    return tuple(lines)


def _listed(amounts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {amount_text(name, amount)}" for name, amount in amounts)
