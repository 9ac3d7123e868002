"""Numbers in texts, such as weights in annotations, as Go's ``strconv.ParseFloat`` reads them."""

import re
from typing import Final

_NUMBER: Final = re.compile(
    r"[-+]?([0-9]{1,99}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?", re.ASCII
)
"""Python's ``float`` also takes blanks around it, underscores, and the digits of all scripts.

What is beyond these lengths is beyond what a floating-point number holds; ``inf`` and ``nan``,
which Go reads too, are no numbers to reckon with.
"""


def decimal(text: str) -> float | None:
    """The number, None where there is none."""
    return float(text) if _NUMBER.fullmatch(text) else None
