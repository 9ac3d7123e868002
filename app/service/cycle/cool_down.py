"""Giving the room of a gang back that did not come together, so that others can have it.

The gang is held off for a while: were it planned again at once, it would take the same room from
the groups that wait. The pause doubles each time in a row, and the row ends when the gang reaches
its minimum on nodes (:func:`forgive`).
"""

from collections.abc import Iterable
from enum import StrEnum

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import MemberState
from app.cache.gangs.missing import excess
from app.model.ids import GroupKey
from app.service.limits import Limits
from app.telemetry import metrics

_MOST_DOUBLINGS = 30


class Why(StrEnum):
    """What the gang did not do, or its queue may not hold (metric label)."""

    LATE = "late"
    """Some members came to Bind, the others did not in time."""
    UNUSED = "unused"
    """kube-scheduler asked for no member in time."""
    UNCREATED = "uncreated"
    """No owner created the members that places were kept for."""
    STUCK = "stuck"
    """The group holds part of its room and cannot get the rest."""
    NO_DOMAIN = "no-domain"
    """The domain of the network where the group holds room has none for the rest of it."""
    OVER_LIMIT = "over-limit"
    """A queue, or one above it, held more than its limit (:mod:`app.service.cycle.over_limit`)."""


_FOR_WANT_OF_MEMBERS = (Why.LATE, Why.UNCREATED)
_TEXTS = {
    Why.LATE: "gang did not complete in time",
    Why.UNUSED: "the place was not used in time",
    Why.UNCREATED: "the rest of the gang was not created in time",
    Why.STUCK: "the rest of the gang finds no room",
    Why.NO_DOMAIN: "the rest of the gang finds no room in its domain",
    Why.OVER_LIMIT: "its queue holds more than its limit",
}


def give_back(cache: ClusterCache, group: Group, *, why: Why, limits: Limits, now: float) -> None:
    """Release every reservation of ``group``, and let others go first for a while.

    When that was for want of members that no owner created, no room is kept for them again before
    one comes: a PodGroup that has been left behind would take it from others now and then for ever.
    """
    uncreated = bool(group.slots) and why in _FOR_WANT_OF_MEMBERS
    metrics.GANGS_RELEASED.labels(why.value).inc()
    cache.reservations.release(group.key, why=_TEXTS[why])
    start_cool_down(cache, group, limits=limits, now=now)
    if uncreated:
        cache.decisions.give_up(group.key)


def leave_domain(cache: ClusterCache, group: Group) -> None:
    """Release every reservation of ``group``, which may find all its room in another domain now."""
    metrics.GANGS_RELEASED.labels(Why.NO_DOMAIN.value).inc()
    cache.reservations.release(group.key, why=_TEXTS[Why.NO_DOMAIN])


def give_back_unusable(cache: ClusterCache, changed: Iterable[GroupKey]) -> None:
    """Release gangs with a slot for a member that came behind a gate, or under another scheduler.

    The gate is one of others. Such a member takes part in no plan; its slot would let the gang
    count as whole, and the others lose their gates. What a gang has lost is kept for it all the
    same: its other members run.
    """
    for key in tuple(changed):
        group = cache.groups.get(key)
        if (
            group is None
            or not group.slots
            or not (group.counted.kinds[MemberState.GATED] or group.foreign)
        ):
            continue
        if excess(group) and not group.owed:
            cache.reservations.release(key, why="a member is not for us to place")


def start_cool_down(cache: ClusterCache, group: Group, *, limits: Limits, now: float) -> None:
    """Let others go first for a while, each time in a row for longer."""
    group.failures += 1
    doublings = min(group.failures - 1, _MOST_DOUBLINGS)
    pause = min(limits.hold_base_s * 2**doublings, limits.hold_max_s)
    cache.decisions.cool_down(group.key, until=now + pause)


def text(why: Why) -> str:
    """What a held Bind call is answered with."""
    return _TEXTS[why]


def forgive(cache: ClusterCache, changed: Iterable[GroupKey]) -> None:
    """Forget earlier failures of those gangs whose minimum is on nodes now."""
    for key in changed:
        group = cache.groups.get(key)
        if group is not None and group.failures and group.reached_minimum:
            group.failures = 0
