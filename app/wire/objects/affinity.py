"""``spec.affinity``: where a pod may go, and the one node that it is pinned to.

A required ``matchFields metadata.name In [node]`` is taken out of the terms and handed back beside
the rules, so that pods which differ in nothing but their node (a DaemonSet's, and our own pinned
ones) have equal rules. Taken out is a pin only when every term that can match has the same one:
the terms are alternatives. A term that had nothing else then holds wherever the pin does, and with
it the whole requirement.

Rules are interned and compared by identity: pods with the same affinity text (pin apart) share one
object. Terms about other pods stay as decoded until they are folded for a pod, because what they
mean depends on its namespace and labels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import Raw, Struct, field

from app.model.ids import NO_NODE, NodeName
from app.model.shape import AffinityLayout, NodeTerm, Operator, PodTerm, Requirement
from app.wire.errors import Reader
from app.wire.interning import Interned
from app.wire.objects.meta import ABSENT, Int32
from app.wire.objects.pod_terms import PodTermJson, WeightedPodTermJson, pod_term
from app.wire.objects.selectors import NodeSelectorJson, NodeTermJson, node_term, node_terms

NODE_NAME_FIELD: Final = "metadata.name"

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_AT: Final = "spec.affinity"
_NODES_AT: Final = f"{_AT}.nodeAffinity"


class _PreferredNodeJson(Struct, gc=False):
    weight: Int32 = 0
    preference: NodeTermJson | None = None


class _NodeAffinityJson(Struct, gc=False):
    required: NodeSelectorJson | None = field(default=None, name=REQUIRED)
    preferred: list[_PreferredNodeJson] | None = field(default=None, name=_PREFERRED)


class _PodAffinityJson(Struct, gc=False):
    required: list[PodTermJson] | None = field(default=None, name=REQUIRED)
    preferred: list[WeightedPodTermJson] | None = field(default=None, name=_PREFERRED)


class _AffinityJson(Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinityJson | None = None
    pod_affinity: Raw = ABSENT
    pod_anti_affinity: Raw = ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class AffinityRules:
    """An affinity without its pin. ``layout`` is None when there is no affinity object at all."""

    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()
    layout: AffinityLayout | None = None
    attract: _PodAffinityJson | None = None
    repel: _PodAffinityJson | None = None

    @property
    def looks_at_pods(self) -> bool:
        """Whether any of the rules is about other pods."""
        return self.attract is not None or self.repel is not None


class Affinity(NamedTuple):
    """The node that a pod is pinned to, or none, and the rest."""

    pinned: NodeName
    rules: AffinityRules


class PodRules(NamedTuple):
    """Terms about other pods, folded for one pod."""

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred: tuple[tuple[int, PodTerm], ...]


NO_RULES: Final = AffinityRules()
_NO_AFFINITY: Final = Affinity(NO_NODE, NO_RULES)
_NO_POD_RULES: Final = PodRules((), (), ())

_read_affinity: Reader[_AffinityJson | None] = Reader(_AffinityJson | None)
_read_pods: Reader[_PodAffinityJson | None] = Reader(_PodAffinityJson | None)

_known: Interned[bytes, Affinity] = Interned(limit=16_384)
_rules: Interned[tuple[object, ...], AffinityRules] = Interned(limit=8_192)


def affinity(raw: Raw) -> Affinity:
    """The affinity of a pod spec."""
    text = bytes(raw)
    if not text:
        return _NO_AFFINITY
    known = _known.get(text)
    return known if known is not None else _known.keep(text, _affinity(text))


def pod_rules(rules: AffinityRules, *, namespace: str, labels: Mapping[str, str]) -> PodRules:
    """What the rules about other pods mean for the pod with ``labels`` in ``namespace``."""
    if not rules.looks_at_pods:
        return _NO_POD_RULES

    def fold(json: PodTermJson, at: str) -> PodTerm:
        return pod_term(json, at, namespace=namespace, labels=labels)

    attract, repel = rules.attract, rules.repel
    return PodRules(
        affinity=tuple(fold(json, at) for json, at in _required(attract, "podAffinity")),
        anti_affinity=tuple(fold(json, at) for json, at in _required(repel, "podAntiAffinity")),
        preferred=(
            *((n, fold(json, at)) for n, json, at in _preferred(attract, "podAffinity")),
            *((-n, fold(json, at)) for n, json, at in _preferred(repel, "podAntiAffinity")),
        ),
    )


def _affinity(text: bytes) -> Affinity:
    json = _read_affinity(text, _AT)
    if json is None:
        return _NO_AFFINITY
    terms, layout = _required_terms(json.node_affinity)
    pinned, required = _without_pin(terms)
    preferred = _preferred_terms(json.node_affinity)
    attract, repel = bytes(json.pod_affinity), bytes(json.pod_anti_affinity)
    key = (required, preferred, layout, attract, repel)
    rules = _rules.get(key)
    if rules is None:
        rules = AffinityRules(
            required,
            preferred,
            layout,
            attract=_read_pods(attract, f"{_AT}.podAffinity") if attract else None,
            repel=_read_pods(repel, f"{_AT}.podAntiAffinity") if repel else None,
        )
    return Affinity(pinned, _rules.keep(key, rules))


def _required_terms(
    json: _NodeAffinityJson | None,
) -> tuple[tuple[NodeTerm, ...] | None, AffinityLayout]:
    terms = node_terms(json.required, f"{_NODES_AT}.{REQUIRED}") if json is not None else None
    if terms is None:
        return None, AffinityLayout(node_affinity=json is not None)
    return terms, AffinityLayout(
        node_affinity=True,
        required=True,
        terms_with_fields=tuple(bool(term.fields) for term in terms),
        empty_terms=tuple(i for i, term in enumerate(terms) if _is_empty(term)),
    )


def _preferred_terms(json: _NodeAffinityJson | None) -> tuple[tuple[int, NodeTerm], ...]:
    entries = json.preferred or () if json is not None else ()
    found = (
        (entry.weight, node_term(entry.preference, f"{_NODES_AT}.{_PREFERRED}[{i}].preference"))
        for i, entry in enumerate(entries)
    )
    return tuple((weight, term) for weight, term in found if weight and not _is_empty(term))


def _without_pin(
    terms: tuple[NodeTerm, ...] | None,
) -> tuple[NodeName, tuple[NodeTerm, ...] | None]:
    matching = [term for term in terms or () if not _is_empty(term)]
    pins = {pin for term in matching for pin in _pins(term)}
    if len(pins) != 1 or not all(any(_pins(term)) for term in matching):
        return NO_NODE, terms
    rest = tuple(
        NodeTerm(term.expressions, tuple(f for f in term.fields if not _is_pin(f)))
        for term in matching
    )
    return NodeName(pins.pop()), None if any(_is_empty(term) for term in rest) else rest


def _pins(term: NodeTerm) -> Iterator[str]:
    return (requirement.values[0] for requirement in term.fields if _is_pin(requirement))


def _is_pin(requirement: Requirement) -> bool:
    return (
        requirement.key == NODE_NAME_FIELD
        and requirement.operator is Operator.IN
        and len(requirement.values) == 1
    )


def _is_empty(term: NodeTerm) -> bool:
    return not term.expressions and not term.fields


def _required(json: _PodAffinityJson | None, kind: str) -> Iterator[tuple[PodTermJson, str]]:
    if json is not None:
        for i, term in enumerate(json.required or ()):
            yield term, f"{_AT}.{kind}.{REQUIRED}[{i}]"


def _preferred(json: _PodAffinityJson | None, kind: str) -> Iterator[tuple[int, PodTermJson, str]]:
    if json is not None:
        for i, term in enumerate(json.preferred or ()):
            at = f"{_AT}.{kind}.{_PREFERRED}[{i}].podAffinityTerm"
            yield term.weight, term.pod_affinity_term, at
