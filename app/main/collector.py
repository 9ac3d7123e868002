"""Python's collector of cyclic garbage, and a big cluster.

It goes through every object there is, again and again, while all else in the process stands still;
what has been listed lives on for long and forms no cycles.
"""

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)
"""There are few cycles among millions of short-lived objects: look for them more rarely."""


def spare_what_is_there() -> None:
    """Have the collector never look again at what lives now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
