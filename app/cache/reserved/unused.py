"""Reservations that are not used in time: no call came for a place, or no member to a slot."""

from collections.abc import Iterable

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Stage
from app.cache.gangs.prebind import is_on_its_way
from app.model.ids import PodUid


def overdue(
    reserved: Iterable[Group], *, before: float, prebind_before: float
) -> list[tuple[Group, tuple[PodUid, ...]]]:
    """Members that got their place before that time and that no call came for, by group.

    Those in PreBind have time from ``prebind_before`` on.
    """
    late: list[tuple[Group, tuple[PodUid, ...]]] = []
    for group in reserved:
        uids = tuple(
            m.pod.uid
            for m in group.members.values()
            if m.stage is Stage.PLANNED and not m.pod.node and m.since < before
            if not is_on_its_way(m, before=prebind_before)
        )
        if uids:
            late.append((group, uids))
    return late


def stale_slots(reserved: Iterable[Group], *, before: float) -> list[Group]:
    """Groups with slots older than that time, none of which was filled since.

    A job makes a member anew that its gang has lost, however long that takes: not its slots.
    """
    return [
        group
        for group in reserved
        if group.filled_at < before
        and not (group.owed and group.templates)
        and any(slot.since < before for slot in group.slots.values())
    ]
