"""The stock Filter plugins that matter here, in their order and with their words.

Each looks at one pod and one node and says why not. ``Failure.can_be_helped`` is the difference
between *Unschedulable* (removing pods might help: a preemption candidate) and
*UnschedulableAndUnresolvable*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.sandbox.documents import Document, items, section
from app.sandbox.scheduler import affinity, spread
from app.sandbox.scheduler.cluster import NodeState
from app.sandbox.scheduler.requirements import PODS, Requirements

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node cannot take a pod."""

    plugin: str
    reasons: tuple[str, ...]
    can_be_helped: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """The pod that looks for a place."""

    pod: Document
    asks: Requirements


def first_failure(candidate: Candidate, node: NodeState, nodes: list[NodeState]) -> Failure | None:
    """The first plugin's objection; None where the pod fits. ``nodes`` includes ``node``."""
    return next(_failures(candidate, node, nodes), None)


def _failures(candidate: Candidate, node: NodeState, nodes: list[NodeState]) -> Iterator[Failure]:
    pod = candidate.pod
    if section(node.document, "spec").get("unschedulable") and not _tolerates_cordon(pod):
        yield Failure("NodeUnschedulable", ("node(s) were unschedulable",))
    taint = _untolerated(pod, node.document)
    if taint is not None:
        yield Failure("TaintToleration", ("node(s) had untolerated taint(s)",))
    if not affinity.node_matches(pod, node.document):
        text = "node(s) didn't match Pod's node affinity/selector"
        yield Failure("NodeAffinity", (text,))
    if candidate.asks.ports and _ports_taken(candidate.asks, node):
        text = "node(s) didn't have free ports for the requested pod ports"
        yield Failure("NodePorts", (text,), can_be_helped=True)
    yield from _resource_failure(candidate.asks, node)
    if spread.hard_constraints(pod):
        yield from _spread_failure(pod, node, nodes)
    yield from _affinity_failure(pod, node, nodes)


def _resource_failure(asks: Requirements, node: NodeState) -> Iterator[Failure]:
    short = [name for name, amount in asks.resources.items() if amount > max(0, node.free(name))]
    if short:
        reasons = tuple(
            "Too many pods" if name == PODS else f"Insufficient {name}"
            for name in sorted(short, key=lambda name: (name != PODS, name))
        )
        ever = all(asks.resources[name] <= node.allocatable.get(name, 0) for name in short)
        yield Failure("NodeResourcesFit", reasons, can_be_helped=ever)


def _spread_failure(pod: Document, node: NodeState, nodes: list[NodeState]) -> Iterator[Failure]:
    text = "node(s) didn't match pod topology spread constraints"
    if spread.lacks_key(pod, node):
        yield Failure("PodTopologySpread", (f"{text} (missing required label)",))
    elif spread.too_skewed(pod, node, nodes):
        yield Failure("PodTopologySpread", (text,), can_be_helped=True)


def _affinity_failure(pod: Document, node: NodeState, nodes: list[NodeState]) -> Iterator[Failure]:
    plugin = "InterPodAffinity"
    if affinity.affinity_unmet(pod, node, nodes):
        yield Failure(plugin, ("node(s) didn't match pod affinity rules",))
    if affinity.anti_affinity_broken(pod, node, nodes):
        text = "node(s) didn't match pod anti-affinity rules"
        yield Failure(plugin, (text,), can_be_helped=True)
    elif affinity.is_repelled(pod, node, nodes):
        text = "node(s) didn't satisfy existing pods anti-affinity rules"
        yield Failure(plugin, (text,), can_be_helped=True)


def _ports_taken(asks: Requirements, node: NodeState) -> bool:
    return any(asks.ports & placed.asks.ports for placed in node.pods.values())


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator", "Equal") == "Exists":
        return not key or key == taint["key"]
    return key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _untolerated(pod: Document, node: Document) -> Document | None:
    tolerations = items(pod, "spec", "tolerations")
    for taint in items(node, "spec", "taints"):
        hard = taint.get("effect") in {"NoSchedule", "NoExecute"}
        if hard and not any(_tolerates(one, taint) for one in tolerations):
            found: Document = taint
            return found
    return None


def _tolerates_cordon(pod: Document) -> bool:
    taint = {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}
    return any(_tolerates(one, taint) for one in items(pod, "spec", "tolerations"))
