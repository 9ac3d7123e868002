"""When the next planning cycle begins.

A change asks for one, which then starts at once, but not sooner than 20 ms (and four times the last
cycle's length, up to five seconds) after the last one. Without any change a cycle starts a second
after everything was planned last: time alone can bring a place, as pauses and vetoes end.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from app.service.cycle.cycle_log import CycleLog
from app.service.limits import Limits

LONGEST_REST_S = 5.0
"""A cycle in which the machine stood still took long, but needs no such pause."""


@dataclass(slots=True, eq=False)
class Pace:
    """The pauses between cycles, by the clock of the event loop, which nothing sets back."""

    limits: Limits
    log: CycleLog
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _ceased: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when this replica ceases to lead while it rests."""
    _due_at: float = float("-inf")
    """When everything is planned again in any case."""

    @property
    def is_due(self) -> bool:
        """Whether everything has to be planned again, whatever changed."""
        return self._due_at <= _loop_time()

    def notice(self) -> None:
        """Run a cycle soon, since something changed."""
        self._wake.set()

    def put_off(self) -> None:
        """Everything is planned now, and again after the idle time."""
        self._due_at = _loop_time() + self.limits.cycle_idle_s

    def start_over(self) -> None:
        """Forget the length of the last cycle, as this replica plans no more."""
        self.log.last_s = 0.0
        self.put_off()

    def end_rest(self) -> None:
        """A replica that stops leading, and leads again, does not wait for the end of a pause."""
        self._ceased.set()

    async def rest(self) -> None:
        """The pause after a cycle."""
        least = self.limits.cycle_gap_s
        longer = min(4 * self.log.last_s, LONGEST_REST_S) - least
        self._ceased.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(longer, 0.0)):
                await self._ceased.wait()
        await asyncio.sleep(least)

    async def until_news(self) -> None:
        """Wait for a change, or until everything has to be planned again."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._due_at):
                await self._wake.wait()
        self._wake.clear()


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
