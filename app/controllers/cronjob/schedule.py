"""Which starts of a schedule are due (the rules of Kubernetes' CronJob).

Of all starts since the last one only the latest counts: those before it are lost. One that is older
than the starting deadline is lost too.
"""

from dataclasses import dataclass
from typing import Final

from app.kit.cron import Schedule

MANY: Final = 100
"""More missed starts than that are worth a warning: a clock may be wrong."""


@dataclass(frozen=True, slots=True)
class Starts:
    """What there is to do at a moment, in seconds since the epoch.

    ``due`` is the start to make now, ``missed`` the one that came too late for that; ``following``
    the first one after now.
    """

    due: float | None
    missed: float | None
    following: float | None
    too_many: bool = False


def starts(schedule: Schedule, *, since: float, now: float, deadline_s: float | None) -> Starts:
    """What is due at ``now`` when the last start (or the creation) was at ``since``."""
    latest = schedule.latest(after=since, until=now)
    following = schedule.next(since if latest is None else latest)
    if latest is None:
        return Starts(None, None, following)
    if deadline_s is not None and latest + deadline_s < now:
        return Starts(None, latest, following)
    earliest = since if deadline_s is None else max(since, now - deadline_s)
    return Starts(latest, None, following, too_many=_many(schedule, after=earliest, until=latest))


def _many(schedule: Schedule, *, after: float, until: float) -> bool:
    at: float | None = after
    for _ in range(MANY + 1):
        at = schedule.next(at) if at is not None else None
        if at is None or at > until:
            return False
    return True
