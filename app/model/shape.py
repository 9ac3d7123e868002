"""What a pod asks of a node: equal shapes fit the same nodes.

Shapes are hashable and interned by the decoder, so a job of a thousand equal pods has one shape and
feasibility and scores are worked out once for all of them. The node that a pod is pinned to by
``matchFields metadata.name`` is *not* part of the shape (it is ``Pod.pinned``): DaemonSet-like pods
stay equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from app.model.amounts import Amounts
from app.model.devices import DeviceAsk
from app.model.integers import int64
from app.model.numa import NumaNeed


class Operator(StrEnum):
    """Operators of node and label selectors."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """``key operator values``; a missing key satisfies ``NotIn`` and ``DoesNotExist`` only."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` satisfy the requirement.

        ``Gt`` and ``Lt`` compare integers, else they are false.
        """
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        have, bound = int64(value), int64(self.values[0]) if self.values else None
        if have is None or bound is None:
            return False
        return have > bound if self.operator is Operator.GREATER else have < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All ``requirements`` must hold; none means everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` satisfy every requirement."""
        return all(r.matches(labels) for r in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One node selector term: all its label ``expressions`` and ``fields`` (``metadata.name``).

    A term with neither matches no node, as in the stock scheduler.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One pod (anti-)affinity term. ``selector`` None matches no pod.

    ``namespaces`` are explicit names, the pod's own included when the manifest names none;
    ``namespace_selector`` None adds nothing.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """One topology spread constraint (``whenUnsatisfiable: DoNotSchedule`` when ``hard``)."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    @property
    def bears_pin(self) -> bool:
        """Whether kube-scheduler takes pods that are pinned to where the rule is kept.

        Of a pinned pod it looks at its own node only, which is less than several domains. Where
        affinity is not honoured it looks at all nodes, and misses the members that come later.
        """
        return not self.hard or (self.honor_affinity and self.min_domains <= 1)


@dataclass(frozen=True, slots=True)
class Toleration:
    """``key`` and ``effect`` empty match all; ``exists`` ignores the value."""

    key: str = ""
    exists: bool = False
    value: str = ""
    effect: str = ""


class QosClass(IntEnum):
    """The class that Kubernetes gives a pod by its requests and limits; the lower goes first."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port taken on the node; ``ip`` ``0.0.0.0`` conflicts with every address."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of ``spec.resourceClaims``: a ResourceClaim, or a template that one is made of.

    One of ``claim`` and ``template`` is empty.
    """

    entry: str
    claim: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of devices that pods of a namespace make."""

    namespace: str
    each: tuple[PodClaim, ...]

    @property
    def shared(self) -> tuple[str, ...]:
        """The keys of those that other pods may name too, ``namespace/name``."""
        return tuple(f"{self.namespace}/{one.claim}" for one in self.each if one.claim)


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """What a PersistentVolumeClaim asks for; ``size`` in bytes.

    ``storage_class`` None: the default one. ``block``: a device without a file system.
    """

    storage_class: str | None = None
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class VolumeAsk:
    """The volumes that a pod uses.

    ``claims`` are keys (``namespace/name``) of claims that exist without it, sorted. ``own`` are
    claims that are made for no other pod.
    """

    claims: tuple[str, ...] = ()
    own: tuple[ClaimSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything a node must offer. ``requests`` always holds ``pods: 1``.

    ``spread_identity``, the pair ``(namespace, labels)`` that inter-pod rules count this pod as, is
    there when the pod has such rules itself, and in a snapshot when any pod has
    (:mod:`app.cache.neighbours.identities`).
    ``affinity_layout`` tells the patch that pins a pod behind our gate what is there already: None
    when the pod has no affinity at all (or is not gated).
    """

    requests: Amounts
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeTerm, ...] | None = None
    preferred_terms: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[int, PodTerm], ...] = ()
    """Preferred affinity (positive weight) and anti-affinity (negative weight) terms."""
    spread: tuple[Spread, ...] = ()
    images: tuple[str, ...] = ()
    spread_identity: tuple[str, tuple[tuple[str, str], ...]] | None = None
    affinity_layout: "AffinityLayout | None" = None
    numa: NumaNeed | None = None
    """The cpus that it needs for itself; None: none, its class is not Guaranteed."""
    devices: DeviceAsk | None = None
    """The extended resources of its containers, by which devices are asked for; None: none."""
    burst: Amounts = ()
    """The cpu and memory that it may use beyond its requests, as its limits say."""
    qos: QosClass = QosClass.BURSTABLE
    bears_revocation: bool = False
    """Nodes of revocable zones take the pod (the plugin ``tdm``)."""
    claims: PodClaims | None = None
    """The devices that it claims; None: none. ``requests`` has them once the claims are known."""
    volumes: VolumeAsk | None = None
    """The volumes that it uses by claims; None: none."""

    def fits_like(self, other: "PodShape") -> bool:
        """Whether room kept for ``other`` serves it: the same requests and the same hard rules.

        Tolerations and preferences are left out: they widen or order the choice of nodes.
        """
        return self is other or (
            self.requests == other.requests
            and self.node_selector == other.node_selector
            and self.required_terms == other.required_terms
            and self.host_ports == other.host_ports
            and self.pod_affinity == other.pod_affinity
            and self.pod_anti_affinity == other.pod_anti_affinity
            and self.spread == other.spread
            and self.numa == other.numa
            and self.devices == other.devices
            and self.bears_revocation == other.bears_revocation
            and self.claims == other.claims
            and self.volumes == other.volumes
        )

    @property
    def bears_pin(self) -> bool:
        """Whether kube-scheduler takes it where it is pinned to, once it has its place."""
        return all(rule.bears_pin for rule in self.spread)

    @property
    def must_spread(self) -> bool:
        """Whether places of other pods may keep the pod off a node now, and not a moment later."""
        return any(rule.hard for rule in self.spread)

    @property
    def looks_at_pods(self) -> bool:
        """Whether other pods' labels decide where it fits."""
        return bool(
            self.pod_affinity or self.pod_anti_affinity or self.preferred_pods or self.spread
        )


@dataclass(frozen=True, slots=True)
class AffinityLayout:
    """Which JSON objects exist under ``spec.affinity`` (for the pinning patch)."""

    node_affinity: bool = False
    required: bool = False
    terms_with_fields: tuple[bool, ...] = ()
    empty_terms: tuple[int, ...] = ()
    """Indices of terms that match nothing, and that the API server keeps empty."""
