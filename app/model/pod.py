"""Pods as the scheduler sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from app.model.booleans import boolean
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid, group_key, solo_key
from app.model.shape import PodShape
from app.model.topology import NetworkTopology, asked_by_pod

GATE = "pumice.sh/plan"
"""The scheduling gate that keeps a pod out of the scheduler's queue until it has a place."""
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
"""Volcano's gate, and the annotation with which a pod asks for it: see :attr:`Pod.queue_first`."""
SECOND_TRY = "pumice.sh/second-try"
"""Annotation of a pod made in place of one that was refused by the only node it could go to."""
EXCHANGE = "pumice.sh/exchange"
"""Annotation: where it is ``false`` the pod goes to the node that was planned, and to no other."""

PLACED_CONDITION = "pumice.sh/Placed"
"""The condition that says of a pod behind our gate whether it has a place, and why not."""

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
TASK_SPEC = "volcano.sh/task-spec"
PREEMPTABLE = "volcano.sh/preemptable"
"""Annotation, or label, that says whether others may take the pod's place."""
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
"""Label of nodes: the zone they are in; annotation of pods and PodGroups: ``*`` for every zone."""
COOLDOWN_TIME = "volcano.sh/cooldown-time"
"""Label, or annotation: so long no pod is evicted after its start (plugin ``cdp``)."""


LAST_CHECKPOINT = "volcano.sh/last-checkpoint-time"
"""Annotation: when the pod last saved its work (RFC 3339)."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation that kubelets put on their static pods."""

GATHERING = frozenset(
    {
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
    }
)
"""Kinds that say by an annotation how many of their pods belong together."""


class TaskStatus(Enum):
    """Volcano's status of a pod (volcano.md §3.1), read off the API object; hashed by identity."""

    __hash__ = object.__hash__

    PENDING = "Pending"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


TERMINAL = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})

_EVICTED_NOBODY = "no candidate node for preemption"
"""What kube-scheduler says when it may evict on no node; it lets a nomination stand then."""


def bears_revocation(annotations: Mapping[str, str]) -> bool:
    """Whether a pod or a PodGroup says that it may be on nodes that are taken back at times."""
    every_zone = annotations.get(REVOCABLE_ZONE) == "*"
    return every_zone or boolean(annotations.get(PREEMPTABLE, "")) is True


