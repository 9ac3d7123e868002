"""Rules of a pod about other pods: affinity terms and topology spread constraints.

What such a rule means depends on the pod that has it: without namespaces it looks into the pod's
own, and ``matchLabelKeys`` stand for the pod's own values of those labels. Folding writes that out,
so that the planner meets plain selectors only.

The API server writes label keys into the selectors when a pod is created, but not in a template. Of
affinity the scheduler reads the selectors only, so that what is written there counts and not what
the labels have become; of spread constraints it reads the keys as well.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from app.model.shape import LabelSelector, Operator, PodTerm, Requirement, Spread
from app.wire.errors import Reader, joined
from app.wire.objects.meta import Int32
from app.wire.objects.selectors import LabelSelectorJson, label_selector

SPREAD_AT: Final = "spec.topologySpreadConstraints"


class PodTermJson(Struct, rename="camel", gc=False):
    """A ``PodAffinityTerm``."""

    topology_key: str = ""
    label_selector: LabelSelectorJson | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelectorJson | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodTermJson(Struct, rename="camel", gc=False):
    """A ``WeightedPodAffinityTerm``."""

    pod_affinity_term: PodTermJson
    weight: Int32 = 0


class SpreadJson(Struct, rename="camel", gc=False):
    """A ``TopologySpreadConstraint``."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorJson | None = None
    match_label_keys: list[str] | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


read_spread: Reader[list[SpreadJson] | None] = Reader(list[SpreadJson] | None)


def pod_term(json: PodTermJson, at: str, *, namespace: str, labels: Mapping[str, str]) -> PodTerm:
    """The term as the pod with ``labels`` in ``namespace`` means it."""
    selected = label_selector(
        json.label_selector,
        joined(at, "labelSelector"),
        also=(
            *_unwritten(json, _own(json.match_label_keys, Operator.IN, labels)),
            *_unwritten(json, _own(json.mismatch_label_keys, Operator.NOT_IN, labels)),
        ),
    )
    names = tuple(sorted(set(json.namespaces or ())))
    if not names and json.namespace_selector is None:
        names = (namespace,)
    return PodTerm(
        topology_key=json.topology_key,
        selector=selected,
        namespaces=names,
        namespace_selector=label_selector(json.namespace_selector, joined(at, "namespaceSelector")),
    )


def spread(constraints: list[SpreadJson] | None, labels: Mapping[str, str]) -> tuple[Spread, ...]:
    """The constraints as the pod with ``labels`` means them."""
    return tuple(
        Spread(
            max_skew=json.max_skew,
            topology_key=json.topology_key,
            hard=json.when_unsatisfiable != "ScheduleAnyway",
            selector=_spread_selector(json, f"{SPREAD_AT}[{i}].labelSelector", labels),
            min_domains=json.min_domains or 1,
            honor_affinity=json.node_affinity_policy != "Ignore",
            honor_taints=json.node_taints_policy == "Honor",
        )
        for i, json in enumerate(constraints or ())
    )


def _spread_selector(json: SpreadJson, at: str, labels: Mapping[str, str]) -> LabelSelector | None:
    return label_selector(
        json.label_selector, at, also=_own(json.match_label_keys, Operator.IN, labels)
    )


def _unwritten(json: PodTermJson, own: Iterator[Requirement]) -> Iterator[Requirement]:
    """The requirements of ``own`` on keys of which the selector does not say the like already."""
    expressions = json.label_selector.match_expressions if json.label_selector else None
    written = {(one.key, one.operator) for one in expressions or ()}
    return (one for one in own if (one.key, one.operator.value) not in written)


def _own(
    keys: list[str] | None, operator: Operator, labels: Mapping[str, str]
) -> Iterator[Requirement]:
    for key in keys or ():
        if key in labels:
            yield Requirement(key, operator, (labels[key],))
