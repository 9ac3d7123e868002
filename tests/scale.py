"""How hard the tests try: every count of examples, rounds and dice comes from here.

`make test` runs what the tests name: a hundredth of what `make proofs` runs (tests/proofs), which
sets these variables:

`PUMICE_SCALE=100` gives every property a hundred times its examples. `PUMICE_ROUNDS=20` repeats
what depends on chance that often, and runs what is measured at its full size. `PUMICE_SEED` repeats
the dice of an earlier run; `make test` throws the same dice every time.
"""

from __future__ import annotations

import os
import random
from typing import Any

import hypothesis

SCALE = float(os.environ.get("PUMICE_SCALE", "1"))
ROUNDS = int(os.environ.get("PUMICE_ROUNDS", "2"))
FULL = ROUNDS >= 20
LONGER = SCALE > 1 or ROUNDS > 2
"""Whether this run tries more than `make test` does."""
SAME = not LONGER
"""Whether properties try the same examples on every machine, as `make test` does.

A longer run rolls dice: that is where new examples are looked for, and a change is not refused for
what another one broke long ago.
"""
SEED = int(os.environ.get("PUMICE_SEED") or 0) or (
    random.SystemRandom().randrange(1, 10**6) if LONGER else 2026
)
ROUND_S = 180
"""No round takes longer when all is well, on a machine with three times as much to do as well."""
EXAMPLES = 50
"""Of a property that names no count of its own."""


def scaled(count: int) -> int:
    """So many examples as this run tries, of a property that names `count`."""
    return max(1, round(count * SCALE))


def examples(count: int, **more: Any) -> hypothesis.settings:
    """The settings of a property that tries `count` examples in `make test`."""
    return hypothesis.settings(max_examples=scaled(count), derandomize=SAME, **more)


def dice() -> random.Random:
    """Dice whose seed is printed, so a failure can be repeated."""
    print(f"PUMICE_SEED={SEED}")  # noqa: T201 - shown with a failure
    return random.Random(SEED)
