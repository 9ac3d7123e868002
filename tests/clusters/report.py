"""How many tests ran on which cluster, told at the end of a test run.

A test marked `real` runs on the stock control plane, one marked `sandbox` on the embedded one, all
others on none. `make test` runs pytest several times; PUMICE_TEST_TALLY names a file in which the
runs add up, so the last one also tells the totals.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

PLACES = {
    "real": "on the real control plane",
    "sandbox": "on the sandbox",
    "none": "without a cluster",
}
Tally = Counter[tuple[str, str]]


def lines(tally: Tally) -> list[str]:
    """Return one line per place: `12 passed, 1 failed on the sandbox`."""
    told = []
    for place, text in PLACES.items():
        counts = [
            f"{count} {outcome}"
            for (where, outcome), count in sorted(tally.items())
            if where == place
        ]
        told.append(f"{', '.join(counts) or 'nothing run'} {text}")
    return told


def add_up(tally: Tally, path: Path) -> Tally:
    """Add this run to what earlier runs left in the file and return the totals."""
    rows = json.loads(path.read_text()) if path.exists() else []
    total = Tally({(place, outcome): count for place, outcome, count in rows})
    total.update(tally)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([[*key, count] for key, count in sorted(total.items())]))
    return total
