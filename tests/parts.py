"""How long the parts of `make test` took, told in its last lines.

Each part writes a line when it begins: the time in seconds and its name. It lasts until the next
one begins, or until now.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path


def lines(begun: Sequence[str], now: int) -> list[str]:
    """Return one line per part and one for all: ` 8:34 unit tests`.

    `begun` has a line `1764417600 unit tests` for each part, `now` is the end of the last one.
    """
    parts = [(int(at), name) for at, _, name in (line.partition(" ") for line in begun)]
    told = [(name, end - at) for (at, name), (end, _) in pairwise([*parts, (now, "")])]
    return [
        f"{seconds // 60:3}:{seconds % 60:02} {name}"
        for name, seconds in [*told, ("all", now - parts[0][0])]
    ]


def main(path: Path) -> None:
    """Print the lines of the parts that the file names."""
    print("wall time:")  # noqa: T201 - for who ran `make test`
    for line in lines(path.read_text().splitlines(), int(time.clock_gettime(time.CLOCK_REALTIME))):
        print(f"  {line}")  # noqa: T201 - as above


if __name__ == "__main__":
    main(Path(sys.argv[1]))
