"""The stock Filter plugins that matter here, in their order and with their words.

Each looks at one pod and one node and says why not. ``Failure.can_be_helped`` is the difference
between *Unschedulable* (removing pods might help: a preemption candidate) and
*UnschedulableAndUnresolvable*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.sandbox.scheduler import affinity, spread, taints
from app.sandbox.scheduler.cluster import Neighbourhood, NodeState
from app.sandbox.scheduler.host_ports import any_collide
from app.sandbox.scheduler.requirements import PODS, Requirements, requirements_of
from app.wire.documents import Document, items, section


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node cannot take a pod."""

    plugin: str
    reasons: tuple[str, ...]
    can_be_helped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The pod that looks for a place, with what is the same for every node."""

    pod: Document
    asks: Requirements
    tolerations: list[Document]
    picks_nodes: bool
    is_spread: bool
    has_neighbours: bool


def candidate_of(pod: Document, *, ignoring: frozenset[str] = frozenset()) -> Candidate:
    """``ignoring`` are resources that this scheduler was told not to look at."""
    spec = section(pod, "spec")
    affinities = section(spec, "affinity")
    return Candidate(
        pod=pod,
        asks=requirements_of(pod).without(ignoring),
        tolerations=items(spec, "tolerations"),
        picks_nodes=bool(spec.get("nodeSelector") or affinities.get("nodeAffinity")),
        is_spread=bool(spread.hard_constraints(pod)),
        has_neighbours=bool(affinities.get("podAffinity") or affinities.get("podAntiAffinity")),
    )


def first_failure(candidate: Candidate, node: NodeState, around: Neighbourhood) -> Failure | None:
    """The first plugin's objection; None where the pod fits. ``around`` includes ``node``."""
    return next(_failures(candidate, node, around), None)


def _failures(candidate: Candidate, node: NodeState, around: Neighbourhood) -> Iterator[Failure]:
    yield from _node_failure(candidate, node.document)
    if candidate.asks.ports and _ports_taken(candidate.asks, node):
        text = "node(s) didn't have free ports for the requested pod ports"
        yield Failure("NodePorts", (text,), can_be_helped=True)
    yield from _resource_failure(candidate.asks, node)
    if candidate.is_spread:
        yield from _spread_failure(candidate.pod, node, around.nodes)
    if candidate.has_neighbours or around.repelling:
        yield from _affinity_failure(candidate.pod, node, around)


def _node_failure(candidate: Candidate, node: Document) -> Iterator[Failure]:
    spec = section(node, "spec")
    if spec.get("unschedulable") and not taints.is_tolerated(taints.CORDON, candidate.tolerations):
        yield Failure("NodeUnschedulable", ("node(s) were unschedulable",))
    if taints.untolerated(node, candidate.tolerations):
        yield Failure("TaintToleration", ("node(s) had untolerated taint(s)",))
    if candidate.picks_nodes and not affinity.node_matches(candidate.pod, node):
        yield Failure("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",))


def _resource_failure(asks: Requirements, node: NodeState) -> Iterator[Failure]:
    used, total = node.used, node.allocatable
    short = [
        name
        for name, amount in asks.resources.items()
        if amount > 0 and amount > total.get(name, 0) - used[name]
    ]
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


def _affinity_failure(pod: Document, node: NodeState, around: Neighbourhood) -> Iterator[Failure]:
    plugin = "InterPodAffinity"
    if affinity.affinity_unmet(pod, node, around):
        yield Failure(plugin, ("node(s) didn't match pod affinity rules",))
    if affinity.anti_affinity_broken(pod, node, around):
        text = "node(s) didn't match pod anti-affinity rules"
        yield Failure(plugin, (text,), can_be_helped=True)
    elif affinity.is_repelled(pod, node, around):
        text = "node(s) didn't satisfy existing pods anti-affinity rules"
        yield Failure(plugin, (text,), can_be_helped=True)


def _ports_taken(asks: Requirements, node: NodeState) -> bool:
    return any(any_collide(asks.ports, placed.asks.ports) for placed in node.pods.values())
