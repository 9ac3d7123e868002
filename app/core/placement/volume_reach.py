"""From which nodes volumes can be reached, on one generation of the node table."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from app.core.placement.arrays import all_of
from app.core.placement.selectors import NodeSelectors
from app.model.resources import Mask
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.snapshot import NodeTable
from app.model.volumes import PersistentVolume, StorageClass

_STABLE = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""What labels of zones and regions have been called since."""


class Reach:
    """Masks of shape ``(N,)``, not to be changed; each is worked out once."""

    def __init__(self, table: NodeTable) -> None:
        self._selectors = NodeSelectors(table.nodes)
        self.every: Mask = np.ones(len(table.nodes), dtype=np.bool_)
        self._known: dict[Hashable, Mask] = {}

    def affinity(self, volume: PersistentVolume) -> Mask:
        """The nodes that the node affinity of the volume matches."""
        terms = volume.terms
        if terms is None:
            return self.every
        return self._kept(terms, lambda: self._selectors.any_of(terms))

    def zones(self, volume: PersistentVolume) -> Mask:
        """The nodes of its zones and regions, and those of none."""
        return self._kept(volume.zones, lambda: self._of_zones(volume.zones))

    def topologies(self, of: StorageClass) -> Mask:
        """The nodes for which volumes of the class can be made."""
        if not of.topologies:
            return self.every
        return self._kept(of.topologies, lambda: self._any_of(of.topologies))

    def selected(self, selector: LabelSelector | None) -> Mask:
        """The nodes that the selector selects; None selects no node."""
        if selector is None:
            return self._kept(None, lambda: ~self.every)
        return self._kept(selector, lambda: self._selectors.labels.selected(selector.requirements))

    def like(self, row: int, keys: Sequence[str]) -> Mask:
        """The nodes whose labels of these keys are those of the node of a row."""
        columns = [self._selectors.labels.column(key) for key in keys]
        masks: list[Mask] = [column.codes == column.codes[row] for column in columns]
        return all_of(masks) if masks else self.every

    def _of_zones(self, zones: Sequence[tuple[str, tuple[str, ...]]]) -> Mask:
        labels = self._selectors.labels
        placed = [labels.column(key).present for key in (*_STABLE, *_STABLE.values())]
        mask = self.every.copy()
        for key, values in zones:
            there = labels.selected([Requirement(key, Operator.IN, values)])
            stable = _STABLE.get(key)
            if stable is not None:
                unnamed = ~labels.column(key).present
                there |= unnamed & labels.selected([Requirement(stable, Operator.IN, values)])
            mask &= there
        free: Mask = ~np.logical_or.reduce(placed)
        return mask | free

    def _any_of(self, alternatives: Sequence[Sequence[Requirement]]) -> Mask:
        masks = [self._selectors.labels.selected(each) for each in alternatives]
        mask: Mask = np.logical_or.reduce(masks)
        return mask

    def _kept(self, key: Hashable, find: Callable[[], Mask]) -> Mask:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = find()
        return known
