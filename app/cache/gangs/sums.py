"""What the groups of each queue amount to, kept by differences (:mod:`app.core.sums`)."""

from dataclasses import dataclass, field

from app.core.sums import Part, usage_of
from app.model.ids import QueueName
from app.model.resources import Matrix
from app.model.snapshot import QueueUsage


@dataclass(slots=True, eq=False)
class QueueSums:
    """Sums per queue; queues without groups have none."""

    _sums: dict[QueueName, Matrix] = field(default_factory=dict)
    _groups: dict[QueueName, int] = field(default_factory=dict)
    _usage: dict[QueueName, QueueUsage] = field(default_factory=dict)
    """Made when asked for, and void once the sum changes."""

    def put(self, part: Part) -> None:
        """A group joined its queue."""
        name, amounts = part
        if name in self._sums:
            self._sums[name] += amounts
        else:
            self._sums[name] = amounts.copy()
        self._groups[name] = self._groups.get(name, 0) + 1
        self._usage.pop(name, None)

    def take(self, part: Part) -> None:
        """Take out the part of a group that left."""
        name, amounts = part
        self._sums[name] -= amounts
        self._groups[name] -= 1
        self._usage.pop(name, None)
        if not self._groups[name]:
            del self._sums[name], self._groups[name]

    def clear(self) -> None:
        """Forget all."""
        self._sums.clear()
        self._groups.clear()
        self._usage.clear()

    def usage(self) -> dict[QueueName, QueueUsage]:
        """All sums as they are now; later changes do not show in what was returned."""
        for name in self._sums.keys() - self._usage.keys():
            self._usage[name] = usage_of(self._sums[name].copy(), groups=self._groups[name])
        return dict(self._usage)
