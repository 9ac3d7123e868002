"""Parts of cycles that fail by an unexpected error, and that cycles do without: upkeep and plugins.

Each is tried again in each cycle. The log has an error when it first comes, and at another place.
"""

import logging
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from app.core.faults import Planned, PluginFault, Upkeep, UpkeepFault, doing
from app.telemetry import metrics

log = logging.getLogger(__name__)

_OF_PLANS: Final = frozenset(
    {Upkeep.OVER_CAPABILITY, Upkeep.REVOKE, Upkeep.SHUFFLE, Upkeep.LOANS},
)


@dataclass(slots=True, eq=False)
class FailingParts:
    """What the last cycle did without."""

    _upkeep: dict[Upkeep, str] = field(default_factory=dict)
    """Where the error of each is."""
    _plugins: Mapping[str, PluginFault] = field(default_factory=dict)

    @contextmanager
    def doing(self, upkeep: Upkeep) -> Iterator[None]:
        """Inside, an error ends the upkeep, and not what comes after it."""
        try:
            with doing(upkeep):
                yield
        except UpkeepFault as fault:
            self._failed(fault)
        else:
            self._works({upkeep})

    def follow(self, planned: Planned) -> None:
        """A plan was made without these."""
        for fault in planned.left_out.values():
            self._failed(fault)
        self._works(_OF_PLANS - planned.left_out.keys())
        before, self._plugins = self._plugins, dict(planned.unopened)
        for name, each in self._plugins.items():
            metrics.PLUGIN_FAULTS.labels(name).inc()
            if name not in before or before[name].place != each.place:
                log.error(
                    "a plugin could not be opened",
                    extra={"plugin": name, "where": each.place},
                    exc_info=each.__cause__,
                )
        for name in before.keys() - self._plugins.keys():
            log.info("a plugin that could not be opened works again", extra={"plugin": name})

    def notices(self) -> Iterator[str]:
        """What an operator should know."""
        for upkeep, place in self._upkeep.items():
            yield f"planning does without {upkeep}, which fails by an unexpected error: {place}"
        for name, fault in self._plugins.items():
            follows = "no group gets a place" if fault.needed else "planning does without it"
            yield f"plugin {name} fails by an unexpected error, {follows}: {fault.place}"

    def _failed(self, fault: UpkeepFault) -> None:
        metrics.UPKEEP_FAULTS.labels(fault.upkeep.value).inc()
        if self._upkeep.get(fault.upkeep) != fault.place:
            log.error(
                "planning failed at an upkeep, and does without it",
                extra={"upkeep": fault.upkeep.value, "where": fault.place},
                exc_info=fault.__cause__,
            )
        self._upkeep[fault.upkeep] = fault.place

    def _works(self, upkeep: Set[Upkeep]) -> None:
        for each in self._upkeep.keys() & upkeep:
            log.info("an upkeep that planning did without works again", extra={"upkeep": each})
            del self._upkeep[each]
