"""When jobs that wait are expected to start, for as long as the view is read.

A forecast is a question to the planner like others, so it is asked seldom, beside the looks, and
what it said stays until the next answer.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.cache.cluster import ClusterCache
from app.kit.turns import TooMany
from app.model.ids import GroupKey
from app.service.cycle.eta.etas import EtaAnswer, Etas
from app.service.ports import Clock
from app.service.telling.etas import EtaTeller, beyond_text
from app.service.telling.reasons import Reasons
from app.service.telling.view.jobs import asked
from app.service.telling.view.rows import Estimate, FutureRow

log = logging.getLogger(__name__)

EVERY_S: Final = 20.0
"""From the answer to one forecast to the next question, at least."""
SHARE: Final = 20
"""As many times as long as a forecast took passes until the next one is asked for."""


@dataclass(slots=True, eq=False, kw_only=True)
class ExpectedStarts:
    """The answers to the last forecast, by job."""

    cache: ClusterCache
    etas: Etas
    reasons: Reasons
    clock: Clock
    answers: Mapping[GroupKey, EtaAnswer] = field(default_factory=dict)
    _due: float = 0.0
    _asking: "asyncio.Task[None] | None" = None

    def ask_if_due(self) -> None:
        """Ask for a forecast, if the last one is old; the answer is for a later look."""
        if self._asking is not None or self.clock() < self._due:
            return
        if self.cache.registry.pending:
            self._asking = asyncio.ensure_future(self._ask())
        else:
            self.answers = {}

    def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self) -> None:
        began = self.clock()
        try:
            self.answers = await self.etas.all()
        except TooMany:
            log.info("no forecast for the view: too many questions wait")
        except Exception:
            log.exception("no forecast for the view")
        finally:
            now = self.clock()
            self._due = now + max(EVERY_S, SHARE * (now - began))
            self._asking = None

    def estimate(self, key: GroupKey) -> Estimate | None:
        """When the job is expected to start; None: it was not asked, or nothing is known."""
        answer, group = self.answers.get(key), self.cache.groups.get(key)
        if answer is None or group is None:
            return None
        eta = answer.eta
        if eta.p50 is None:
            text = beyond_text(eta, answer.now)
            return Estimate(None, None, text) if text else None
        told = EtaTeller(self.cache, self.etas, self.reasons).tell(group, answer, own=None)
        return Estimate(eta.p50, eta.p90, told.text)

    def rows(self) -> Iterator[FutureRow]:
        """The starts that are expected later."""
        for key, answer in self.answers.items():
            found, group = self.estimate(key), self.cache.groups.get(key)
            if found is None or found.at is None or group is None:
                continue
            if key in self.cache.registry.pending:
                yield FutureRow(
                    key=f"expected {key}",
                    kind="expected",
                    job=key,
                    queue=group.queue,
                    since=answer.now,
                    at=found.at,
                    pods=group.min_member,
                    nodes=len(answer.eta.nodes),
                    amounts=asked(group),
                    text=found.text,
                )
