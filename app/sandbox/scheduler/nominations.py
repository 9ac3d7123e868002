"""Pods that were nominated to a node: others of no higher priority must leave them their room."""

from __future__ import annotations

from app.sandbox.scheduler.cluster import Cluster, Neighbourhood, NodeState, PlacedPod
from app.sandbox.scheduler.filters import Candidate, Failure, first_failure
from app.sandbox.scheduler.requirements import requirements_of
from app.wire.documents import Document, section, uid_of


class Nominations:
    """The nominated pods by node, and whether another pod fits all the same."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, Document] = {}

    def note(self, pod: Document) -> bool:
        """Take in what a waiting pod says; returns whether a nomination went or moved."""
        uid, node = uid_of(pod), _node_of(pod)
        before = self._pods.pop(uid, None)
        if node:
            self._pods[uid] = pod
        return before is not None and _node_of(before) != node

    def drop(self, uid: str) -> bool:
        """The pod waits no more; returns whether it was nominated."""
        return self._pods.pop(uid, None) is not None

    def failure(
        self, candidate: Candidate, node: NodeState, around: Neighbourhood
    ) -> Failure | None:
        """Why the pod does not fit: beside those nominated there, then without them.

        Both must pass: the pod may have to be near a nominated pod, or may not be.
        """
        placed = [PlacedPod(pod, requirements_of(pod)) for pod in self._to(node.name, candidate)]
        if placed:
            crowded = node.trial(extra=placed)
            failure = first_failure(candidate, crowded, self._cluster.neighbourhood(trial=crowded))
            if failure is not None:
                return failure
        return first_failure(candidate, node, around)

    def _to(self, node: str, candidate: Candidate) -> list[Document]:
        return [
            pod
            for uid, pod in self._pods.items()
            if uid != candidate.asks.uid
            and _node_of(pod) == node
            and int(section(pod, "spec").get("priority") or 0) >= candidate.asks.priority
        ]


def _node_of(pod: Document) -> str:
    return str(section(pod, "status").get("nominatedNodeName") or "")