def said_preemptable(annotations: Mapping[str, str], labels: Mapping[str, str]) -> bool | None:
    """What a pod or a PodGroup says about its being evicted for others; None: nothing.

    The annotation goes before the label. What cannot be read says no.
    """
    said = annotations.get(PREEMPTABLE, labels.get(PREEMPTABLE))
    return None if said is None else boolean(said) is True


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner reference of a pod."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def may_gather(self) -> bool:
        """Whether the owner is of a kind that can make a gang of its pods (volcano.md §5.3)."""
        return (self.api_version, self.kind) in GATHERING


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A pod; ``created`` and ``started`` are seconds since the epoch (``started`` 0: not yet).

    ``annotations`` holds only the keys Pumice reads; ``node`` is ``spec.nodeName`` or empty.
    ``pinned`` is the node that a required ``matchFields metadata.name`` names, or empty.
    ``complaint`` is what kube-scheduler said when it last found no node for the pod, or empty;
    ``refused_for`` is the reason that :data:`PLACED_CONDITION` gives for its having no place, which
    another process of ours may have written, or empty. A pod with a node shows neither.
    ``preempted``: kube-scheduler evicts the pod for another one, which is to have the room.
    """

    uid: PodUid
    namespace: str
    name: str
    resource_version: str
    scheduler: str
    shape: PodShape
    node: NodeName
    phase: str
    created: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool = False
    priority: int = 0
    priority_class: str = ""
    gates: tuple[str, ...] = ()
    pinned: NodeName = NO_NODE
    nominated: NodeName = NO_NODE
    preempts: bool = True
    owner: Owner | None = None
    started: float = 0.0
    complaint: str = ""
    refused_for: str = ""
    trouble: str = ""
    """Tells why the pod does not do its work though it has a node (kubelet); empty: it does."""
    preempted: bool = False
    grace: float = 30.0
    """The seconds that the pod may take to end once it is told to."""
    deadline: float = 0.0
    """The seconds after which the pod is ended (``activeDeadlineSeconds``); 0: it is not."""
    after: tuple[PodUid, ...] = ()
    """The members of its group that have to have places before it has one.

    These are charged for claims that it shares.
    """

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def role(self) -> str:
        """Task name inside its group (annotation or label ``volcano.sh/task-spec``), or empty."""
        return self.annotations.get(TASK_SPEC) or self.labels.get(TASK_SPEC, "")

    @property
    def topology(self) -> NetworkTopology | None:
        """The domain that the pod asks for, for its whole group (:func:`asked_by_pod`)."""
        return asked_by_pod(self.annotations)

    @property
    def group(self) -> GroupKey:
        """The group it belongs to: its PodGroup, or itself alone (volcano.md §4.2)."""
        name = self.annotations.get(GROUP_ANNOTATION)
        if name:
            return group_key(self.namespace, name)
        return solo_key(self.namespace, self.uid)

    @property
    def grouped(self) -> bool:
        """Whether the pod names a PodGroup."""
        return bool(self.annotations.get(GROUP_ANNOTATION))

    @property
    def preemptable(self) -> bool:
        """Whether the pod itself lets others have its place."""
        return self.preemptable_in(None)

    def preemptable_in(self, said_by_group: bool | None) -> bool:
        """Whether the pod may be evicted for others; a pod that says nothing goes by its group."""
        said = said_preemptable(self.annotations, self.labels)
        return (said_by_group if said is None else said) is not False

    @property
    def is_static(self) -> bool:
        """Whether a kubelet made the pod from a file; the API server only mirrors it."""
        of_node = self.owner is not None and self.owner.kind == "Node"
        return of_node or MIRROR in self.annotations

    @property
    def is_of_daemon_set(self) -> bool:
        """Whether a DaemonSet made the pod for its node."""
        return self.owner is not None and self.owner.kind == "DaemonSet"

    @property
    def queue_first(self) -> bool:
        """Whether the pod's gates go as soon as its queue has room, be there a node or not.

        From then on kube-scheduler calls the pod unschedulable, so that an autoscaler adds nodes
        (volcano.md §3.5, queue-allocation-gate).
        """
        return self.annotations.get(QUEUE_GATE) == "true"

    @property
    def exchange(self) -> Exchange:
        """The widest class that a place of the pod may be of."""
        is_settled = self.pinned or self.annotations.get(EXCHANGE) == "false"
        return NO_EXCHANGE if is_settled else ANY_EQUAL

    @property
    def own_gates(self) -> tuple[str, ...]:
        """The pod's gates that are ours to take away: Volcano's only if the pod asks for that."""
        if not self.gates:
            return ()
        ours = (GATE, QUEUE_GATE) if self.queue_first else (GATE,)
        return tuple(gate for gate in self.gates if gate in ours)

    @property
    def gated(self) -> bool:
        """Whether a gate is on it that is ours to take away."""
        return bool(self.own_gates)

    @property
    def evicted_for_on(self) -> NodeName:
        """The node for which kube-scheduler evicts others in favour of the pod.

        kube-scheduler says in the same write that it found no node for the pod. We nominate pods
        behind a gate, which it has not tried yet, and what it says of those that it binds stays as
        it is. Other pods we nominate where they keep their room, which looks like a nomination by
        kube-scheduler.
        """
        tried = self.complaint and not self.gates
        return self.nominated if tried and self.preempts else NO_NODE

    @property
    def maybe_prepared_on(self) -> NodeName:
        """Where the pod may be in PreBind, as it seems: it is nominated and was not refused."""
        return NO_NODE if self.gates or self.complaint else self.nominated

    @property
    def left_nomination(self) -> NodeName:
        """The node that the pod is nominated to without evictions, as far as it shows."""
        if self.evicted_for_on and _EVICTED_NOBODY not in self.complaint:
            return NO_NODE
        return self.nominated

    @property
    def is_second_try(self) -> bool:
        """Whether the pod stands for one that was pinned and refused."""
        return SECOND_TRY in self.annotations

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """Foreign gates: the pod takes part in no plan until they are gone."""
        if not self.gates:
            return ()
        ours = self.own_gates
        return tuple(gate for gate in self.gates if gate not in ours)

    @property
    def failed_leaving(self) -> bool:
        """Whether the pod ended on its node while it was being deleted: another one is awaited."""
        return self.deleting and bool(self.node) and self.status is TaskStatus.FAILED

    @property
    def status(self) -> TaskStatus:
        """Volcano's status; a bound pod without a kubelet's word yet is ``BOUND``."""
        if self.phase == "Succeeded":
            return TaskStatus.SUCCEEDED
        if self.phase == "Failed":
            return TaskStatus.FAILED
        if self.deleting:
            return TaskStatus.RELEASING
        if self.phase == "Running":
            return TaskStatus.RUNNING
        if self.phase == "Pending" or not self.phase:
            return TaskStatus.BOUND if self.node else TaskStatus.PENDING
        return TaskStatus.UNKNOWN
