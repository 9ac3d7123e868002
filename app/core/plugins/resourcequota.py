"""resourcequota: a group is admitted only if its claim fits the ResourceQuotas of its namespace.

Quotas count pods that exist. What this cycle admitted before its pods exist is added here, the one
number that the ledger does not have. Quotas with scopes are not looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.core.plugins import limits
from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, Session, Vote
from app.core.quantities import amount_text
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import ResourceAxis, Vector
from app.model.snapshot import Snapshot
from app.model.workload import Quota

_REQUESTS = "requests."


@dataclass(frozen=True, slots=True)
class Limit:
    """One line of a quota: ``resource`` is its name there, ``position`` the axis' one."""

    resource: str
    position: int
    hard: int
    used: int


def configure(_conf: PluginConf) -> OpenPlugin:
    """It takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    by_namespace = quota_limits(session.ledger.snapshot)
    admitted: dict[str, Vector] = {}

    def enqueueable(gang: Gang) -> Ballot:
        quotas = by_namespace.get(gang.namespace)
        asked = limits.missing(gang) if quotas else None
        if quotas is None or asked is None:
            return PERMIT
        for quota in quotas:
            refusal = check(quota, asked, pending=admitted.get(gang.namespace), gang=gang)
            if refusal is not None:
                return Ballot(Vote.REJECT, refusal)
        return PERMIT

    def enqueued(gang: Gang) -> None:
        asked = limits.missing(gang)
        if asked is not None:
            before = admitted.get(gang.namespace)
            admitted[gang.namespace] = asked if before is None else before + asked

    return Hooks(enqueueable=enqueueable, enqueued=enqueued)


def quota_limits(snapshot: Snapshot) -> Mapping[str, list[tuple[Limit, ...]]]:
    """Per namespace, the lines of each quota that concern resources of the axis."""
    found: dict[str, list[tuple[Limit, ...]]] = {}
    for quota in snapshot.quotas:
        if not quota.scoped:
            found.setdefault(quota.namespace, []).append(_lines(quota, snapshot.axis))
    return found


def check(
    quota: tuple[Limit, ...], asked: Vector, *, pending: Vector | None, gang: Gang
) -> Refusal | None:
    """The lines of ``quota`` that ``asked`` would exceed, as a refusal."""
    over: list[tuple[Limit, int, int]] = []
    for line in quota:
        want = int(asked[line.position])
        used = line.used + (0 if pending is None else int(pending[line.position]))
        if want > 0 and want + used > line.hard:
            over.append((line, want, used))
    if not over:
        return None
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


def _lines(quota: Quota, axis: ResourceAxis) -> tuple[Limit, ...]:
    used = dict(quota.used)
    lines: list[Limit] = []
    for resource, hard in quota.hard:
        position = axis.index.get(resource, axis.index.get(resource.removeprefix(_REQUESTS)))
        if position is not None:
            lines.append(Limit(resource, position, hard=hard, used=used.get(resource, 0)))
    return tuple(lines)


def _listed(amounts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {amount_text(name, amount)}" for name, amount in amounts)
