"""Pod specs to shapes, interned so that equal pods share one.

A shape is found again by the text of the parts it is made of, without decoding them: resources,
ports, images, selectors, tolerations. (Not by the text of whole containers: environment variables
and token volumes differ between pods that are otherwise equal.) The pod's namespace and labels
belong to the key only when rules about other pods look at them, what a kubelet reports only while
the pod is resized.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Raw, Struct

from app.model.amounts import Amounts
from app.model.ids import NodeName
from app.model.numa import NumaPolicy
from app.model.pod import GATE, QUEUE_GATE
from app.model.shape import PodClaim, PodClaims, PodShape, Toleration, VolumeAsk
from app.wire.errors import Reader
from app.wire.interning import Interned
from app.wire.objects import affinity, containers, numatopologies, pod_terms
from app.wire.objects.affinity import AffinityRules
from app.wire.objects.containers import ContainerJson, Containers
from app.wire.objects.meta import ABSENT, labels
from app.wire.objects.resizes import Resize
from app.wire.objects.volumes import VolumeJson, volume_ask

_TOLERATIONS_AT: Final = "spec.tolerations"
_SELECTOR_AT: Final = "spec.nodeSelector"
_CLAIMS_AT: Final = "spec.resourceClaims"
_NO_LIST: Final = (b"", b"null", b"[]")


class GateJson(Struct, gc=False):
    """An entry of ``spec.schedulingGates``."""

    name: str = ""


class SpecJson(Struct, rename="camel", gc=False):
    """``spec`` of a pod."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_gates: list[GateJson] | None = None
    host_network: bool | None = None
    node_selector: Raw = ABSENT
    affinity: Raw = ABSENT
    tolerations: Raw = ABSENT
    topology_spread_constraints: Raw = ABSENT
    overhead: Raw = ABSENT
    resources: Raw = ABSENT
    resource_claims: Raw = ABSENT
    containers: list[ContainerJson] | None = None
    init_containers: list[ContainerJson] | None = None
    volumes: list[VolumeJson] | None = None


