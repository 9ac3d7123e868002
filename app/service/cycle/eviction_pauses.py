"""Groups that no pods are evicted for: after evictions in vain, and jobs that lose pods in turn.

A gang whose victims went in vain, or whose plan the API server refuses to store, pauses, each time
in a row twice as long; so do all plans for no gang together when one of them is refused. That pods
are not evicted in circles is for the rules to see to (:mod:`app.core.plugins`); here the evictions
of each job are counted all the same, as a last resort against a rule that is wrong. A job that
loses pods again and again, or again and again to the same job, is let alone, and the group that
wants its pods pauses.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from app.model.ids import GroupKey
from app.service.limits import Limits

WINDOW_S: Final = 600.0
"""How long a decision counts."""
OF_ONE_JOB: Final = 6
"""In how many cycles decisions may take pods of one job in that time."""
OF_ONE_PAIR: Final = 3
"""In how many cycles decisions may take pods of one job for the same other one in that time."""
_MOST_DOUBLINGS: Final = 30
_KEPT: Final = 10_000
"""Jobs and pairs that are counted at most; those counted first are forgotten first."""


@dataclass(frozen=True, slots=True)
class Pause:
    """No pods are evicted for a group ``until`` then; ``times`` in a row by now."""

    until: float
    times: int
    why: str


@dataclass(slots=True, eq=False)
class Pauses:
    """The groups that pause; plans for no group do so together, under an empty key."""

    limits: Limits
    _of: dict[GroupKey, Pause] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._of)

    def start(self, key: GroupKey, *, why: str, now: float) -> Pause:
        """Let the group pause, longer than the last time."""
        before = self._of.get(key)
        times = 1 if before is None else before.times + 1
        doublings = min(times - 1, _MOST_DOUBLINGS)
        pause_s = min(self.limits.wasted_base_s * 2**doublings, self.limits.wasted_max_s)
        pause = self._of[key] = Pause(now + pause_s, times, why)
        return pause

    def of(self, key: GroupKey, *, now: float) -> Pause | None:
        """The pause of a group, if it has one now."""
        pause = self._of.get(key)
        return pause if pause is not None and pause.until > now else None

    def active(self, *, now: float) -> dict[GroupKey, Pause]:
        """The pauses that have not ended."""
        return {key: pause for key, pause in self._of.items() if pause.until > now}

    def forgive(self, key: GroupKey) -> None:
        """The group has what it asked for: its next pause is short again."""
        self._of.pop(key, None)

    def tidy(self, known: Collection[GroupKey], *, now: float) -> None:
        """Forget groups that are gone, and pauses that ended long ago."""
        long_ago = now - self.limits.wasted_max_s
        self._of = {
            key: pause
            for key, pause in self._of.items()
            if (key in known or not key) and pause.until > long_ago
        }


@dataclass(slots=True, eq=False)
class EvictionGuard:
    """Counts the decisions of the last minutes by job of the victims, and by pair of jobs.

    Those of one cycle count once. What pods are shuffled by counts as a job.
    """

    _times: dict[tuple[str, str], deque[float]] = field(default_factory=dict)
    """By job of the victims and job of the preemptor; the latter is empty for all of them."""

    def refuses(self, preemptor: str, victims: Iterable[str], *, now: float) -> str:
        """Which of the jobs may not lose pods to ``preemptor`` now; empty: all may.

        What was decided ``now`` is of the same cycle.
        """
        for job in victims:
            if self._count(job, "", now) >= OF_ONE_JOB:
                return job
            if preemptor and self._count(job, preemptor, now) >= OF_ONE_PAIR:
                return job
        return ""

    def note(self, preemptor: str, victims: Iterable[str], *, now: float) -> None:
        """Pods of these jobs are evicted for ``preemptor`` (empty: for none)."""
        for job in victims:
            for other in {"", preemptor}:
                times = self._times.pop((job, other), None) or deque(maxlen=OF_ONE_JOB)
                if not times or times[-1] != now:
                    times.append(now)
                self._times[job, other] = times
        while len(self._times) > _KEPT:
            del self._times[next(iter(self._times))]

    def counts(self, *, now: float) -> dict[str, int]:
        """How often each job has lost pods lately."""
        found = {
            job: sum(at > now - WINDOW_S for at in times)
            for (job, other), times in self._times.items()
            if not other
        }
        return {job: count for job, count in found.items() if count}

    def _count(self, job: str, other: str, now: float) -> int:
        return sum(now - WINDOW_S < at < now for at in self._times.get((job, other), ()))
