"""What a gang lacks of its minimum.

A minimum is a number of members, and a number per role; roles count only when ``minMember`` covers
the sum of their minimums (a smaller one says that any members will do). Unlike Volcano, members
that request nothing do not count before they have a node: the promise is that of whole gangs.
"""

from dataclasses import dataclass

from app.core.ledger import GangAccount
from app.model.gang import Gang, Task


@dataclass(slots=True)
class Need:
    """Members still to be placed: ``total`` in all, ``roles`` those of roles that lack some.

    ``of_roles`` is the sum of ``roles``.
    """

    total: int
    roles: dict[str, int]
    of_roles: int

    @classmethod
    def of(cls, gang: Gang, account: GangAccount) -> "Need":
        """What ``gang`` lacks as its account stands."""
        if not gang.role_minimum:
            return cls(gang.min_member - account.ready, {}, 0)
        roles = gang.lacking_of_roles(account.role_ready)
        return cls(gang.min_member - account.ready, roles, sum(roles.values()))

    @property
    def members(self) -> int:
        """How many members must be placed at least."""
        return max(self.total, self.of_roles)

    def copy(self) -> "Need":
        """The same, to count down on."""
        return Need(self.total, dict(self.roles), self.of_roles)

    @property
    def met(self) -> bool:
        """Whether nothing is lacking."""
        return self.total <= 0 and not self.of_roles

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

        A gang that has it and is kept back all the same (by a plugin) takes anybody.
        """
        return self.total > self.of_roles or self.is_of_role(role) or self.met

    def place(self, role: str) -> None:
        """A member of ``role`` got a node."""
        self.total -= 1
        if self.is_of_role(role):
            self.roles[role] -= 1
            self.of_roles -= 1
