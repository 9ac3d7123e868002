"""The NUMA nodes of a machine, and what pods need of their cpus.

A pod of the class Guaranteed has whole cpus of its own where the kubelet's CPU manager is static.
Its topology manager then looks that those of a container are on as few NUMA nodes as can be. So a
node may have cpus enough, and refuse the pod all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.model.ids import NodeName

NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
"""Annotation of a pod: the policy that its node has to have."""
NUMA_DECISION: Final = "volcano.sh/topology-decision"
"""Annotation of a pod: the cpus that it is meant to have of each NUMA node, as JSON."""
STATIC: Final = "static"

Cpus = tuple[int, ...]
"""Cpus of each NUMA node, in the order of their numbers."""


class NumaPolicy(StrEnum):
    """Policies of the topology manager."""

    UNSET = ""
    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"

    @property
    def aligns(self) -> bool:
        """Whether the manager looks at NUMA nodes at all."""
        return self not in (NumaPolicy.UNSET, NumaPolicy.NONE)


@dataclass(frozen=True, slots=True)
class NumaNeed:
    """What a pod of the class Guaranteed needs.

    ``cpus`` has the whole cpus of each container that stays, 0 where it shares its cpus.
    """

    policy: NumaPolicy
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NumaLayout:
    """The NUMA nodes of a machine and its kubelet's policies.

    ``ids`` are their numbers, ``sizes`` how many cpus each has for pods, ``static`` whether the CPU
    manager gives whole cpus away. Equal machines have equal layouts.
    """

    policy: NumaPolicy
    static: bool
    ids: tuple[int, ...]
    sizes: Cpus

    @property
    def rules(self) -> bool:
        """Whether the kubelet refuses, or aligns, pods that need whole cpus."""
        return self.static and self.policy.aligns and bool(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class NumaTopology:
    """A Numatopology object, as a node's agent wrote it.

    ``free`` are the cpus that no pod had to itself then, without those that are reserved for the
    system; ``pods`` has those that had some, by UID and by ``namespace/name``.
    """

    name: NodeName
    layout: NumaLayout
    free: Cpus
    pods: Mapping[str, Cpus] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A node with NUMA nodes as a snapshot has it.

    ``free`` are the cpus that pods may have to themselves, ``coming`` those that terminating pods
    give back.
    """

    layout: NumaLayout
    free: Cpus
    coming: Cpus
