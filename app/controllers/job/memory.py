"""What the controller remembers of a job between two looks at it.

Nothing here has to survive: without it some events are told twice, delays of which the objects keep
no time start again, and what was prepared is checked once more.
"""

from dataclasses import dataclass, field
from typing import Final

from app.controllers.job.policies import Decision, Happening
from app.controllers.job.slots import Refusals
from app.controllers.job.vocabulary import TARGETED, Action, Event

_QUIET_S: Final = 30.0

Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has a while to run again before ``action``; evicted ``at``."""

    at: float
    action: Action
    about: Happening

    def ends_with(self, action: Action, about: Happening) -> bool:
        """Whether ``action`` does away with it: one of the same scope.

        What is to happen to the job goes on when only some pods are restarted; and what is to
        happen to a pod is another matter than what has happened to its task.
        """
        if action is not self.action or about.task != self.about.task:
            return False
        if action is Action.RESTART_POD:
            return about.pod == self.about.pod
        return action is Action.RESTART_TASK or about.partition == self.about.partition


@dataclass(slots=True)
class Memory:
    """Of one job."""

    prepared: tuple[int, int] | None = None
    """The generation and version that everything but pods was made for."""
    refusals: Refusals = field(default_factory=Refusals)
    evicted: dict[str, Eviction] = field(default_factory=dict)
    """By the name of the pod."""
    strikes: int = 0
    """Times in a row that the API server refused what the job needs."""
    _first_seen: dict[Identity, float] = field(default_factory=dict)
    _announced: set[tuple[Identity, int]] = field(default_factory=set)
    _told: tuple[str, float] = ("", 0.0)

    def since(self, happening: Happening, now: float) -> float:
        """When it happened, or was first seen where nothing tells."""
        if happening.at:
            return happening.at
        return self._first_seen.setdefault(happening.identity, now)

    def forget_but(self, happenings: list[Happening]) -> None:
        """What is not there any more starts afresh when it comes again."""
        there = {happening.identity for happening in happenings}
        for identity in set(self._first_seen) - there:
            del self._first_seen[identity]
        self._announced = {entry for entry in self._announced if entry[0] in there}

    def announces(self, happening: Happening, since: float) -> bool:
        """Whether people are to be told now that something will follow."""
        entry = (happening.identity, int(since))
        if entry in self._announced:
            return False
        self._announced.add(entry)
        return True

    @property
    def evicted_at(self) -> dict[str, float]:
        """When pods that have a while to run again were evicted, by name."""
        return {name: eviction.at for name, eviction in self.evicted.items()}

    def waits(self, about: Happening, decision: Decision, since: float) -> None:
        """What happened is to be answered later."""
        if about.event is Event.POD_EVICTED:
            self.evicted[about.pod] = Eviction(since, decision.action, about)

    def acted(self, action: Action, about: Happening | None) -> None:
        """What the action takes away has no delay to wait for any more."""
        if about is None or action not in TARGETED:
            self.evicted.clear()
            self.refusals = Refusals()
            return
        self.evicted = {
            name: eviction
            for name, eviction in self.evicted.items()
            if not eviction.ends_with(action, about)
        }

    def tells(self, text: str, now: float) -> bool:
        """Whether a reason for waiting is news; numbers in it change faster than people read."""
        told, at = self._told
        if text == told or (told and now - at < _QUIET_S):
            return False
        self._told = (text, now)
        return True


class Memories:
    """By the UID of the job."""

    def __init__(self) -> None:
        self._known: dict[str, Memory] = {}

    def of(self, uid: str) -> Memory:
        """What is remembered of it."""
        return self._known.setdefault(uid, Memory())

    def drop(self, uid: str) -> None:
        """It is gone."""
        self._known.pop(uid, None)
