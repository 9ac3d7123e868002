"""Who goes before all turns: pods that others were evicted for, and whoever outranks them.

kube-scheduler evicts for one pod, and keeps the room against all others of equal or lower priority.
By the turns, older ones could have it, and the pod would evict again until all of these have their
places, also those that may not preempt. So it goes first. Groups of a higher priority still go
before it, whatever the turn of their queue, as they do in kube-scheduler.
"""

from dataclasses import dataclass
from typing import Any

from app.core.actions.cycle import Cycle
from app.model.gang import Gang
from app.model.ids import GroupKey

Place = tuple[int, bool, Any, GroupKey]


@dataclass(frozen=True, slots=True, eq=False)
class Precedence:
    """Of one cycle; ``above`` is the least priority of a group that others were evicted for.

    ``absent`` are such groups that are not planned now, on demand for another that ranks no higher.
    Those that are planned on demand for themselves have no others before them.
    """

    cycle: Cycle
    above: int | None = None
    absent: tuple[Gang, ...] = ()

    @classmethod
    def of(cls, cycle: Cycle) -> "Precedence":
        """As the snapshot has it."""
        made_room, gangs = cycle.snapshot.made_room, cycle.snapshot.gangs
        if not made_room:
            return cls(cycle)
        evicting = [gang.priority for gang in cycle.pending if gang.key in made_room]
        if evicting:
            return cls(cycle, above=min(evicting))
        least = min((gang.priority for gang in cycle.pending), default=0)
        others = (gangs[key] for key in made_room if key in gangs)
        return cls(cycle, absent=tuple(gang for gang in others if gang.priority >= least))

    def covers(self, gang: Gang) -> bool:
        """Whether ``gang`` goes before all turns."""
        if self.above is None:
            return False
        return gang.priority > self.above or gang.key in self.cycle.snapshot.made_room

    def place(self, gang: Gang) -> Place:
        """Where one that it covers stands: the lowest go first."""
        evicts = gang.key in self.cycle.snapshot.made_room
        return -gang.priority, not evicts, self.cycle.opened.gang_key(gang), gang.key
