"""What the planner was asked, with what it answered: enough to ask again, elsewhere and later."""

from dataclasses import dataclass
from enum import StrEnum

from app.model.conf import SchedulerConf
from app.model.ids import GroupKey
from app.model.plan import Plan
from app.model.snapshot import Snapshot


class PlanCall(StrEnum):
    """How the planner was called."""

    CYCLE = "cycle"
    """For all groups, by a planning cycle."""
    ON_DEMAND = "on demand"
    """For all groups, since kube-scheduler asked for a pod that had no place."""
    GANG = "gang"
    """For one group, since kube-scheduler asked for a pod of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """One question to the planner, and its ``plan``.

    ``now`` is the reading of the clock that it was given (seconds since the epoch), ``key`` the
    group of a plan for one, else None.
    """

    call: PlanCall
    now: float
    snapshot: Snapshot
    conf: SchedulerConf
    plan: Plan
    key: GroupKey | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The latest questions, the oldest first, of a process of that ``version``.

    ``forgotten`` counts older ones that had no room. ``redacted``: names are not those of the
    cluster.
    """

    version: str
    entries: tuple[Recorded, ...]
    forgotten: int = 0
    redacted: bool = False
