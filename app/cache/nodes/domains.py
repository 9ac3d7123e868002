"""The domains of the network, kept up to date as HyperNodes and nodes change.

Names and labels are followed one by one; which nodes lie below which HyperNode is worked out anew
when one of them has changed, and the columns when the table has other rows. Without HyperNodes the
domains are those that labels of nodes tell, if the configuration names some.

A domain that gets other nodes is another *edition*: places given in the one before are of another
class of exchange (:mod:`app.model.exchange`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.core.topology.by_labels import label_domains
from app.core.topology.problems import Problem, problems
from app.core.topology.tree import Tree
from app.model.domains import DOMAIN_CLASS, Domains, whole_cluster
from app.model.ids import CLUSTER, NodeName
from app.model.node import Node
from app.model.resources import Rows
from app.model.snapshot import NodeTable
from app.model.topology import HyperNode


class NetworkTree:
    """All HyperNodes, and the nodes below them."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._hyper_nodes: dict[str, HyperNode] = {}
        self._changes = 0
        self._labels: tuple[str, ...] = ()
        self._domains: tuple[tuple[int, int, int], Domains] | None = None
        self._problems: tuple[tuple[int, int], Mapping[str, tuple[Problem, ...]]] | None = None
        self._editions: dict[str, tuple[frozenset[NodeName], int]] = {}
        self._made_so_far = 0
        self.classes: frozenset[str] = frozenset()
        """How the domains are called, as of the last time that they were made.

        The same object until one of them has other nodes.
        """

    @property
    def names(self) -> Collection[str]:
        """The names of all HyperNodes."""
        return self._hyper_nodes.keys()

    def set_node(self, node: Node) -> None:
        """Add or replace a node."""
        self._tree.put_node(node.name, node.labels)

    def drop_node(self, name: NodeName) -> None:
        """Forget a node."""
        self._tree.drop_node(name)

    def set(self, hyper_node: HyperNode) -> bool:
        """Add or replace a HyperNode; whether it says something else than before."""
        if self._hyper_nodes.get(hyper_node.name) == hyper_node:
            return False
        self._hyper_nodes[hyper_node.name] = hyper_node
        self._tree.put(hyper_node.name, hyper_node.labels, hyper_node.members)
        self._changes += 1
        return True

    def set_labels(self, labels: tuple[str, ...]) -> bool:
        """Take these labels of nodes for domains, the widest first; whether others were taken."""
        changed, self._labels = self._labels != labels, labels
        self._changes += changed
        return changed

    def drop(self, name: str) -> bool:
        """Forget a HyperNode; whether it was known."""
        self._changes += 1
        self._tree.drop(name)
        return self._hyper_nodes.pop(name, None) is not None

    def domains(self, table: NodeTable) -> Domains:
        """The domains of the nodes of ``table``; the same object until something changes."""
        now = (self._tree.changes, self._changes, table.generation)
        if self._domains is None or self._domains[0] != now:
            self._domains = now, self._edited(self._made(table), table)
        return self._domains[1]

    def knows(self, classes: Collection[str]) -> bool:
        """Whether all domains among these classes of exchange have the same nodes still."""
        return all(not name.startswith(DOMAIN_CLASS) or name in self.classes for name in classes)

    def _edited(self, made: Domains, table: NodeTable) -> Domains:
        """``made`` with the editions of domains that have been there before, or new ones."""
        before, self._editions = self._editions, {}
        names = [node.name for node in table.nodes]
        for at, name in enumerate(made.names[:-1]):
            nodes = frozenset(names[row] for row in made.rows_of(at))
            known = before.get(name)
            edition = known[1] if known and known[0] == nodes else self._made_so_far
            self._editions[name] = nodes, edition
        self._made_so_far += 1
        editions = (*(edition for _, edition in self._editions.values()), 0)
        found = replace(made, editions=editions)
        classes = frozenset(found.domain(at).called for at in range(len(found) - 1))
        if classes != self.classes:
            self.classes = classes
        return found

    def problems(self) -> Mapping[str, tuple[Problem, ...]]:
        """What is wrong with HyperNodes, by name; the same object until something changes."""
        now = (self._tree.changes, self._changes)
        if self._problems is None or self._problems[0] != now:
            tiers = {name: each.tier for name, each in self._hyper_nodes.items()}
            self._problems = now, problems(self._tree, tiers)
        return self._problems[1]

    def tier_names(self) -> dict[str, str]:
        """What HyperNodes call their tier, by name; those that call it nothing are left out."""
        return {name: it.tier_name for name, it in self._hyper_nodes.items() if it.tier_name}

    def _made(self, table: NodeTable) -> Domains:
        cluster = whole_cluster(len(table.nodes))
        if not self._hyper_nodes:
            return label_domains(table.nodes, self._labels) if self._labels else cluster
        ordered = sorted(self._hyper_nodes.values(), key=lambda each: (each.tier, each.name))
        names = [each.name for each in ordered]
        inside: list[Sequence[int] | Rows] = [self._rows(each.name, table) for each in ordered]
        tiers = [each.tier for each in ordered]
        tier_of_name: dict[str, int] = {}
        for each in ordered:
            if each.tier_name:
                tier_of_name[each.tier_name] = each.tier
        inside.append(cluster.rows)
        parents = self._tree.parents(names)
        at = {name: position for position, name in enumerate((*names, CLUSTER))}
        ends = np.cumsum([len(rows) for rows in inside])
        return Domains(
            names=(*names, CLUSTER),
            tiers=np.array([*tiers, max(tiers) + 1], dtype=np.int64),
            parents=np.array([*(at[parents.get(name, CLUSTER)] for name in names), -1], np.intp),
            starts=np.concatenate(([0], ends)).astype(np.intp),
            rows=np.concatenate(inside).astype(np.intp),
            tier_of_name=tier_of_name,
        )

    def _rows(self, name: str, table: NodeTable) -> list[int]:
        known = (table.index.get(NodeName(node)) for node in self._tree.below(name).nodes)
        return sorted(row for row in known if row is not None)
