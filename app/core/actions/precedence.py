"""Gangs before all turns: pods that others were evicted for, and gangs that outrank them.

kube-scheduler evicts for one pod, and keeps the room against all others of equal or lower priority.
By the turns, older ones could have it, and the pod would evict again until all of these have their
places, also those that may not preempt. So it goes first. Groups of a higher priority still go
before it for their minimum, whatever the turn of their queue, as they do in kube-scheduler. What
they want beyond that comes after it: by one member in each cycle they would take all of the room.
"""

from dataclasses import dataclass
from typing import Any

from app.core.actions.cycle import Cycle
from app.core.actions.minimum import is_reached
from app.core.actions.nominated_room import is_due
from app.model.gang import Gang
from app.model.ids import GroupKey

Order = tuple[int, bool, Any, GroupKey]


@dataclass(frozen=True, slots=True, eq=False)
class Precedence:
    """Of one cycle; ``above`` is the least priority of a group that others were evicted for.

    Or of a pod without a gang here, whose room is only held. On demand the other such groups
    are not planned. The room of those that go ``before`` the one that is asked for is held from the
    beginning, that of its equals and of those below when it has got its own (``beside``). Groups
    that may not have their room now count for nothing.
    """

    cycle: Cycle
    above: int | None = None
    before: tuple[Gang, ...] = ()
    beside: tuple[Gang, ...] = ()

    @classmethod
    def of(cls, cycle: Cycle) -> "Precedence":
        """As the snapshot has it."""
        made, gangs = cycle.snapshot.nominated_room, cycle.snapshot.gangs
        if not (made or cycle.snapshot.claims):
            return cls(cycle)
        due = [gangs[key] for key in made if key in gangs and is_due(cycle, gangs[key])]
        claimed = [claim.priority for claim in cycle.snapshot.claims[-1:]]
        planned = {gang.key for gang in cycle.pending if gang.key in made}
        least = min((gang.priority for gang in cycle.pending), default=0)
        own = min((gang.priority for gang in due if gang.key in planned), default=None)
        absent = [gang for gang in due if gang.key not in planned]
        return cls(
            cycle,
            above=min([*(gang.priority for gang in due), *claimed], default=None),
            before=tuple(g for g in absent if least <= g.priority != own),
            beside=tuple(g for g in absent if g.priority == own or g.priority < least),
        )

    def covers(self, gang: Gang) -> bool:
        """Whether ``gang`` goes before all turns."""
        if self.above is None or gang.priority < self.above:
            return False
        if gang.key in self.cycle.snapshot.nominated_room:
            return True
        return gang.priority > self.above and not is_reached(self.cycle, gang)

    def order_of(self, gang: Gang) -> Order:
        """The order of a gang that is covered: the lowest goes first."""
        evicts = gang.key in self.cycle.snapshot.nominated_room
        return -gang.priority, not evicts, self.cycle.opened.gang_key(gang), gang.key
