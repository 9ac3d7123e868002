"""Shares: what a queue or gang holds, as the largest fraction of what there is to hold.

Vectors are a handful of numbers long, where plain Python beats NumPy's cost per call.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.model.resources import Vector

Share = Callable[[Vector], float]

NOTHING = 1e-4
"""Less than this of a base unit (milli-core, byte, device) is rounding noise."""


def share_of(whole: NDArray[np.int64] | NDArray[np.float64]) -> Share:
    """``allocated -> max(allocated / whole)`` over the resources that ``whole`` has.

    Zero when it has none.
    """
    parts = tuple((i, float(held)) for i, held in enumerate(whole.tolist()) if held >= NOTHING)

    def share(allocated: Vector) -> float:
        held = allocated.tolist()
        return max([held[i] / amount for i, amount in parts], default=0.0)

    return share
