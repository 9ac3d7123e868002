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


@dataclass(frozen=True, slots=True)
class Tier:
    """The tier whose domains a term compares: its number, or its name where that is None."""

    number: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class GroupTerm:
    """Other groups, by labels of their PodGroups; those with places count.

    ``namespaces`` None: those of the group's own namespace. ``weight`` 0: the term is required.
    """

    groups: LabelSelector
    tier: Tier
    namespaces: LabelSelector | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PartTerm:
    """The sub-groups of these ``policies`` of ``subGroupPolicy``.

    Apart, those of a single policy keep away from each other, and those of several policies from
    those of the others only. ``weight`` 0: the term is required.
    """

    policies: tuple[str, ...]
    tier: Tier
    weight: int = 0


@dataclass(frozen=True, slots=True)
class SpreadTerm:
    """Members in ``least`` domains at least, and in ``most`` at most (None: in any number).

    ``weight`` 0: the term is required.
    """

    tier: Tier
    least: int = 1
    most: int | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True)
class TopologyAffinity:
    """Where members go by where other groups, sub-groups and members are."""

    groups_near: tuple[GroupTerm, ...] = ()
    groups_apart: tuple[GroupTerm, ...] = ()
    parts_near: tuple[PartTerm, ...] = ()
    parts_apart: tuple[PartTerm, ...] = ()
    spread: tuple[SpreadTerm, ...] = ()

    @property
    def of_groups(self) -> tuple[GroupTerm, ...]:
        """The terms about other groups."""
        return (*self.groups_near, *self.groups_apart)

    @property
    def of_parts(self) -> tuple[PartTerm, ...]:
        """The terms about sub-groups."""
        return (*self.parts_near, *self.parts_apart)

    @property
    def policies(self) -> frozenset[str]:
        """The policies that terms name."""
        return frozenset(name for term in self.of_parts for name in term.policies)
