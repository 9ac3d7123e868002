"""Placed pods one by one, for tests: into the columns of a snapshot and out of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.model.placed_pods import Codes, PlacedPods, terms_of
from app.model.pod import Pod
from app.model.shape import PodShape


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod, or room for one; ``node`` indexes the table. ``staying``: it is not terminating."""

    shape: PodShape
    namespace: str
    labels: Mapping[str, str]
    node: int
    staying: bool = True

    @classmethod
    def of(cls, pod: Pod, node: int) -> "PlacedPod":
        """A pod that has a place."""
        return cls(pod.shape, pod.namespace, pod.labels, node, staying=not pod.deleting)


def make_placed_pods(found: Iterable[PlacedPod], *, asked: Iterable[str] = ("app",)) -> PlacedPods:
    """The columns of ``found``, of their labels those with keys that are ``asked`` for."""
    those = list(found)
    return PlacedPods(
        rows=np.array([one.node for one in those], dtype=np.intp),
        homes=Codes.of([one.namespace for one in those]),
        leaving=Codes.of([None if one.staying else True for one in those]),
        terms=Codes.of([terms_of(one.shape) for one in those]),
        labels={key: Codes.of([one.labels.get(key) for one in those]) for key in asked},
    )


NO_RULES = PodShape(requests=())


def read_placed_pods(placed_pods: PlacedPods, *, nodes: int) -> list[PlacedPod]:
    """Those on one of that many nodes, of their shapes the rules that they carry."""
    labels = {key: _values(column) for key, column in placed_pods.labels.items()}
    columns = zip(
        placed_pods.rows.tolist(),
        _values(placed_pods.terms),
        _values(placed_pods.homes),
        _values(placed_pods.leaving),
        strict=True,
    )
    return [
        PlacedPod(
            shape=terms or NO_RULES,
            namespace=home or "",
            labels={k: value for k, of in labels.items() if (value := of[row]) is not None},
            node=node,
            staying=not leaving,
        )
        for row, (node, terms, home, leaving) in enumerate(columns)
        if node < nodes
    ]


def _values(column: Codes[Any]) -> list[Any]:
    by_code = [*column.values, None]
    return [by_code[code] for code in column.codes.tolist()]
