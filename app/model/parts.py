"""What of a gang its minimum is made of: members, roles, and sub-groups.

A PodGroup may part its members further (``subGroupPolicy``, volcano.md §3.1): members whose labels
have the same values belong together, and are of use only when so many of them run. Its minimum
then also says how many such sub-groups must be whole.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from app.model.shape import LabelSelector
from app.model.topology import NetworkTopology


class SubGroup(NamedTuple):
    """Members that a policy counts together: those with these values of its label keys."""

    policy: str
    values: str


NO_SUB_GROUP = SubGroup("", "")
"""The sub-group of members which no policy counts: each is of use by itself."""


class Part(NamedTuple):
    """What a member counts for beside the number of all."""

    role: str
    sub_group: SubGroup = NO_SUB_GROUP


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """One entry of ``subGroupPolicy``; ``selector`` None selects every pod.

    ``size`` members make a sub-group whole (``subGroupSize``); ``least`` sub-groups must be
    (``minSubGroups``). ``topology`` is what each sub-group asks of the network.
    """

    name: str
    keys: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    size: int = 1
    least: int = 0
    topology: NetworkTopology | None = None

    def sub_group_of(self, labels: Mapping[str, str]) -> SubGroup | None:
        """The one of a pod with these ``labels``, or None: without keys, or a value, there is none.

        Values are joined by "-", as in Volcano.
        """
        if not self.keys or (self.selector is not None and not self.selector.matches(labels)):
            return None
        values = [labels.get(key, "") for key in self.keys]
        return SubGroup(self.name, "-".join(values)) if all(values) else None

    @property
    def counts(self) -> bool:
        """Whether the policy asks for anything that a number of members does not say."""
        return self.least > 0 or self.size > 1 or self.topology is not None


Policies = tuple[SubGroupPolicy, ...]


def part_of(role: str, labels: Mapping[str, str], policies: Policies) -> Part:
    """What a member counts for: the first policy that knows it has it."""
    for policy in policies:
        sub_group = policy.sub_group_of(labels)
        if sub_group is not None:
            return Part(role, sub_group)
    return Part(role)


def by_role(parts: Mapping[Part, int]) -> Counter[str]:
    """How many of each role."""
    found: Counter[str] = Counter()
    for part, count in parts.items():
        found[part.role] += count
    return found


def by_sub_group(parts: Mapping[Part, int]) -> Counter[SubGroup]:
    """How many of each sub-group; those of none are left out."""
    found: Counter[SubGroup] = Counter()
    for part, count in parts.items():
        if part.sub_group != NO_SUB_GROUP:
            found[part.sub_group] += count
    return found


def make_up(
    have: Mapping[Part, int], *, role_minimum: Mapping[str, int], policies: Policies
) -> bool:
    """Whether ``have`` members per part are enough for each role and each policy."""
    roles = by_role(have)
    if any(roles[role] < least for role, least in role_minimum.items()):
        return False
    return not (policies and lacking_sub_groups(policies, by_sub_group(have)))


def sizes_of(policies: Policies) -> dict[str, int]:
    """How many members make a sub-group whole, by policy; of two of a name the last one counts."""
    return {policy.name: policy.size for policy in policies}


def lacking_sub_groups(policies: Policies, have: Mapping[SubGroup, int]) -> dict[str, int]:
    """How many whole sub-groups policies lack when sub-groups have so many members; those that do.

    ``have`` knows sub-groups of these policies only.
    """
    sizes = sizes_of(policies)
    lacking = {policy.name: policy.least for policy in policies}
    for sub_group, count in have.items():
        lacking[sub_group.policy] -= count >= sizes[sub_group.policy]
    return {name: count for name, count in lacking.items() if count > 0}


def least_missing(policies: Policies, have: Mapping[SubGroup, int]) -> int:
    """With how many more members at least no policy would lack whole sub-groups.

    They are those that make the fullest ones whole, and new ones where there are too few.
    """
    sizes, missing = sizes_of(policies), 0
    for name, count in lacking_sub_groups(policies, have).items():
        short = (sizes[name] - n for sub_group, n in have.items() if sub_group.policy == name)
        fullest = sorted(lack for lack in short if lack > 0)[:count]
        missing += sum(fullest) + sizes[name] * (count - len(fullest))
    return missing
