"""Which pods of a job its gang takes at the least (volcano.md §5.3)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A task: the priority of its pods, how many it needs, and how many there are."""

    priority: int
    minimum: int
    replicas: int


def pods_needed(parts: Sequence[Part], minimum: int) -> list[int]:
    """How many pods of each part the gang takes at the least, in the order given.

    Parts of higher priority come first. A ``minimum`` of the job below that of all parts together
    is the first pods; else every part's minimum, and further pods up to that of the job.
    """
    together = sum(part.minimum for part in parts)
    least = [0 if minimum < together else part.minimum for part in parts]
    left = minimum if minimum < together else minimum - together
    for at in sorted(range(len(parts)), key=lambda at: -parts[at].priority):
        more = min(left, max(parts[at].replicas - least[at], 0))
        least[at] += more
        left -= more
    return least
