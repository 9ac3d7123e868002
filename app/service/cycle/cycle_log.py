"""What the planning cycles came to."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class CycleLog:
    """What the last cycles came to, for ``/debug`` and the metrics."""

    cycles: int = 0
    on_demand: int = 0
    at_once: int = 0
    """Single pods that had a place without a plan (:mod:`app.service.cycle.equal_pods`)."""
    stale: int = 0
    """Placements that the live cluster did not bear any more when they were published."""
    overtaken: int = 0
    """Plans whose limits or claims had changed by the time they were published."""
    last_s: float = 0.0
    last_at: float = 0.0
    generation: int = 0
