"""Python's collector of cyclic garbage, and a big cluster.

It goes through every object there is, again and again, while all else in the process stands still;
what has been listed lives on for long and forms no cycles.
"""

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)
"""There are few cycles among millions of short-lived objects: look for them more rarely."""


def collect_seldom() -> None:
    """From now on; by default a listing has it look at all again for each quarter that comes."""
    gc.set_threshold(*THRESHOLDS)


def spare_what_is_there() -> None:
    """Have the collector never look again at what lives now.

    Some 100 objects of garbage are among it, not worth a last look at millions of others.
    """
    gc.freeze()
