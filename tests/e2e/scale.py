"""How hard the tests try: a short run by default, a long one by environment.

`PUMICE_ROUNDS=20` repeats what depends on chance that often (3 times otherwise) and runs what is
measured at its full size. `PUMICE_SEED` repeats the dice of an earlier run.
"""

from __future__ import annotations

import os
import random

ROUNDS = int(os.environ.get("PUMICE_ROUNDS", "3"))
FULL = ROUNDS >= 20
SEED = int(os.environ.get("PUMICE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ROUND_S = 90
"""No round takes longer when all is well."""


def dice() -> random.Random:
    """Dice whose seed is printed, so a failure can be repeated."""
    print(f"PUMICE_SEED={SEED}")  # noqa: T201 - shown with a failure
    return random.Random(SEED)
