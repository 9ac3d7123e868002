"""Placement the slow and obvious way: one node, one pod and one rule at a time.

Written from the stock scheduler's documented behaviour, sharing nothing with the package under test
but the model values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from app.core.policy import Scoring
from app.model.amounts import CPU, MEMORY, PODS
from app.model.gang import Gang, Task
from app.model.ids import NO_NODE
from app.model.node import Node, Taint
from app.model.shape import HostPort, LabelSelector, NodeTerm, PodShape, PodTerm, Spread
from app.model.snapshot import Snapshot, Veto
from tests.placed_pods import read_placed_pods

MIB = 1 << 20


@dataclass(slots=True)
class Seen:
    """A pod on a node."""

    row: int
    namespace: str
    labels: Mapping[str, str]
    shape: PodShape
    deleting: bool = False


@dataclass(slots=True)
class Reference:
    """The cluster of ``snapshot`` with ``placed`` on top."""

    snapshot: Snapshot
    scoring: Scoring
    placed: list[tuple[Gang, Task, int]] = field(default_factory=list)

    @property
    def nodes(self) -> Sequence[Node]:
        return self.snapshot.table.nodes

    def pods(self) -> list[Seen]:
        pods = [
            Seen(r.node, r.namespace, r.labels, r.shape, not r.staying)
            for r in read_placed_pods(self.snapshot.placed_pods, nodes=len(self.nodes))
        ]
        for gang, task, row in self.placed:
            namespace, labels = task.shape.spread_identity or (gang.namespace, ())
            pods.append(Seen(row, namespace, dict(labels), task.shape))
        return pods

    def free(self, row: int, resource: str) -> int:
        column = self.snapshot.axis.index[resource]
        table = self.snapshot.table
        free = int(table.allocatable[row, column]) - int(self.snapshot.used[row, column])
        return free - sum(int(t.request[column]) for _, t, at in self.placed if at == row)

    def capacity(self, row: int, resource: str) -> int:
        return int(self.snapshot.table.allocatable[row, self.snapshot.axis.index[resource]])

    # Filters

    def static(self, shape: PodShape, row: int) -> bool:
        node = self.nodes[row]
        cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
        return (
            node.ready
            and not (node.unschedulable and not tolerated(shape, cordon))
            and not repelled(shape, node)
            and wanted(shape, node)
        )

    def feasible(self, task: Task, row: int) -> bool:
        shape = task.shape
        if task.pinned and task.pinned != self.nodes[row].name:
            return False
        if any(
            _is_about(v, shape) and v.node == self.nodes[row].name for v in self.snapshot.vetoes
        ):
            return False
        if any(amount > self.free(row, name) for name, amount in shape.requests if amount):
            return False
        return (
            self.static(shape, row)
            and self.ports_free(shape, row)
            and self.spread_holds(task, row)
            and self.affinity_holds(shape, row)
            and self.anti_affinity_holds(shape, row)
        )

    def ports_free(self, shape: PodShape, row: int) -> bool:
        used = set(self.snapshot.ports.get(row, frozenset()))
        for _, task, at in self.placed:
            if at == row:
                used |= set(task.shape.host_ports)
        return not any(collide(mine, other) for mine in shape.host_ports for other in used)

    def sees(self, term: PodTerm, namespace: str, labels: Mapping[str, str]) -> bool:
        inside = namespace in term.namespaces
        if term.namespace_selector is not None:
            known = self.snapshot.namespaces.get(namespace)
            inside = inside or term.namespace_selector.matches(known.labels if known else {})
        return inside and matches(term.selector, labels)

    def together(self, key: str, one: int, other: int) -> bool:
        value = self.nodes[one].labels.get(key)
        return value is not None and self.nodes[other].labels.get(key) == value

    def affinity_holds(self, shape: PodShape, row: int) -> bool:
        terms = shape.pod_affinity
        if not terms:
            return True
        if any(term.topology_key not in self.nodes[row].labels for term in terms):
            return False
        friends = [
            p for p in self.pods() if all(self.sees(t, p.namespace, p.labels) for t in terms)
        ]
        if all(any(self.together(t.topology_key, row, p.row) for p in friends) for t in terms):
            return True
        counted = any(t.topology_key in self.nodes[p.row].labels for t in terms for p in friends)
        namespace, labels = identity(shape)
        return not counted and all(self.sees(t, namespace, labels) for t in terms)

    def anti_affinity_holds(self, shape: PodShape, row: int) -> bool:
        for pod in self.pods():
            for term in shape.pod_anti_affinity:
                if self.together(term.topology_key, row, pod.row) and self.sees(
                    term, pod.namespace, pod.labels
                ):
                    return False
            if shape.spread_identity is None:
                continue
            for term in pod.shape.pod_anti_affinity:
                if self.together(term.topology_key, row, pod.row) and self.sees(
                    term, *identity(shape)
                ):
                    return False
        return True

    def included(self, task: Task, constraint: Spread, row: int) -> bool:
        shape, node = task.shape, self.nodes[row]
        hard = [c for c in shape.spread if c.hard == constraint.hard]
        if any(c.topology_key not in node.labels for c in hard):
            return False
        if constraint.honor_affinity:
            if task.pinned and task.pinned != node.name:
                return False
            if not wanted(shape, node):
                return False
        return not (constraint.honor_taints and repelled(shape, node))

    def domains(self, task: Task, constraint: Spread) -> dict[str, int]:
        namespace, _ = identity(task.shape)
        domains: dict[str, int] = {}
        for row, node in enumerate(self.nodes):
            if not self.included(task, constraint, row):
                continue
            value = node.labels[constraint.topology_key]
            domains.setdefault(value, 0)
            for pod in self.pods():
                if (
                    pod.row == row
                    and pod.namespace == namespace
                    and not pod.deleting
                    and constraint.selector != LabelSelector()
                    and matches(constraint.selector, pod.labels)
                ):
                    domains[value] += 1
        return domains

    def spread_holds(self, task: Task, row: int) -> bool:
        _, labels = identity(task.shape)
        for constraint in task.shape.spread:
            if not constraint.hard:
                continue
            value = self.nodes[row].labels.get(constraint.topology_key)
            if value is None:
                return False
            domains = self.domains(task, constraint)
            few = len(domains) < constraint.min_domains
            fewest = 0 if few else min(domains.values(), default=0)
            itself = int(matches(constraint.selector, labels))
            if domains.get(value, 0) + itself - fewest > constraint.max_skew:
                return False
        return True

    # Scores

    def scores(self, task: Task) -> list[float]:
        """Of every node; a pin is left out of account."""
        task = replace(task, pinned=NO_NODE)
        shape, scoring = task.shape, self.scoring
        rows = range(len(self.nodes))
        among = [row for row in rows if self.static(shape, row)]
        total = [self.room_score(task, row) for row in rows]
        for weight, raw, scale in (
            (scoring.node_affinity, self.preferred(shape), share_of_best),
            (scoring.taint_toleration, self.soft_taints(shape), share_of_worst),
            (scoring.image_locality, self.images(shape), unscaled),
        ):
            scaled = scale(raw, among)
            total = [t + weight * s for t, s in zip(total, scaled, strict=True)]
        liked = min_max(self.neighbours(shape), among)
        spread = self.spread_scores(task, among)
        return [
            t + scoring.pod_affinity * a + scoring.topology_spread * s
            for t, a, s in zip(total, liked, spread, strict=True)
        ]

    def room_score(self, task: Task, row: int) -> float:
        asked = dict(task.shape.requests)

        def left(resource: str) -> float:
            capacity = self.capacity(row, resource)
            if not capacity:
                return 0.0
            return (self.free(row, resource) - asked.get(resource, 0)) / capacity

        counted = [CPU, MEMORY]
        if not (asked.get(CPU) and asked.get(MEMORY)):
            counted.append(PODS)
        mean = sum(left(r) for r in counted) / len(counted)
        score = self.scoring.least_requested * 100 * mean
        score += self.scoring.most_requested * 100 * (1 - mean)
        if not task.best_effort:
            score += self.scoring.balanced * 100 * (1 - abs(left(CPU) - left(MEMORY)) / 2)
        packed = {r: w for r, w in self.scoring.binpack.items() if w and asked.get(r)}
        if packed:
            used = sum(w * (1 - left(r)) for r, w in packed.items()) / sum(packed.values())
            score += self.scoring.binpack_weight * 100 * used
        return score

    def preferred(self, shape: PodShape) -> list[float]:
        return [
            float(sum(w for w, term in shape.preferred_terms if in_term(term, node)))
            for node in self.nodes
        ]

    def soft_taints(self, shape: PodShape) -> list[float]:
        return [
            float(
                sum(
                    taint.effect == "PreferNoSchedule" and not tolerated(shape, taint)
                    for taint in node.taints
                )
            )
            for node in self.nodes
        ]

    def images(self, shape: PodShape) -> list[float]:
        scores = []
        for node in self.nodes:
            held = 0
            for image in shape.images:
                tagged = image if ":" in image else f"{image}:latest"
                having = sum(tagged in (other.images or {}) for other in self.nodes)
                held += int((node.images or {}).get(tagged, 0) * (having / len(self.nodes)))
            most = 1000 * MIB * max(len(shape.images), 1)
            held = min(max(held, 23 * MIB), most)
            scores.append(100 * (held - 23 * MIB) / (most - 23 * MIB))
        return scores

    def neighbours(self, shape: PodShape) -> list[float]:
        scores = [0.0] * len(self.nodes)
        if shape.spread_identity is None:
            return scores
        for row in range(len(self.nodes)):
            for pod in self.pods():
                for weight, term in shape.preferred_pods:
                    if self.together(term.topology_key, row, pod.row):
                        scores[row] += weight * self.sees(term, pod.namespace, pod.labels)
                theirs = [(1, term) for term in pod.shape.pod_affinity]
                for weight, term in (*theirs, *pod.shape.preferred_pods):
                    if self.together(term.topology_key, row, pod.row):
                        scores[row] += weight * self.sees(term, *identity(shape))
        return scores

    def spread_scores(self, task: Task, among: list[int]) -> list[float]:
        soft = [c for c in task.shape.spread if not c.hard]
        rows = range(len(self.nodes))
        labelled = [
            row for row in rows if all(c.topology_key in self.nodes[row].labels for c in soft)
        ]
        ranked = [row for row in labelled if row in among]
        scores = [0.0] * len(self.nodes)
        if not soft or not ranked:
            return scores
        crowd = dict.fromkeys(labelled, 0.0)
        for constraint in soft:
            domains = self.domains(task, constraint)
            size = len({self.nodes[row].labels[constraint.topology_key] for row in ranked})
            for row in labelled:
                count = domains.get(self.nodes[row].labels[constraint.topology_key], 0)
                crowd[row] += count * log(size + 2) + constraint.max_skew - 1
        low, high = min(crowd[row] for row in ranked), max(crowd[row] for row in ranked)
        for row in labelled:
            scores[row] = 100 * (high + low - crowd[row]) / high if high else 100.0
        return scores


Scale = Callable[[list[float], list[int]], list[float]]


def share_of_best(raw: list[float], among: list[int]) -> list[float]:
    best = max((raw[row] for row in among), default=0)
    return [100 * value / best if best else 0.0 for value in raw]


def share_of_worst(raw: list[float], among: list[int]) -> list[float]:
    worst = max((raw[row] for row in among), default=0)
    return [100 - 100 * value / worst if worst else 0.0 for value in raw]


def unscaled(raw: list[float], among: list[int]) -> list[float]:
    return raw


def min_max(raw: list[float], among: list[int]) -> list[float]:
    values = [raw[row] for row in among]
    low, high = min(values, default=0), max(values, default=0)
    return [100 * (v - low) / (high - low) if high > low else 0.0 for v in raw]


def identity(shape: PodShape) -> tuple[str, Mapping[str, str]]:
    namespace, labels = shape.spread_identity or ("", ())
    return namespace, dict(labels)


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.matches(labels)


def in_term(term: NodeTerm, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    name = {"metadata.name": node.name}
    return all(r.matches(node.labels) for r in term.expressions) and all(
        r.matches(name) for r in term.fields
    )


def wanted(shape: PodShape, node: Node) -> bool:
    if any(node.labels.get(key) != value for key, value in shape.node_selector):
        return False
    terms = shape.required_terms
    return terms is None or any(in_term(term, node) for term in terms)


def tolerated(shape: PodShape, taint: Taint) -> bool:
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.exists or t.value == taint.value)
        for t in shape.tolerations
    )


def repelled(shape: PodShape, node: Node) -> bool:
    return any(t.effect != "PreferNoSchedule" and not tolerated(shape, t) for t in node.taints)


def collide(one: HostPort, other: HostPort) -> bool:
    everywhere = ("", "0.0.0.0")
    return (
        one.protocol == other.protocol
        and one.port == other.port
        and (one.ip in everywhere or other.ip in everywhere or one.ip == other.ip)
    )


def _is_about(veto: Veto, shape: PodShape) -> bool:
    """The labels of a pod matter to a veto only when the pod has rules about others."""
    if veto.shape == shape:
        return True
    plain = not (veto.shape.looks_at_pods or shape.looks_at_pods)
    return plain and replace(veto.shape, spread_identity=shape.spread_identity) == shape
