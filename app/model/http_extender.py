"""What the HTTP extender is asked and has answered (volcano.md §3.6, the plugin ``extender``).

The *HTTP extender* is a server of the operator's. It is asked in the background; what it answered
is part of a snapshot, so a plan never waits for it. An answer has an age: one that is older than a
minute counts as none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.shape import PodShape

FRESH_S: Final = 60.0

T = TypeVar("T")


class Verb(StrEnum):
    """What is asked; the value names the argument ``extender.<value>Verb`` and labels metrics."""

    OPEN = "onSessionOpen"
    CLOSE = "onSessionClose"
    PREDICATE = "predicate"
    PRIORITIZE = "prioritize"
    PREEMPTABLE = "preemptable"
    RECLAIMABLE = "reclaimable"
    OVERUSED = "queueOverused"
    ENQUEUEABLE = "jobEnqueueable"
    ENQUEUED = "jobEnqueued"
    READY = "jobReady"
    ALLOCATE = "allocateFunc"
    DEALLOCATE = "deallocateFunc"


@dataclass(frozen=True, slots=True)
class HttpExtenderConf:
    """The server at ``url`` (without a slash at its end) and the path below it of each verb.

    A verb without a path is not asked. ``ignorable``: where the server fails, it is passed over.
    ``managed``: only pods that ask for one of these resources are asked about; empty: all pods.
    """

    url: str
    verbs: Mapping[Verb, str]
    timeout_s: float = 1.0
    ignorable: bool = False
    managed: frozenset[str] = frozenset()

    def asks(self, verb: Verb) -> bool:
        """Whether the verb has a path."""
        return verb in self.verbs

    def address(self, verb: Verb) -> str:
        """The URL of the verb; raises ``KeyError`` for one without a path."""
        return f"{self.url}/{self.verbs[verb]}"

    def minds(self, shape: PodShape) -> bool:
        """Whether pods of that shape are asked about."""
        if not self.managed:
            return True
        asked = {name for name, amount in shape.requests if amount}
        for container in shape.devices.containers if shape.devices is not None else ():
            asked.update(name for name, _ in container.limits)
        return not self.managed.isdisjoint(asked)


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """``value`` as of ``at`` (seconds since the epoch); None: there is no answer.

    ``problem`` says why the server did not answer. A value is there besides where it was passed
    over.
    """

    value: T | None
    at: float
    problem: str = ""

    def fresh(self, now: float) -> T | None:
        """The value, if it counts still."""
        return self.value if abs(now - self.at) <= FRESH_S else None

    def differs_from(self, before: "Answered[T] | None") -> bool:
        """Whether more than the age is another one than ``before``."""
        was = None if before is None else (before.value, before.problem)
        return was != (self.value, self.problem)


class Subject(NamedTuple):
    """Members of a group that are alike to the nodes: they are asked about once."""

    gang: GroupKey
    shape: PodShape

    @classmethod
    def of(cls, gang: GroupKey, shape: PodShape) -> "Subject":
        """Members of that shape, be it of a snapshot, which notes how other pods see it, or not."""
        if shape.spread_identity is not None:
            shape = replace(shape, spread_identity=None)
        return cls(gang, shape)


class VictimsAsked(NamedTuple):
    """Pods that are to go for ``gang``: what one ``verb`` lets go says nothing of the other."""

    gang: GroupKey
    verb: Verb


@dataclass(frozen=True, slots=True, eq=False)
class HttpExtenderFacts:
    """All answers.

    ``nodes``: why a node does not take members, empty where it does. ``scores``: by node.
    ``enqueueable``: -1 no, 0 no opinion, 1 yes. ``ready`` and ``overused`` as the verbs say.
    ``victims``: by the group that they are to be evicted for, and verb, whether a pod may go.
    """

    nodes: Mapping[Subject, Mapping[NodeName, Answered[str]]] = field(default_factory=dict)
    scores: Mapping[Subject, Answered[Mapping[NodeName, float]]] = field(default_factory=dict)
    enqueueable: Mapping[GroupKey, Answered[int]] = field(default_factory=dict)
    ready: Mapping[GroupKey, Answered[bool]] = field(default_factory=dict)
    overused: Mapping[QueueName, Answered[bool]] = field(default_factory=dict)
    victims: Mapping[VictimsAsked, Mapping[PodUid, Answered[bool]]] = field(default_factory=dict)
    problem: str = ""
    """Why nothing is asked now; empty: it is."""


NOT_ASKED: Final = HttpExtenderFacts()