class _PodClaimJson(Struct, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _TolerationJson(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


_read_tolerations: Reader[list[_TolerationJson] | None] = Reader(list[_TolerationJson] | None)

_read_claims: Reader[list[_PodClaimJson] | None] = Reader(list[_PodClaimJson] | None)

_by_text: Interned[tuple[object, ...], PodShape] = Interned(limit=32_768)
_by_value: Interned[PodShape, PodShape] = Interned(limit=32_768)


def shape(
    spec: SpecJson,
    *,
    namespace: str,
    pod_labels: Mapping[str, str],
    gates: tuple[str, ...],
    resizing: Resize | None = None,
    numa_policy: str = "",
    choosing: containers.Choosing = (),
    bears_revocation: bool = False,
    claims: Iterable[str] = (),
) -> tuple[PodShape, NodeName]:
    """The shape of a pod, and the node that it is pinned to.

    ``numa_policy`` is its annotation :data:`~app.model.numa.NUMA_POLICY`, ``choosing`` are those by
    which it chooses devices. ``bears_revocation``: it may be on nodes of revocable zones.
    ``claims``: it will use these claims, though its spec does not name them.
    """
    pinned, rules = affinity.affinity(spec.affinity)
    spread_text = bytes(spec.topology_spread_constraints)
    identity: object = None
    if rules.looks_at_pods or spread_text not in _NO_LIST:
        identity = (namespace, tuple(pod_labels.items()))
    gated = GATE in gates or QUEUE_GATE in gates
    claims_text = bytes(spec.resource_claims)
    claiming = namespace if claims_text not in _NO_LIST else None
    asked = volume_ask(spec.volumes, namespace=namespace, besides=claims)
    key = (
        rules,
        gated,
        resizing,
        identity,
        spread_text,
        bytes(spec.node_selector),
        bytes(spec.tolerations),
        bytes(spec.overhead),
        bytes(spec.resources),
        spec.host_network,
        numa_policy,
        choosing,
        bears_revocation,
        claiming,
        claims_text,
        asked,
        *_container_key(spec.containers),
        None,
        *_container_key(spec.init_containers),
    )
    known = _by_text.get(key)
    if known is None:
        made = _made(
            spec,
            rules,
            requests=charge(spec, resizing),
            namespace=namespace,
            pod_labels=pod_labels,
            gated=gated,
            policy=numatopologies.numa_policy(numa_policy),
            choosing=choosing,
            bears_revocation=bears_revocation,
            volumes=asked,
        )
        known = _by_text.keep(key, _by_value.keep(made, made))
    return known, pinned


def _container_key(entries: list[ContainerJson] | None) -> list[object]:
    key: list[object] = []
    for entry in entries or ():
        key += (entry.image, bytes(entry.resources), bytes(entry.ports), entry.restart_policy)
    return key


def _made(
    spec: SpecJson,
    rules: AffinityRules,
    *,
    requests: Amounts,
    namespace: str,
    pod_labels: Mapping[str, str],
    gated: bool,
    policy: NumaPolicy,
    choosing: containers.Choosing,
    bears_revocation: bool,
    volumes: VolumeAsk | None,
) -> PodShape:
    inside = Containers(spec.containers or [], spec.init_containers or [])
    pods = affinity.pod_rules(rules, namespace=namespace, labels=pod_labels)
    constraints = _spread(spec.topology_spread_constraints)
    looks_at_pods = any((*pods, constraints))
    return PodShape(
        requests=requests,
        node_selector=tuple(sorted(labels(spec.node_selector, _SELECTOR_AT).items())),
        required_terms=rules.required,
        preferred_terms=rules.preferred,
        tolerations=_tolerations(spec.tolerations),
        host_ports=containers.host_ports(inside, host_network=bool(spec.host_network)),
        pod_affinity=pods.affinity,
        pod_anti_affinity=pods.anti_affinity,
        preferred_pods=pods.preferred,
        spread=pod_terms.spread(constraints, pod_labels),
        images=containers.images(inside),
        spread_identity=(namespace, tuple(sorted(pod_labels.items()))) if looks_at_pods else None,
        affinity_layout=rules.layout if gated else None,
        numa=containers.numa_need(inside, whole=spec.resources, policy=policy),
        devices=containers.device_ask(inside, choosing),
        qos=containers.qos_class(inside, whole=spec.resources),
        burst=containers.burst(
            requests, containers.limits(inside, whole=spec.resources, overhead=spec.overhead)
        ),
        bears_revocation=bears_revocation,
        claims=_claims(spec.resource_claims, namespace),
        volumes=volumes,
    )


def _claims(raw: Raw, namespace: str) -> PodClaims | None:
    if bytes(raw) in _NO_LIST:
        return None
    each = tuple(
        PodClaim(json.name, json.resource_claim_name or "", json.resource_claim_template_name or "")
        for json in _read_claims(raw, _CLAIMS_AT) or ()
    )
    return PodClaims(namespace, each) if each else None


def charge(spec: SpecJson, resizing: Resize | None) -> Amounts:
    """What the pod takes on a node."""
    inside = Containers(spec.containers or [], spec.init_containers or [])
    charged = resizing.charged if resizing else containers.as_asked
    return containers.requests(
        inside, whole=spec.resources, overhead=spec.overhead, charged=charged
    )


def _spread(raw: Raw) -> list[pod_terms.SpreadJson]:
    if not bytes(raw):
        return []
    return pod_terms.read_spread(raw, pod_terms.SPREAD_AT) or []


def _tolerations(raw: Raw) -> tuple[Toleration, ...]:
    """Tolerations that can be matched by equality or existence; others tolerate nothing here."""
    if not bytes(raw):
        return ()
    return tuple(
        Toleration(
            key=json.key or "",
            exists=json.operator == "Exists",
            value=json.value or "",
            effect=json.effect or "",
        )
        for json in _read_tolerations(raw, _TOLERATIONS_AT) or ()
        if json.operator in (None, "", "Equal", "Exists")
    )
