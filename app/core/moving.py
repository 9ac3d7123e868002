"""Which pods are wanted on other nodes (volcano.md §3.3, VictimTasks).

The pods that the plugins of a tier want are taken together, and the first tier that wants some
decides.
"""

from collections.abc import Callable, Sequence

from app.core.combining import Opening, Tiers
from app.core.victim_rules import VictimTasks
from app.model.resources import Rows

Wanted = Sequence[tuple[int, VictimTasks]]
"""Positions in ``snapshot.running``, first in front, with what wants each pod elsewhere."""


def first_tier_wants(
    tiers: Tiers[VictimTasks], _opening: Opening
) -> Callable[[Rows], Wanted] | None:
    """What the first tier wants that wants some of the pods; None: no plugin has a say."""
    if not any(tiers):
        return None

    def wanted(rows: Rows) -> Wanted:
        for tier in tiers:
            found: dict[int, VictimTasks] = {}
            for plugin in tier:
                for at in plugin.wanted(rows):
                    found.setdefault(at, plugin)
            if found:
                return list(found.items())
        return ()

    return wanted
