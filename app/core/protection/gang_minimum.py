"""A gang is left with its minimum, or goes whole.

A minimum is a number of members, a number per role, and a number of whole sub-groups.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from app.core.accounts import GangAccount
from app.core.protection.victim import Victim, VictimGang
from app.model.gang import Gang
from app.model.parts import Part, by_role, by_sub_group, make_up


def keeps_minimum(gang: VictimGang, leaving: Counter[Part]) -> bool:
    """Whether ``gang`` has its minimum without so many of each part."""
    if gang.members.total() - leaving.total() < gang.min_member:
        return False
    left = gang.members - leaving
    return make_up(left, role_minimum=gang.role_minimum, policies=gang.sub_groups)


def is_left_in_part(
    gang: VictimGang, victims: Iterable[Victim], *, others: Iterable[Victim] = ()
) -> bool:
    """Whether ``gang`` would keep members, but not its minimum, once its ``victims`` are gone.

    ``others`` are members that may have been evicted before. These members may still stay, so the
    ``victims`` are the whole gang only by themselves.
    """
    mine = {victim.uid: victim for victim in victims if victim.there}
    if not mine or len(mine) >= gang.members.total() - gang.finished:
        return False
    going = {other.uid: other for other in others if other.there} | mine
    return not keeps_minimum(gang, Counter(victim.part for victim in going.values()))


def spares(
    gang: Gang, account: GangAccount, leaving: Sequence[Part], *, coming: Sequence[Part] = ()
) -> bool:
    """Whether ``gang``, as its ``account`` stands, has its minimum without the members ``leaving``.

    They are told by what they count for, and so are those ``coming`` in their stead. Slots count
    for nothing.
    """
    there, roles = account.existing(gang)
    if there + len(coming) - len(leaving) < gang.min_member:
        return False
    if not (gang.role_minimums or gang.sub_groups):
        return True
    come, gone = Counter(coming), Counter(leaving)
    roles.update(by_role(come))
    roles.subtract(by_role(gone))
    sub_groups = Counter(account.sub_group_ready)
    sub_groups.update(by_sub_group(come))
    sub_groups.subtract(by_sub_group(gone))
    return not (gang.lacking_of_roles(roles) or gang.lacking_of_policies(sub_groups))
