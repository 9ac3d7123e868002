"""What can be taken back of reservations, and what of it stands or falls together.

Nothing, while a gang is bound in part or about to be: its minimum is all or nothing. All of it, as
long as no member of the gang is on a node or has a Binding under way. Where the minimum is on nodes
or on the way there without them, the others stand alone, each of them.

The minimum is judged as for victims of eviction (:mod:`app.core.protection.gang_minimum`). What may
go is another question than there: a victim runs, so a gang may go whole or lose its surplus at any
time; a reservation is taken back only where no Binding can cross that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, Slot, Stage
from app.cache.gangs.victims import victim_gang
from app.core.protection.gang_minimum import keeps_minimum
from app.model.amounts import Amounts
from app.model.plan import Revocable
from app.model.resources import Vector

_Reserved = tuple[str, Amounts, float]
"""The holder, what it takes, and since when it is reserved."""


def revocable(
    groups: Iterable[Group], *, vector: Callable[[Amounts], Vector]
) -> Iterator[Revocable]:
    """What these have that can be taken back; of one group the earlier reserved first."""
    for group in groups:
        places = [*map(_slot, group.slots.values()), *map(_member, _free_to_go(group))]
        if stands_without(group):
            yield from (_together(group, [place], vector, whole=False) for place in places)
        elif places and not is_under_way(group):
            yield _together(group, places, vector, whole=True)


def is_under_way(group: Group) -> bool:
    """Whether a member of it is on a node, or has a Binding under way."""
    return group.on_nodes > 0 or any(m.stage is Stage.BINDING for m in group.members.values())


def stands_without(group: Group) -> bool:
    """Whether the group has its minimum without members whose places can be taken back."""
    waiting = (member.part for member in _free_to_go(group) if member.arrived)
    return keeps_minimum(victim_gang(group), Counter(waiting))


def _free_to_go(group: Group) -> list[Member]:
    return [member for member in group.members.values() if member.revocable]


def _slot(slot: Slot) -> _Reserved:
    return slot.holder, slot.request, slot.since


def _member(member: Member) -> _Reserved:
    return member.pod.uid, member.pod.shape.requests, member.since


def _together(
    group: Group, places: list[_Reserved], vector: Callable[[Amounts], Vector], *, whole: bool
) -> Revocable:
    holders, requests, since = zip(*places, strict=True)
    total = vector(())
    for request, count in Counter(requests).items():
        total = total + vector(request) * count
    return Revocable(group.key, holders, total, min(since), whole)
