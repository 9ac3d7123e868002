"""Arrays of the placement package; ``N`` is the number of nodes, rows are table rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.model.resources import Mask

Counts = NDArray[np.int64]

NOWHERE = float("-inf")
"""The score of a node that does not fit."""

MANY = 1 << 20
"""More tasks than any node takes."""

FULL_SCORE = 100.0
"""The best a single score plugin gives, before its weight."""


def all_of(masks: Sequence[Mask]) -> Mask:
    """Where every one of ``masks`` (at least one) is true."""
    both: Mask = np.logical_and.reduce(masks)
    return both
