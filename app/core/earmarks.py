"""Room in queues that is kept for members which only lack a node (earmarks)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.model.gang import Gang, Task
from app.model.ids import PodUid, QueueName
from app.model.resources import Vector


class KeptInQueue(NamedTuple):
    """What a queue counts as holding for a gang that has waited for long, shape ``(R,)``.

    ``until`` is in seconds since the epoch.
    """

    gang: Gang
    asked: Vector
    until: float


class Earmarks:
    """What queues keep for such members; ``path`` gives a queue and its ancestors."""

    def __init__(self, path: Callable[[QueueName], Sequence[QueueName]]) -> None:
        self._path = path
        self._members: set[PodUid] = set()
        self._own: dict[QueueName, Vector] = {}
        self._tree: dict[QueueName, Vector] = {}

    def add(self, queue: QueueName, task: Task) -> None:
        """``queue`` keeps room for ``task`` from now on."""
        self._members.add(task.uid)
        self.change(queue, task.request)

    def remove(self, queue: QueueName, task: Task) -> None:
        """``queue`` keeps room for ``task`` no longer."""
        self._members.remove(task.uid)
        self.change(queue, -task.request)

    def change(self, queue: QueueName, delta: Vector) -> None:
        """``queue`` keeps so much more, shape ``(R,)``, for the members that it keeps room for."""
        self._own[queue] = self._own.get(queue, 0) + delta
        for name in self._path(queue):
            self._tree[name] = self._tree.get(name, 0) + delta

    def has(self, task: Task) -> bool:
        """Whether ``task`` is a member that room is kept for."""
        return task.uid in self._members

    def of(self, queue: QueueName, *, against: Task, below: bool) -> Vector | None:
        """What ``queue`` keeps for members that only lack a node; None: nothing ``against`` it.

        With ``below`` its descendants count with it. Such members are not kept back by each other:
        when the limit is lowered, none of them would ever run (as in Volcano).
        """
        if self.has(against):
            return None
        return (self._tree if below else self._own).get(queue)
