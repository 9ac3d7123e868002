"""What a gang has reached of a minimum: the number of members, and that of each of its parts.

A gang that lost members which it had goes before all queues. What it asks for beyond them takes the
turn of its queue, or a gang could raise its minimum to overtake all others. So each gang remembers
the largest minimum that it has had on nodes, and keeps it in an annotation for the next process.
Numbers are kept by name, so that :class:`~collections.Counter` compares them part by part.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from app.model.parts import Part, Policies, by_role, by_sub_group, sizes_of

REACHED: Final = "pumice.sh/reached"
"""The annotation of a PodGroup. A ValidatingAdmissionPolicy keeps it for our service accounts."""

MEMBERS: Final = "members"
_ROLE: Final = "task/"
_POLICY: Final = "subGroups/"

Numbers = Counter[str]


def asked(members: int, role_minimum: Mapping[str, int], policies: Policies) -> Numbers:
    """A minimum as numbers."""
    numbers = Counter({MEMBERS: members})
    numbers.update({_ROLE + role: least for role, least in role_minimum.items()})
    numbers.update({_POLICY + policy.name: policy.least for policy in policies})
    return +numbers


def counted(members: int, parts: Mapping[Part, int], policies: Policies) -> Numbers:
    """``members`` members, these per part, as numbers that compare with a minimum."""
    numbers = Counter({MEMBERS: members})
    numbers.update({_ROLE + role: count for role, count in by_role(parts).items()})
    sizes = sizes_of(policies)
    for sub_group, count in by_sub_group(parts).items():
        numbers[_POLICY + sub_group.policy] += count >= sizes[sub_group.policy]
    return +numbers


def of_role(numbers: Numbers, role: str) -> int:
    """How many members of ``role`` they say."""
    return numbers[_ROLE + role]


def of_policy(numbers: Numbers, policy: str) -> int:
    """How many whole sub-groups of ``policy`` they say."""
    return numbers[_POLICY + policy]
