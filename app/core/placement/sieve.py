"""A quick look before a question about pods is asked: whether the answer can be other than zero.

Most selectors name a label and the values it may have (``app in (web)``). A pod without any of
those labels is not selected, so with many selectors and many kinds of pods nearly all pairs are
settled by two sets that have nothing in common.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.model.shape import Operator, PodShape, PodTerm

Labels = frozenset[tuple[str, str]]


def named_by(terms: Iterable[PodTerm]) -> Labels | None:
    """Labels of which a pod has one when any of ``terms`` selects it; None: it need not."""
    named: set[tuple[str, str]] = set()
    for term in terms:
        if term.selector is None:
            continue
        of_values = (r for r in term.selector.requirements if r.operator is Operator.IN)
        requirement = next(of_values, None)
        if requirement is None:
            return None
        named.update((requirement.key, value) for value in requirement.values)
    return frozenset(named)


@dataclass(frozen=True, slots=True)
class Traits:
    """What a question may look for in a kind of pods: labels, and what its own terms name."""

    labels: Labels
    repels: Labels | None
    attracts: Labels | None

    @classmethod
    def of(cls, shape: PodShape, labels: Iterable[tuple[str, str]]) -> "Traits":
        """The traits of pods of ``shape`` with ``labels``."""
        attracts = (*shape.pod_affinity, *(term for _, term in shape.preferred_pods))
        return cls(frozenset(labels), named_by(shape.pod_anti_affinity), named_by(attracts))


@dataclass(frozen=True, slots=True)
class Sieve:
    """What a question looks for, None where it cannot tell.

    ``selected``: the pod has one of these labels. ``repelled``, ``attracted``: a term of the pod
    names one of these.
    """

    selected: Labels | None = None
    repelled: Labels | None = None
    attracted: Labels | None = None

    def passes(self, traits: Traits) -> bool:
        """Whether pods with ``traits`` may count."""
        return not (
            _differ(self.selected, traits.labels)
            or _differ(self.repelled, traits.repels)
            or _differ(self.attracted, traits.attracts)
        )


def _differ(wanted: Labels | None, there: Labels | None) -> bool:
    return wanted is not None and there is not None and wanted.isdisjoint(there)
