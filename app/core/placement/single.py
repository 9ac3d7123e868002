"""What one node says of pods, whatever runs there: for places on a node that has changed."""

from app.core.placement.selectors import NodeSelectors
from app.core.placement.taints import first_repelling
from app.model.node import Node
from app.model.shape import PodShape


class SingleNode:
    """Answers as the stock filters do, which are asked only before a pod comes to Bind."""

    def __init__(self, node: Node) -> None:
        self._taints = node.taints
        self._selectors = NodeSelectors((node,))

    def takes(self, shape: PodShape) -> bool:
        """Whether no taint repels ``shape``, and its selector and required affinity match."""
        if first_repelling(self._taints, shape.tolerations) is not None:
            return False
        allowed = self._selectors.required(shape)
        return allowed is None or bool(allowed[0])
