"""What the controller remembers of a job between two looks at it.

Nothing here has to survive: without it some events are told twice, delays of which the objects keep
no time start again, and what was prepared is checked once more.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from app.controllers.job.members import Member
from app.controllers.job.policies import Decision, Happening
from app.controllers.job.slots import Refusals
from app.controllers.job.vocabulary import TARGETED, Action, Event

_QUIET_S: Final = 30.0
_LASTING: Final = frozenset({Event.POD_EVICTED, Event.POD_FAILED, Event.JOB_UPDATED})
"""What the next sync takes out of sight, and does not make good."""

Identity = tuple[str, str, str]
DelayKey = tuple[str, Event]
"""The name of the pod, empty for the job, and what happened there."""


@dataclass(frozen=True, slots=True)
class Delay:
    """What happened ``at`` is to be answered by ``action`` later, unless it is made good."""

    at: float
    action: Action
    about: Happening

    def ends_with(self, action: Action, about: Happening) -> bool:
        """Whether ``action`` does away with the delay: one of the same scope.

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
    """What is remembered of one job."""

    prepared: tuple[int, int] | None = None
    """The generation and version that everything but pods was made for."""
    objects_seen: float = float("-inf")
    """When the objects of plugins were looked at last."""
    refusals: Refusals = field(default_factory=Refusals)
    held_back: int = 0
    """Pods beyond the minimum that its queue could not hold when they were to be made."""
    waits_for_earlier: bool = False
    """Whether people were told that pods of an earlier job of its name have to go first."""
    delays: dict[DelayKey, Delay] = field(default_factory=dict)
    """What the pod there shows by itself is left out."""
    _fallen: list[Member] = field(default_factory=list)
    _first_seen: dict[tuple[Identity, float], float] = field(default_factory=dict)
    """By what happened and when it says that was: never, or later than our clock shows."""
    _announced: set[tuple[Identity, int]] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    """What policies ask for in vain, as people were told."""
    _told: tuple[str, float] = ("", float("-inf"))
    """Why the job waits, as users were told last, and when; empty: it does not any more."""
    _stranded: str = ""
    """Since when the gang runs below its minimum, as people were told last."""
    _refused_since: float | None = None
    _absent_since: float | None = None

    def since(self, happening: Happening, now: float) -> float:
        """When ``happening`` was, or was first seen where nothing tells.

        A time to come tells nothing: it is of another machine, whose clock is ahead of ours.
        """
        seen = (happening.identity, happening.at)
        if 0 < happening.at <= now and seen not in self._first_seen:
            return happening.at
        return self._first_seen.setdefault(seen, now)

    def forget_but(self, happenings: list[Happening]) -> None:
        """What is not there any more starts afresh when it comes again."""
        seen = {(happening.identity, happening.at) for happening in happenings}
        self._first_seen = {key: at for key, at in self._first_seen.items() if key in seen}
        there = {happening.identity for happening in happenings}
        self._announced = {entry for entry in self._announced if entry[0] in there}

    def announces(self, happening: Happening, since: float) -> bool:
        """Whether people are to be told now that something will follow."""
        entry = (happening.identity, int(since))
        if entry in self._announced:
            return False
        self._announced.add(entry)
        return True

    def refuses(self, text: str) -> bool:
        """Whether people are to be told now that a policy asks for something in vain."""
        if text in self._refused:
            return False
        self._refused.add(text)
        return True

    @property
    def evicted_at(self) -> dict[str, float]:
        """When pods that have a while to run again were evicted, by name."""
        return {
            name: delay.at
            for (name, event), delay in self.delays.items()
            if event is Event.POD_EVICTED
        }

    @property
    def owes_an_answer(self) -> bool:
        """Whether a policy is still to answer that the job has changed."""
        return ("", Event.JOB_UPDATED) in self.delays

    @property
    def failed(self) -> list[Happening]:
        """Failures of pods that are gone, and in whose place none has run yet."""
        return [
            replace(delay.about, at=delay.at)
            for (_, event), delay in self.delays.items()
            if event is Event.POD_FAILED
        ]

    def fell(self, member: Member) -> None:
        """A pod is gone that had failed; whether that was ever looked at is not known."""
        self._fallen.append(member)

    def fallen(self) -> list[Member]:
        """The pods that fell, each once."""
        found, self._fallen = self._fallen, []
        return found

    def sees(self, member: Member) -> None:
        """A pod is there: it tells itself that it failed, or takes the place of one evicted."""
        if member.marked:
            return
        failed = self.delays.get((member.name, Event.POD_FAILED))
        if failed is not None and (
            failed.about.uid == member.uid or not (member.deleting or member.phase == "Pending")
        ):
            del self.delays[member.name, Event.POD_FAILED]
        if not member.deleting:
            self.delays.pop((member.name, Event.POD_EVICTED), None)

    def waits(self, about: Happening, decision: Decision, since: float) -> None:
        """What happened is to be answered later."""
        if about.event in _LASTING:
            self.delays[about.pod, about.event] = Delay(since, decision.action, about)

    def acted(self, action: Action, about: Happening | None) -> None:
        """What the action takes away has no delay to wait for any more."""
        if about is None or action not in TARGETED:
            self.delays.clear()
            self.refusals = Refusals()
            return
        self.delays = {
            place: delay
            for place, delay in self.delays.items()
            if not delay.ends_with(action, about)
        }

    def strands(self, text: str) -> bool:
        """Whether people are to be told now that the gang runs below its minimum."""
        is_news, self._stranded = text != self._stranded, text
        return is_news

    def refused_s(self, now: float) -> float:
        """The API server refuses what the job needs: for how long it has."""
        if self._refused_since is None:
            self._refused_since = now
        return now - self._refused_since

    def absent_s(self, now: float) -> float:
        """Another object that the job names is not there: for how long it has not been."""
        if self._absent_since is None:
            self._absent_since = now
        return now - self._absent_since

    def all_there(self) -> None:
        """Everything that the job names is there."""
        self._absent_since = None

    def granted(self) -> None:
        """Note that the API server refuses the job nothing, or that the job needs nothing now."""
        self._refused_since = None

    def tells(self, text: str, now: float) -> bool:
        """Whether a reason for waiting is news; numbers in it change faster than people read.

        Empty: there is none. The next one is news then, if it is another or not.
        """
        told, at = self._told
        if not text:
            self._told = ("", at)
        if not text or text == told or now - at < _QUIET_S:
            return False
        self._told = (text, now)
        return True


class Memories:
    """By the UID of the job."""

    def __init__(self) -> None:
        self._known: dict[str, Memory] = {}

    def of(self, uid: str) -> Memory:
        """What is remembered of the job."""
        return self._known.setdefault(uid, Memory())

    def fell(self, uid: str, member: Member) -> None:
        """A pod of the job had failed and is gone; not of interest if the job is, too."""
        if uid in self._known:
            self._known[uid].fell(member)

    def drop(self, uid: str) -> None:
        """Drop the memory of a job that is gone."""
        self._known.pop(uid, None)
