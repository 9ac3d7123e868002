"""Runs planning cycles for ever: when there is news, and at least every second."""

import asyncio
import logging
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.service.cycle.leadership import Leadership
from app.service.cycle.pace import Pace
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.limits import Limits
from app.telemetry import metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CycleLoop:
    """Cycles while this replica leads; stands by while another does."""

    cache: ClusterCache
    limits: Limits
    pace: Pace
    leadership: Leadership
    cycle: PlanningCycle

    def settled(self) -> None:
        """A batch of events is taken in: a cycle follows if one of them is news for it."""
        if self._has_news:
            self.pace.notice()

    @property
    def _has_news(self) -> bool:
        """Whether something changed since the last cycle began: the cluster, or the leader.

        Room that others take or give back is no news while no group waits for any.
        """
        signals, waiting = self.cache.signals, self.cache.registry.pending
        news = signals.may_place if waiting else signals.dirty
        return news or bool(signals.groups) or self.leadership.is_about_to_change

    async def run(self) -> None:
        """Cycle for ever; cancel to stop."""
        while True:
            await self.pace.rest()
            await self.pace.until_news()
            if self.leadership.activity.active:
                self.leadership.begin()
                await self._attempt()
            else:
                self.leadership.stand_by()

    async def _attempt(self) -> None:
        """A cycle; one that fails is tried again later, and gangs are planned on demand."""
        try:
            await self.cycle.run()
        except Exception:
            metrics.CYCLE_FAILURES.inc()
            log.exception("planning cycle failed")
            self.cache.signals.note_dirty()
            await asyncio.sleep(self.limits.cycle_idle_s)
