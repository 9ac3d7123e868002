"""Domains of the network by labels of nodes, where a cluster has no HyperNodes.

Nodes that have the value of a label, and those of the wider ones, in common are a domain. The
narrowest label is of tier 1, and each tier is called as its label. A node without a label is in no
domain of that tier. A domain is called as the values of its labels, the widest first (``z1/r7``).
"""

from collections.abc import Sequence

import numpy as np

from app.model.domains import Domains, whole_cluster
from app.model.ids import CLUSTER
from app.model.node import Node
from app.model.resources import Rows

_Path = tuple[str, ...]
"""The values of the labels from the widest to the domain's own; empty: there is none."""


def label_domains(nodes: Sequence[Node], labels: Sequence[str]) -> Domains:
    """The domains of ``nodes``, the rows of a table; ``labels`` from the widest to the narrowest.

    Raises ``ValueError`` for no labels.
    """
    if not labels:
        raise ValueError("no labels")
    inside: dict[_Path, list[int]] = {}
    for row, node in enumerate(nodes):
        values = tuple(node.labels.get(label, "") for label in labels)
        for depth, value in enumerate(values, start=1):
            if value:
                inside.setdefault(values[:depth], []).append(row)
    ordered = sorted(inside, key=lambda path: (-len(path), path))
    at = {path: position for position, path in enumerate(ordered)}
    cluster = whole_cluster(len(nodes))
    rows: list[Rows] = [np.array(inside[path], dtype=np.intp) for path in ordered]
    rows.append(cluster.rows)
    return Domains(
        names=(*("/".join(path) for path in ordered), CLUSTER),
        tiers=np.array(
            [*(len(labels) - len(path) + 1 for path in ordered), len(labels) + 1], dtype=np.int64
        ),
        parents=np.array([*(_parent(path, at) for path in ordered), -1], dtype=np.intp),
        starts=np.concatenate(([0], np.cumsum([len(each) for each in rows]))).astype(np.intp),
        rows=np.concatenate(rows),
        tier_of_name={label: len(labels) - depth for depth, label in enumerate(labels)},
    )


def _parent(path: _Path, at: dict[_Path, int]) -> int:
    """The position of the next wider domain, or of the cluster behind all of them."""
    for depth in range(len(path) - 1, 0, -1):
        if path[:depth] in at:
            return at[path[:depth]]
    return len(at)
