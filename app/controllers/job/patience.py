"""How long a job waits for what it needs: before it is told, and before the job is ended."""

import math
from typing import Final

SOON_S: Final = 3.0
"""What is applied together with a job, after it, is there by then: until then nothing is told."""
LOOK_S: Final = 0.5
"""How often a worker looks again."""

_UNLIMITED: Final = -1
_FIRST_S: Final = 0.005
_DOUBLINGS: Final = 18
_LONGEST_S: Final = 1000.0


def patience_s(repeats: int) -> float:
    """The time that so many repeats take in Volcano, ``--max-requeue-num``; -1: for ever.

    Its queue waits 5 ms before the first and twice as long before each further one, at most 1000 s:
    15 take 164 s. Looks are no measure: there is one whenever a pod of the job changes.
    """
    if repeats == _UNLIMITED:
        return math.inf
    doubled = _FIRST_S * (2.0 ** min(repeats, _DOUBLINGS) - 1.0)
    return doubled + _LONGEST_S * max(repeats - _DOUBLINGS, 0)
