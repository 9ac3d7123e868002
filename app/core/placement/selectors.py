"""``nodeSelector`` and node affinity over the whole node table.

Terms are ORed, what is inside a term is ANDed, and a term with neither expressions nor fields
matches no node, as in the stock scheduler.
"""

from collections.abc import Sequence

import numpy as np

from app.core.placement.arrays import FULL_SCORE
from app.core.placement.labels import LabelIndex
from app.model.node import Node
from app.model.resources import Mask, Scores
from app.model.shape import NodeTerm, Operator, PodShape, Requirement

NAME_FIELD = "metadata.name"


class NodeSelectors:
    """Answers for the nodes it was built on, in table order."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.labels = LabelIndex([node.labels for node in nodes])
        self._fields = LabelIndex([{NAME_FIELD: node.name} for node in nodes])

    def required(self, shape: PodShape) -> Mask | None:
        """The nodes that the required part allows; None: it has none."""
        if not shape.node_selector and shape.required_terms is None:
            return None
        mask = self.labels.selected(
            [Requirement(key, Operator.IN, (value,)) for key, value in shape.node_selector]
        )
        if shape.required_terms is not None:
            mask &= self.any_of(shape.required_terms)
        return mask

    def preferred(self, shape: PodShape, *, among: Mask) -> Scores | None:
        """Weights of the preferred terms that match, best of ``among`` = 100; None: all equal."""
        if not shape.preferred_terms:
            return None
        raw = np.zeros(len(self.labels), dtype=np.float64)
        for weight, term in shape.preferred_terms:
            raw += weight * self._matching(term)
        best = raw.max(where=among, initial=0.0)
        return raw * (FULL_SCORE / best) if best > 0 else None

    def any_of(self, terms: Sequence[NodeTerm]) -> Mask:
        """The nodes that at least one of ``terms`` matches."""
        mask = np.zeros(len(self.labels), dtype=np.bool_)
        for term in terms:
            mask |= self._matching(term)
        return mask

    def _matching(self, term: NodeTerm) -> Mask:
        if not term.expressions and not term.fields:
            return np.zeros(len(self.labels), dtype=np.bool_)
        return self.labels.selected(term.expressions) & self._fields.selected(term.fields)
