"""The only real clock.

Wall time at the start plus what has passed since: close enough to the wall for ages and time
stamps, and deaf to jumps of the machine's clock, so no deadline fires early or never.
"""

import time
from collections.abc import Callable


def steady_clock() -> Callable[[], float]:
    """Seconds since the epoch that only ever grow, at one second a second."""
    offset = time.time() - time.monotonic()  # noqa: TID251 - the composition root owns the clock
    return lambda: offset + time.monotonic()
