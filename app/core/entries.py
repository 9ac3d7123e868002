"""What a ledger's journal holds: places that were given, and pods that are to go.

Each entry is an object of its own. One that still stands at its position proves that nothing below
it has changed: a journal grows at its end and is cut back by roll-backs.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.core.accounts import Losses, QueueChange
from app.model.gang import Gang, Task
from app.model.parts import NO_SUB_GROUP, Part, SubGroup
from app.model.pod import Pod
from app.model.resources import Vector
from app.model.shape import PodShape


class Placed(NamedTuple):
    """``task`` has a place on the node of row ``node``.

    ``pipelined``: the place is on room that is about to be free, not on idle room.
    """

    gang: Gang
    task: Task
    node: int
    pipelined: bool = False

    @property
    def sign(self) -> int:
        """How many pods more there are."""
        return 1

    @property
    def shape(self) -> PodShape:
        """What that pod looks like."""
        return self.task.shape

    @property
    def counts(self) -> bool:
        """Whether the group counts the member: always, as it has just got its place."""
        return True

    @property
    def sub_group(self) -> SubGroup:
        """The sub-group of the member, if it has one."""
        return self.gang.sub_group_of.get(self.task.uid, NO_SUB_GROUP)


class Evicted(NamedTuple):
    """``pod`` is counted on to go from the node of row ``node``; None: the node is not known.

    ``releasing``: the pod terminates already. ``gang`` is its group; None: it has none here.
    ``counts`` tells whether the group counts it as ready, ``change`` what its queue loses, and
    ``before`` what the group had lost until then.
    """

    pod: Pod
    node: int | None
    request: Vector
    releasing: bool
    gang: Gang | None
    part: Part
    counts: bool
    before: Losses
    change: QueueChange

    @property
    def sign(self) -> int:
        """How many pods more there are."""
        return -1

    @property
    def shape(self) -> PodShape:
        """What that pod looks like."""
        return self.pod.shape

    @property
    def sub_group(self) -> SubGroup:
        """The sub-group of the member, if it has one."""
        return self.part.sub_group


Entry = Placed | Evicted


def comes_too_early(task: Task, journal: Sequence[Entry]) -> bool:
    """Whether members that have to have places before ``task`` have none yet."""
    if not task.after:
        return False
    placed = {entry.task.uid for entry in journal if isinstance(entry, Placed)}
    return not placed.issuperset(task.after)


class Moment(NamedTuple):
    """A moment in the life of a ledger, by which what failed then is remembered.

    ``epoch`` counts what grew outside of the journal, ``changes`` all that changed there;
    ``length`` and ``last`` tell how far the journal had come.
    """

    epoch: int
    changes: int
    length: int
    last: Entry | None
