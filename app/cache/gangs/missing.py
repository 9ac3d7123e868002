"""Members of a minimum that do not exist, and the room that is kept for them.

Slots are made by the plan (:mod:`app.core.gangs.slots`), or for a member that was lost where it was
(:mod:`app.service.cycle.heirs`). As members come, or the minimum changes, there may be more of them
than members are missing.
"""

from collections import Counter

from app.cache.gangs.groups import Group
from app.cache.gangs.members import VALID_KINDS, Slot
from app.model.parts import by_role, by_sub_group, least_missing


def missing(group: Group) -> int:
    """How many members its minimum takes, and those of its parts, that are not there yet.

    None, where the group is stranded and was released. One that is there and cannot be placed (it
    has failed, say) is there for its role too. One that names no role, or that another scheduler
    has bound, may be of any that lacks some.
    """
    if group.is_released:
        return 0
    there = len(group.members) - group.counted.lost + group.foreign
    return max(group.min_member - there, _missing_of_roles(group), _lacking_of_sub_groups(group), 0)


def hidden_by_role(group: Group) -> Counter[str]:
    """Members that are there and cannot be placed, but those that are lost; by role."""
    hidden: Counter[str] = Counter()
    for (part, kind), count in group.counted.part_kinds.items():
        if kind not in VALID_KINDS:
            hidden[part.role] += count
    hidden.subtract(group.counted.lost_of)
    return hidden


def excess(group: Group) -> int:
    """How many slots its minimum does not need: it does not matter which."""
    return max(len(group.slots) - missing(group), 0)


def surplus(group: Group) -> list[Slot]:
    """Slots that its minimum does not need, with the members that are there by now.

    They are of roles that were guessed wrong, as members of others came instead; if these are not
    enough, any, the latest last.
    """
    more = excess(group)
    if not more:
        return []
    lacking = _lacking_of_roles(group)
    seen: Counter[str] = Counter()
    needed: list[Slot] = []
    beyond: list[Slot] = []
    for slot in group.slots.values():
        seen[slot.role] += 1
        (beyond if seen[slot.role] > lacking.get(slot.role, 0) else needed).append(slot)
    short = max(more - len(beyond), 0)
    return [*needed[len(needed) - short :], *beyond]


def slots_wanted(group: Group) -> int:
    """How many places it may want before its members exist, at most."""
    described = group.templates or (group.pod_group and group.pod_group.min_resources)
    return missing(group) if described and not awaits_nobody(group) else 0


def awaits_nobody(group: Group) -> bool:
    """Whether no room is to be kept for a member that is not there, before one comes.

    Room was kept for some that were not created; other schedulers have bound those that the group
    lacks; or the group is without the pod that owns it.
    """
    there = len(group.members) - group.counted.lost
    of_foreign_members = bool(group.foreign) and there + group.foreign >= group.min_member
    return group.given_up or group.is_released or of_foreign_members or group.without_its_pod


def knows(group: Group, slot: Slot) -> bool:
    """Whether the slot's room is for such pods as one of the role is, or as the vcjob describes."""
    template = group.templates.get(slot.role)
    shapes = [group.role_shapes.get(slot.role), template.shape if template else None]
    return any(slot.shape.fits_like(shape) for shape in shapes if shape)


def _missing_of_roles(group: Group) -> int:
    lacking = sum(_lacking_of_roles(group).values())
    return lacking - group.foreign - hidden_by_role(group)[""] if lacking else 0


def _lacking_of_roles(group: Group) -> dict[str, int]:
    """How many members roles lack of their minimums, that are not there."""
    if not group.role_minimum:
        return {}
    there = by_role(group.counted.parts(VALID_KINDS)) + hidden_by_role(group)
    return {role: max(least - there[role], 0) for role, least in group.role_minimum.items()}


def _lacking_of_sub_groups(group: Group) -> int:
    """With how many more members enough sub-groups would be whole."""
    if not group.sub_groups:
        return 0
    return least_missing(group.sub_groups, by_sub_group(group.counted.parts(VALID_KINDS)))
