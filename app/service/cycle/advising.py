"""What would let a waiting gang run now: single changes, each held against the planner.

Candidates come from :mod:`app.core.advice`. A change is told only if a whole cycle of the planner,
with all that waits besides, gives the gang its minimum at once and without evictions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.cache.gangs.imagined import instead
from app.core.advice import ChangeKind, SingleChange, candidates, with_minimum
from app.core.simulation import Outcome, simulate_steps
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.reason import MEMBERS_MISSING, Cause, Refusal
from app.service.cycle.simulations import Simulations
from app.service.cycle.snapshot_token import SnapshotToken

MOST_S: Final = 2.0
"""No further change is tried after so long."""
ENOUGH: Final = 3
"""Changes that help are told up to this number."""


@dataclass(frozen=True, slots=True)
class Helping:
    """A change that lets the gang run now, and what to do for it."""

    kind: ChangeKind
    text: str


@dataclass(frozen=True, slots=True)
class Advice:
    """``changes`` that were proven, the smallest first; so many were ``tried``.

    ``complete``: all candidates were tried, or enough were found.
    """

    changes: tuple[Helping, ...]
    tried: int
    complete: bool


@dataclass(slots=True, eq=False)
class _Trying:
    simulations: Simulations
    token: SnapshotToken
    now: float
    tried: int = 0
    complete: bool = True
    """Whether nothing was left untried for want of time."""

    def has_time(self) -> bool:
        """Whether another change may be tried."""
        self.complete = self.complete and self.simulations.clock() - self.now <= MOST_S
        return self.complete

    async def helps(self, change: SingleChange) -> bool:
        """Whether the gang runs with the change."""
        self.tried += 1
        steps = simulate_steps(
            instead(self.token.snapshot, change.gang),
            self.token.policies,
            change=change.of_cluster,
            now=self.now,
        )
        fate = (await self.simulations.drive(steps)).fates.get(change.gang.key)
        return fate is not None and fate.outcome is Outcome.RUNS

    async def fewer(self, gang: Gang, refusal: Refusal) -> SingleChange | None:
        """The largest minimum with which it runs, if a smaller one helps at all.

        Where members do not exist, or are gated, it is one that the others make.
        """
        found: SingleChange | None = None
        low, high = 1, gang.min_member - 1
        if refusal.cause in MEMBERS_MISSING or refusal.cause is Cause.GATED:
            if gang.role_minimum:
                return None
            high = min(high, gang.counts.ready_members + len(gang.waiting))
        while low <= high:
            middle = (low + high + 1) // 2
            change = with_minimum(gang, middle)
            if change is None or not self.has_time():
                return found
            if await self.helps(change):
                found, low = change, middle + 1
            else:
                high = middle - 1
        return found


async def advise(simulations: Simulations, key: GroupKey, refusal: Refusal) -> Advice | None:
    """What would let the group of ``key`` run, which waits because of ``refusal``.

    None: it does not wait. Raises `TooMany`.
    """
    async with simulations.turn():
        now = simulations.clock()
        token = simulations.input.token(now, running=refusal.cause is Cause.NAMESPACE_QUOTA)
        snapshot = token.snapshot
        gang = snapshot.gangs.get(key)
        if gang is None:
            return None
        gang = replace(gang, set_aside=False, doubtful=False)
        trying = _Trying(simulations, token, now)
        found: list[Helping] = []
        fewer = await trying.fewer(gang, refusal)
        if fewer is not None:
            found.append(Helping(fewer.kind, fewer.text))
        devices, lowered = simulations.configuration.devices, set[str]()
        for change in _unlike(candidates(snapshot, gang, refusal, devices)):
            if len(found) >= ENOUGH or not trying.has_time():
                break
            if change.lowers not in lowered and await trying.helps(change):
                found.append(Helping(change.kind, change.text))
                lowered |= {change.lowers} - {""}
        return Advice(tuple(found), trying.tried, trying.complete)


def _unlike(changes: Iterable[SingleChange]) -> Iterator[SingleChange]:
    """Candidates of which each is tried once."""
    seen: set[str] = set()
    for change in changes:
        if change.text not in seen:
            seen.add(change.text)
            yield change
