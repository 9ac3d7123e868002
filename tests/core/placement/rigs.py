"""A placer on a small cluster, driven by node names."""

from collections.abc import Sequence
from typing import Any

from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.policy import NodeRule, NodeScore, Predicates, Scoring
from app.model.gang import Gang, Task
from app.model.ids import NodeName, PodUid
from app.model.node import Node
from app.model.shape import LabelSelector, Operator, PodShape, Requirement
from app.model.snapshot import Snapshot
from tests.builders import make_gang, make_pod, make_shape, make_snapshot, make_table, make_task
from tests.placed_pods import PlacedPod, make_placed_pods

HOST = "kubernetes.io/hostname"


class Rig:
    """Finds and places tasks by shape; unscored unless told."""

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        scoring: Scoring | None = None,
        predicates: Predicates | None = None,
        cache: ShapeCache | None = None,
        placed_pods: Sequence[PlacedPod] = (),
        node_rules: Sequence[NodeRule] = (),
        node_scores: Sequence[NodeScore] = (),
        **snapshot: Any,
    ) -> None:
        table = make_table(tuple(nodes))
        self.snapshot: Snapshot = make_snapshot(
            table=table, placed_pods=make_placed_pods(placed_pods), **snapshot
        )
        self.ledger = Ledger(self.snapshot)
        self.placer = Placer(
            self.ledger,
            predicates=predicates or Predicates(),
            scoring=scoring or Scoring(),
            cache=cache,
            node_rules=node_rules,
            node_scores=node_scores,
        )
        self.gang: Gang = make_gang(axis=self.snapshot.axis)

    def task(self, shape: PodShape | None = None, **fields: Any) -> Task:
        """A task of ``shape``."""
        return make_task("t", shape=shape, axis=self.snapshot.axis, **fields)

    def names(self, shape: PodShape | None = None, **fields: Any) -> list[str]:
        """The nodes that a task of ``shape`` may go to."""
        mask = self.placer.feasible(self.gang, self.task(shape, **fields))
        nodes = self.snapshot.table.nodes
        return [node.name for node, fits in zip(nodes, mask, strict=True) if fits]

    def find(self, shape: PodShape | None = None, **fields: Any) -> str | None:
        """The node found for a task of ``shape``."""
        row = self.placer.find(self.gang, self.task(shape, **fields))
        return None if row is None else self.snapshot.table.nodes[row].name

    def put(self, shape: PodShape | None, node: str) -> None:
        """Place a task of ``shape`` on ``node``."""
        row = [n.name for n in self.snapshot.table.nodes].index(NodeName(node))
        self.ledger.place(self.gang, self.task(shape), node=row)

    def put_found(self, shape: PodShape | None = None) -> str | None:
        """Find a node for a task of ``shape`` and place it there."""
        name = self.find(shape)
        if name is not None:
            self.put(shape, name)
        return name

    def scores(self, shape: PodShape | None = None) -> list[float]:
        """The scores of all nodes, rounded."""
        rows = range(len(self.snapshot.table.nodes))
        return [round(s, 3) for s in self.placer.scores(self.gang, self.task(shape), rows).tolist()]

    def verdicts(self, shape: PodShape | None = None, **fields: Any) -> dict[str, int]:
        """The histogram of node verdicts."""
        refusal = self.placer.explain(self.gang, self.task(shape, **fields))
        return {count.text: count.nodes for count in refusal.nodes}


def placed_pod(
    name: str, node: int, *, shape: PodShape | None = None, app: str = "", **fields: Any
) -> PlacedPod:
    """A pod on the node of row ``node``."""
    labels = {"app": app} if app else {}
    pod = make_pod(name, uid=PodUid(name), shape=shape or make_shape(), labels=labels, **fields)
    return PlacedPod.of(pod, node)


def app_is(*apps: str) -> LabelSelector:
    """Selects pods of ``apps``."""
    return LabelSelector((Requirement("app", Operator.IN, apps),))


def pod_shape(app: str = "", *, namespace: str = "default", **fields: Any) -> PodShape:
    """A shape that inter-pod rules see as a pod of ``app``."""
    labels = (("app", app),) if app else ()
    return make_shape(spread_identity=(namespace, labels), **fields)
