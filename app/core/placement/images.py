"""Image locality: nodes that hold a pod's images already score higher.

As in the stock scheduler, an image counts its size times the share of all nodes that have it (so
that one warm node does not attract everything), and the sum is scaled from 23 MiB to 1000 MiB per
container onto 0..100.
"""

from collections.abc import Sequence

import numpy as np

from app.core.placement.arrays import FULL_SCORE
from app.model.node import Node
from app.model.resources import Scores

MIB = 1 << 20
LEAST = 23 * MIB
MOST_PER_CONTAINER = 1000 * MIB


def normalized(image: str) -> str:
    """``image`` with the tag that is meant when it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


class ImageIndex:
    """Where each image is, and its size there."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = len(nodes)
        self._held: dict[str, list[tuple[int, int]]] = {}
        for row, node in enumerate(nodes):
            for image, size in (node.images or {}).items():
                self._held.setdefault(image, []).append((row, size))

    @property
    def empty(self) -> bool:
        """Whether no node reports any image."""
        return not self._held

    def locality(self, images: Sequence[str]) -> Scores | None:
        """Score 0..100 per node for a pod of ``images``; None: no node has any of them."""
        present = [self._held.get(normalized(image), []) for image in images]
        if not any(present):
            return None
        held = np.zeros(self._nodes, dtype=np.float64)
        for places in present:
            share = len(places) / self._nodes
            for row, size in places:
                held[row] += int(size * share)
        most = MOST_PER_CONTAINER * len(images)
        scaled: Scores = (held.clip(LEAST, most) - LEAST) * (FULL_SCORE / (most - LEAST))
        return scaled
