"""PodGroups that the API server was asked about a moment ago, and had.

The watch may be late to show that a group is gone, so a pod is told of one only after a look. The
pods of a workload come by the hundred, and one look is good for all of a moment: a group that is
deleted within it is like one that is deleted just after its pods were told. Not so one that is
deleted here, for want of replicas: more may be wanted at once.
"""

from typing import Final

from app.controllers.ports import Clock

KEPT_S: Final = 1.0


class Confirmed:
    """UIDs of those groups; no more than are looked for in that time."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._answered_at: dict[str, float] = {}
        """When the API server answered, the longest ago first."""
        self._removed_at = float("-inf")

    def __len__(self) -> int:
        return len(self._answered_at)

    def now(self) -> float:
        """The time of a question that is asked now."""
        return self._clock()

    def is_there(self, uid: str) -> bool:
        """Whether the group was there a moment ago."""
        return uid in self._answered_at and self._is_recent(uid)

    def note(self, uid: str, *, asked_at: float) -> None:
        """Note that an answer says that the group ``uid`` exists.

        Such an answer is not believed if the group was removed since the question.
        """
        while self._answered_at and not self._is_recent(first := next(iter(self._answered_at))):
            del self._answered_at[first]
        if asked_at > self._removed_at:
            self._answered_at.pop(uid, None)
            self._answered_at[uid] = self._clock()

    def removed(self, uid: str) -> None:
        """Note that the group ``uid`` does not exist any more."""
        self._answered_at.pop(uid, None)
        self._removed_at = self._clock()

    def _is_recent(self, uid: str) -> bool:
        """A clock that was set back makes nothing last longer."""
        return 0 <= self._clock() - self._answered_at[uid] < KEPT_S
