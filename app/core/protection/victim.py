"""What the rules look at: a pod that may be evicted, and the gang that it is a member of."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.model.amounts import Amounts
from app.model.ids import NO_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.parts import Part, Policies

_NO_PART = Part("")


@dataclass(frozen=True, slots=True, eq=False)
class Victim:
    """A pod that may have to go; ``created`` is seconds since the epoch.

    A foreign pod has no ``gang`` and no ``queue``, and is ``preemptable`` whatever it says itself.
    A single pod of ours is a gang of one. ``part`` is what the gang counts the pod for, as long as
    the pod is ``there``: it has a place, and is neither over nor on its way out.
    """

    uid: PodUid
    namespace: str
    name: str
    labels: Mapping[str, str]
    node: NodeName
    created: float
    request: Amounts
    priority: int = 0
    priority_class: str = ""
    preemptable: bool = True
    deleting: bool = False
    gang: GroupKey | None = None
    queue: QueueName = NO_QUEUE
    part: Part = _NO_PART
    there: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class VictimGang:
    """What a gang has before any victim goes, and what its minimum takes.

    ``members`` counts those on nodes and those whose Bindings are under way, by what they count
    for. Of them ``finished`` have run to their end: they count for the minimum and cannot be
    evicted. ``role_minimum`` has only minimums that count.
    """

    members: Counter[Part]
    finished: int
    min_member: int
    role_minimum: Mapping[str, int]
    sub_groups: Policies
