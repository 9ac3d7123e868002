"""Evictions that the planner decided, as values.

A decision names the pods that go and the places that the preemptor has once they are gone. It is
made whole or not at all: no pod goes before every place of the preemptor is proven. What is stored
of a decision before the first eviction is its *intent*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Task
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.parts import NO_SUB_GROUP, SubGroup


class EvictionAction(StrEnum):
    """The actions that evict; the value is the name in a configuration, an event and a metric."""

    PREEMPT = "preempt"
    RECLAIM = "reclaim"
    GANG_PREEMPT = "gangpreempt"
    GANG_RECLAIM = "gangreclaim"
    SHUFFLE = "shuffle"
    OVER_CAPABILITY = "over-capability"
    """No action of a configuration: asked for by an annotation of a queue."""
    REVOKE = "revoke"
    """Part of the action ``preempt``: pods leave nodes that are theirs no more."""

    @property
    def reclaims(self) -> bool:
        """Whether the victims are in other queues than the preemptor."""
        return self in (EvictionAction.RECLAIM, EvictionAction.GANG_RECLAIM)


@dataclass(frozen=True, slots=True)
class VictimPod:
    """A pod that is to be evicted from ``node``.

    ``rule`` names the plugin whose rule allows it. ``gang`` and ``queue`` are those of the pod.
    """

    uid: PodUid
    namespace: str
    name: str
    node: NodeName
    gang: GroupKey
    queue: QueueName
    rule: str


@dataclass(frozen=True, slots=True, eq=False)
class PipelinedPlace:
    """``task`` (a pod or a slot) goes to ``node`` once the victims are gone.

    ``sub_group`` is the one that the place is for; that of none: a member of any may have it.
    """

    task: Task
    node: NodeName
    exchange: Exchange = ANY_EQUAL
    sub_group: SubGroup = NO_SUB_GROUP


@dataclass(frozen=True, slots=True, eq=False)
class EvictionPlan:
    """The ``victims`` go, and then the gang ``preemptor`` has its ``places``, all of them.

    ``shuffle``, ``over-capability`` and ``revoke`` evict for no preemptor: then ``preemptor`` is
    empty and there are no places. Without victims the places are on room that other pods are about
    to leave.
    ``admits``: the group is admitted by the same decision. ``certificate`` is the JSON value that
    ``pumice check-eviction`` verifies (:mod:`app.core.victims.certificate`).
    """

    action: EvictionAction
    preemptor: GroupKey
    victims: tuple[VictimPod, ...]
    places: tuple[PipelinedPlace, ...] = ()
    admits: bool = False
    certificate: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IntendedPlace:
    """A place of a pod, or of a slot (no ``uid``) of that ``role``, as it is stored."""

    uid: PodUid
    name: str
    role: str
    node: NodeName
    exchange: Exchange = ANY_EQUAL


@dataclass(frozen=True, slots=True)
class Intent:
    """An eviction plan as it is stored, from which a later process goes on.

    ``uid`` is that of the PodGroup (of the pod, where it stands alone). ``generation`` is that of
    the snapshot that it was decided on, ``decided`` when (seconds since the epoch).
    """

    action: EvictionAction
    preemptor: GroupKey
    uid: str
    victims: tuple[VictimPod, ...]
    places: tuple[IntendedPlace, ...]
    admits: bool
    generation: int
    decided: float
    certificate: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GangEviction:
    """How ``gangpreempt`` or ``gangreclaim`` looks for victims.

    ``most_domains``: in so many domains at most, of all tiers together; None: as many of each tier
    as plugins say. ``whole``: gangs may go whole, not only members beyond their minimum.
    """

    most_domains: int | None = None
    whole: bool = True


GangEvictions = Mapping[EvictionAction, GangEviction]
"""Actions that are not there look for victims as they do by default."""
