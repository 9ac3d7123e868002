"""What a gang lacks of its minimum.

A minimum is a number of members, and a number per role; roles count only when ``minMember`` covers
the sum of their minimums (a smaller one says that any members will do). A gang that is parted needs
sub-groups that are whole besides. Unlike Volcano, members that request nothing do not count before
they have a node: what is placed are whole gangs.
"""

from dataclasses import dataclass, field

from app.core.accounts import GangAccount
from app.model.gang import Gang, Task
from app.model.parts import SubGroup, least_missing, sizes_of


@dataclass(slots=True)
class Need:
    """Members still to be placed: ``total`` in all, ``roles`` those of roles that lack some.

    ``of_roles`` is the sum of ``roles``. ``policies`` are those that lack whole sub-groups, and how
    many; ``of_policies`` members at least make these whole.
    """

    total: int
    roles: dict[str, int]
    of_roles: int
    policies: dict[str, int] = field(default_factory=dict)
    of_policies: int = 0

    @classmethod
    def of(cls, gang: Gang, account: GangAccount) -> "Need":
        """What ``gang`` lacks as its account stands."""
        total = gang.min_member - account.ready
        if not (gang.role_minimum or gang.sub_groups):
            return cls(total, {}, 0)
        roles = gang.lacking_of_roles(account.role_ready)
        policies = gang.lacking_of_policies(account.sub_group_ready)
        missing = _least_missing(gang, account) if policies else 0
        return cls(total, roles, sum(roles.values()), policies, missing)

    @property
    def members(self) -> int:
        """How many members must be placed at least."""
        return max(self.total, self.of_roles, self.of_policies)

    def copy(self) -> "Need":
        """A copy, to count down on."""
        roles, policies = dict(self.roles), dict(self.policies)
        return Need(self.total, roles, self.of_roles, policies, self.of_policies)

    @property
    def met(self) -> bool:
        """Whether nothing is lacking."""
        return self.total <= 0 and not self.of_roles and not self.policies

    def needed_first(self, tasks: list[Task]) -> list[Task]:
        """``tasks`` with those first that the minimums of roles need."""
        if not self.roles:
            return tasks
        lacking = dict(self.roles)
        first: list[Task] = []
        rest: list[Task] = []
        for task in tasks:
            needed = lacking.get(task.role, 0) > 0
            if needed:
                lacking[task.role] -= 1
            (first if needed else rest).append(task)
        return first + rest

    def is_of_role(self, role: str) -> bool:
        """Whether one more member of ``role`` is needed for the role's own minimum."""
        return self.roles.get(role, 0) > 0

    def takes(self, role: str) -> bool:
        """Whether one more member of ``role`` brings the gang nearer to its minimum.

        A gang that has it and is kept back all the same (by a plugin) takes any member.
        """
        return self.total > self.of_roles or self.is_of_role(role) or self.met

    def place(self, role: str) -> None:
        """A member of ``role`` got a node."""
        self.total -= 1
        if self.is_of_role(role):
            self.roles[role] -= 1
            self.of_roles -= 1

    def make_whole(self, sub_group: SubGroup) -> None:
        """``sub_group`` has all its members now."""
        lacking = self.policies.pop(sub_group.policy, 0) - 1
        if lacking > 0:
            self.policies[sub_group.policy] = lacking


def _least_missing(gang: Gang, account: GangAccount) -> int:
    """How many members its policies need at least, of the sub-groups that can still be whole."""
    able, sizes = gang.sub_group_able, sizes_of(gang.sub_groups)
    there = account.sub_group_ready.items()
    have = {of: count for of, count in there if able[of] >= sizes[of.policy]}
    return least_missing(gang.sub_groups, have)
