"""Resources that no node lists, as kube-scheduler counts them: devices.

A DeviceClass maps the name of an extended resource (KEP-5004): where no node lists that name, only
kube-scheduler can count the devices, so there is enough of them on every node. There is enough of
the devices of a class too, which claims ask for: :mod:`app.core.placement.claim_rule` looks for
them node by node. What the cluster has of these is what its ResourceSlices offer.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from app.model.amounts import is_of_class
from app.model.node import Node
from app.model.resources import ResourceAxis, Vector

ENOUGH: Final = 1 << 40
"""Of devices that kube-scheduler counts: on each of thousands of nodes, for all their pods."""
_ENOUGH_OF_CLASS: Final = 1 << 48
"""Of devices of a class: what is shared of them may be bytes."""


class Uncounted:
    """What every node has besides what it lists, and what all have of it together."""

    def __init__(self) -> None:
        self._mapped: frozenset[str] = frozenset()
        self._offered: Mapping[str, int] = {}
        self._listing: Counter[str] = Counter()
        """How many nodes have some of a resource, ready or not."""

    def note_node(self, node: Node | None, before: Node | None) -> None:
        """A node lists other resources than before; None: it is not there."""
        if node is not None:
            self._listing.update(_listed(node))
        if before is not None:
            self._listing.subtract(_listed(before))

    def set_mapped(self, names: frozenset[str]) -> bool:
        """``names`` are resources that DeviceClasses map; returns whether that is news."""
        is_news, self._mapped = names != self._mapped, names
        return is_news

    def set_offered(self, offered: Mapping[str, int]) -> bool:
        """So much there is of devices of classes; returns whether that is news."""
        is_news, self._offered = offered != self._offered, offered
        return is_news

    def of_each_node(self, axis: ResourceAxis) -> Vector:
        """What every node has besides, shape ``(R,)``.

        Where a node lists the resource, a device plugin counts it, and those nodes are the place:
        most of the others have no such device.
        """
        names = (name for name in self._mapped if not self._listing[name])
        some = {name: ENOUGH for name in names if name in axis.index}
        some |= {name: _ENOUGH_OF_CLASS for name in axis.index if is_of_class(name)}
        return axis.vector(tuple(some.items()))

    def with_offered(self, total: Vector, axis: ResourceAxis) -> Vector:
        """What nodes have together, with what ResourceSlices offer of each class."""
        for name, amount in self._offered.items():
            if name in axis.index:
                total[axis.index[name]] = amount
        return total


def _listed(node: Node) -> list[str]:
    return [name for name, amount in node.allocatable if amount]
