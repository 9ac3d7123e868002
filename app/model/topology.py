"""HyperNodes, and what groups ask of the network (volcano.md §2.7, §3.6).

A HyperNode is a set of nodes that are close to each other; the lower its tier, the closer. Its
members are nodes and other HyperNodes, of whatever depth.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.model.shape import LabelSelector

ALLOCATED: Final = "volcano.sh/job-allocated-hypernode"
"""Annotation of a PodGroup: the domain that its minimum was given."""


REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"
"""Kueue's annotations of pods: the label of nodes that has to have one value for all, or should."""


class TopologyMode(StrEnum):
    """What a group asks for: one domain or no place (hard), or one domain if there is room."""

    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How close members have to be: all of them in one domain of no higher tier than that.

    ``highest_tier`` None and ``highest_tier_name`` empty: of any tier, the whole cluster included.
    """

    mode: TopologyMode = TopologyMode.HARD
    highest_tier: int | None = None
    highest_tier_name: str = ""

    @property
    def is_hard(self) -> bool:
        """Whether members get no places rather than places that are farther apart."""
        named = self.highest_tier is not None or bool(self.highest_tier_name)
        return self.mode is TopologyMode.HARD and named


def asked_by_pod(annotations: Mapping[str, str]) -> NetworkTopology | None:
    """What a pod asks for that has Kueue's annotations; None: nothing.

    The label is the name of a tier, as it is where labels of nodes tell the tiers.
    """
    for key, mode in ((REQUIRED, TopologyMode.HARD), (PREFERRED, TopologyMode.SOFT)):
        label = annotations.get(key)
        if label:
            return NetworkTopology(mode, highest_tier_name=label)
    return None


def strictest(asked: Iterable[NetworkTopology]) -> NetworkTopology | None:
    """Of what pods of a group ask for what counts for all: hard goes before soft, then by name."""
    return min(asked, key=lambda each: (not each.is_hard, each.highest_tier_name), default=None)


@dataclass(frozen=True, slots=True)
class HyperNodeMember:
    """One entry of ``members``: those nodes, or those HyperNodes, that it selects.

    Of ``name``, ``pattern`` and ``labels`` the one that is set counts. ``problem`` says why
    the selector means nothing; empty: it means something.
    """

    is_node: bool
    name: str | None = None
    pattern: str | None = None
    labels: LabelSelector | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A HyperNode object."""

    name: str
    tier: int
    tier_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    members: tuple[HyperNodeMember, ...] = ()
