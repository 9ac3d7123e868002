"""What the loop knows of nodes, of the pods on them (assumed ones included), and of namespaces.

Fed by the changes of the store; ``assume`` puts a pod on a node before the API server says so and
``forget`` takes it back. A pod that is deleted frees its room at once, assumed or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.sandbox.quantities import parse_list
from app.sandbox.scheduler.requirements import Requirements, requirements_of
from app.wire.documents import Document, is_terminal, labels_of, name_of, section, uid_of

Namespaces: TypeAlias = Mapping[str, Mapping[str, str]]
"""Labels by name."""


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on a node."""

    document: Document
    asks: Requirements


@dataclass(slots=True)
class NodeState:
    """One node: its document, its pods, and what is left."""

    document: Document
    allocatable: dict[str, int]
    pods: dict[str, PlacedPod] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    repellers: dict[str, PlacedPod] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in the node's metadata."""
        return str(self.document["metadata"]["name"])

    def add(self, placed: PlacedPod) -> None:
        """Charge the node with a pod's requests; the pod must not be there yet."""
        self.pods[placed.asks.uid] = placed
        self.used.update(placed.asks.resources)
        if placed.asks.repels:
            self.repellers[placed.asks.uid] = placed

    def remove(self, uid: str) -> PlacedPod | None:
        """Give back what the pod was charged; returns the pod, None where it was not there."""
        placed = self.pods.pop(uid, None)
        if placed is not None:
            self.used.subtract(placed.asks.resources)
            self.repellers.pop(uid, None)
        return placed

    def free(self, resource: str) -> int:
        """What is left of a resource, in thousandths; below zero where the node is overbooked."""
        return self.allocatable.get(resource, 0) - self.used[resource]

    def trial(self, *, without: Iterable[str] = (), extra: Iterable[PlacedPod] = ()) -> NodeState:
        """A copy to try something on."""
        copy = NodeState(
            self.document,
            self.allocatable,
            dict(self.pods),
            Counter(self.used),
            dict(self.repellers),
        )
        for uid in without:
            copy.remove(uid)
        for placed in extra:
            copy.add(placed)
        return copy


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """All nodes at one moment; those with pods that repel others are picked out."""

    nodes: list[NodeState]
    repelling: list[NodeState]
    namespaces: Namespaces


class Cluster:
    """All nodes by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._places: dict[str, str] = {}
        self._homeless: dict[str, dict[str, PlacedPod]] = {}

    def neighbourhood(self, *, trial: NodeState | None = None) -> Neighbourhood:
        """``trial`` stands for the node of its name."""
        nodes = list(self.nodes.values())
        if trial is not None:
            nodes = [trial if node.name == trial.name else node for node in nodes]
        return Neighbourhood(nodes, [node for node in nodes if node.repellers], self.namespaces)

    def set_namespace(self, document: Document) -> None:
        """Keep the labels of a namespace that is new or has changed."""
        self.namespaces[name_of(document).name] = labels_of(document)

    def remove_namespace(self, name: str) -> None:
        """Forget the labels of a namespace; an unknown name is no error."""
        self.namespaces.pop(name, None)

    def set_node(self, document: Document) -> None:
        """A node that is new or has changed; pods that were bound before it came are charged."""
        name = document["metadata"]["name"]
        allocatable = parse_list(section(document, "status", "allocatable"))
        known = self.nodes.get(name)
        if known is not None:
            known.document, known.allocatable = document, allocatable
            return
        node = self.nodes[name] = NodeState(document, allocatable)
        for placed in self._homeless.pop(name, {}).values():
            node.add(placed)

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods are charged again should a node of that name return."""
        gone = self.nodes.pop(name, None)
        if gone is not None and gone.pods:
            self._homeless[name] = dict(gone.pods)

    def set_pod(self, pod: Document) -> None:
        """A pod that the API server shows as bound; a finished one takes no room."""
        node = section(pod, "spec").get("nodeName") or ""
        self.remove_pod(uid_of(pod))
        if node and not is_terminal(pod):
            self.assume(pod, node)

    def assume(self, pod: Document, node: str) -> None:
        """Charge ``node`` with the pod's requests before the API server shows the binding."""
        placed = PlacedPod(pod, requirements_of(pod))
        self._places[placed.asks.uid] = node
        if node in self.nodes:
            self.nodes[node].add(placed)
        else:
            self._homeless.setdefault(node, {})[placed.asks.uid] = placed

    def remove_pod(self, uid: str) -> bool:
        """Take a pod away, or forget that it was assumed; whether it was there."""
        node = self._places.pop(uid, None)
        if node is None:
            return False
        if node in self.nodes:
            self.nodes[node].remove(uid)
        else:
            self._homeless.get(node, {}).pop(uid, None)
        return True
