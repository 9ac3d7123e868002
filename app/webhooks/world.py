"""What rules may ask: the request, the cluster as far as it matters, and the options."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from app.webhooks.resource_groups import ResourceGroup
from app.wire.unstructured import Object

Operation = Literal["CREATE", "UPDATE", "DELETE"]


class Facts(Protocol):
    """What is in the cluster besides the object."""

    def queue(self, name: str) -> Object | None:
        """The queue of that name."""

    def queues(self) -> Iterable[Object]:
        """All queues."""

    def groups_in(self, queue: str) -> int:
        """How many PodGroups name that queue."""

    def has_priority_class(self, name: str) -> bool:
        """Whether there is one of that name."""

    def priority(self, name: str) -> int:
        """The value of the priority class of that name; 0 without one."""

    def node_sizes(self) -> Iterable[Mapping[str, int]]:
        """What the nodes can give; nodes that can give the same count once."""

    def total(self) -> Mapping[str, int]:
        """What all nodes together can give."""

    def namespace_annotations(self, namespace: str) -> Mapping[str, str]:
        """Annotations of a namespace; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the rules are set."""

    schedulers: tuple[str, ...] = ("volcano",)
    """Scheduler names that are ours; the first is the default."""
    max_queue_depth: int = 5
    protect_root: bool = True
    """Refuse changes of the root queue's resources."""
    check_allocated: bool = False
    """Refuse to delete queues that have pods."""
    loose_volumes: bool = False
    """Only warn about volumes of jobs as Volcano's first releases took them."""
    gate_pods: bool = False
    """Gate pods of ours here, for API servers without mutating policies."""
    queue_gates: bool = False
    """Volcano's feature SchedulingGatesQueueAdmission."""
    resource_groups: tuple[ResourceGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """Facts and options together."""

    facts: Facts
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One change of one object; ``item`` is empty on DELETE, ``old`` on CREATE."""

    operation: Operation
    item: Object
    old: Object
    namespace: str = ""
    name: str = ""
