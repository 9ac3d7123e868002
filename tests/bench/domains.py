"""How near to the lowest possible tier gangs are: ``python -m tests.bench.domains``.

Gangs of several shapes on random trees, where no exact answer is known. The bound is the lowest
tier of a domain in which as many members of each size, and of all larger ones, have room by
themselves as there are: below it no domain takes the gang. The *gap* is how many tiers above it the
gang lies. *Missed* are gangs that wait though the bound allows a domain; there may be none all the
same. For soft gangs the whole cluster is the highest tier.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from time import process_time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from app.core.planner import plan
from app.model.domains import Domains
from app.model.gang import Gang, Task
from app.model.ids import CLUSTER
from app.model.node import Node
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.topology import HyperNode, NetworkTopology
from tests.bench.planner import machine, table_of
from tests.builders import make_gang, make_snapshot
from tests.core.actions.rigs import cores, cycle, members, policies, sized
from tests.topology import SOFT, hard, make_domains, racks, zone

GANGS = 200
RACK, ZONE = 8, 4
"""Nodes of a rack, and racks of a zone."""
MOST_CORES = 8
COLUMNS = ("nodes", "shapes", "mode", "placed", "at bound", "mean gap", "missed", "cycle ms", "p99")


@dataclass(frozen=True)
class Case:
    """Gangs of so many shapes on so many nodes."""

    nodes: int
    shapes: int
    topology: NetworkTopology

    def row(self) -> Sequence[str]:
        """What came of all the gangs."""
        die, took, gaps, missed, placed = random.Random(1), [], [], 0, 0
        for _ in range(GANGS):
            sizes = [die.randrange(MOST_CORES + 1) for _ in range(self.nodes)]
            nodes = cores(*sizes)
            domains = make_domains(nodes, tree(self.nodes))
            wanted = wants(die, self.shapes)
            began = process_time()
            outcome = cycle(gang_of(wanted, self.topology), nodes=nodes, domains=domains)
            took.append(1000 * (process_time() - began))
            in_order = sorted(range(self.nodes), key=lambda at: str(nodes[at].name))
            room = np.array([sizes[at] for at in in_order], dtype=np.int64)
            bound = least_tier(domains, room, wanted, self.topology)
            used = set(outcome.nodes("g").values())
            if used:
                placed += 1
                assert bound is not None, "placed below the bound"
                gaps.append(tier_of(domains, nodes, used) - bound)
            else:
                missed += bound is not None
        return (
            str(self.nodes),
            str(self.shapes),
            self.topology.mode.value,
            f"{placed} of {GANGS}",
            str(gaps.count(0)),
            f"{mean(gaps):.3f}" if gaps else "-",
            str(missed),
            f"{median(took):.1f}",
            f"{np.percentile(took, 99):.1f}",
        )


def tree(nodes: int) -> tuple[HyperNode, ...]:
    """Racks, and zones above them."""
    names = [f"n{at}" for at in range(nodes)]
    of_racks = {
        f"r{at}": " ".join(names[RACK * at : RACK * (at + 1)]) for at in range(nodes // RACK)
    }
    zones = [
        zone(f"z{at}", *(f"r{k}" for k in range(ZONE * at, ZONE * (at + 1)) if f"r{k}" in of_racks))
        for at in range(-(-len(of_racks) // ZONE))
    ]
    return (*racks(**of_racks), *zones)


def wants(die: random.Random, shapes: int) -> Counter[int]:
    """How many members of how many cores: about what a rack, or a zone, has room for."""
    sizes = die.sample(range(1, MOST_CORES), shapes)
    room = MOST_CORES / 2 * RACK * die.choice((1, 1, ZONE)) * die.uniform(0.6, 1.0)
    found: Counter[int] = Counter(sizes)
    while sum(size * count for size, count in found.items()) < room:
        found[die.choice(sizes)] += 1
    return found


def gang_of(wanted: Counter[int], topology: NetworkTopology) -> Gang:
    """The gang ``g``, which needs all these members."""
    waiting = [
        task
        for cpu, count in wanted.items()
        for task in members("g", count, cpu=cpu, role=f"r{cpu}")
    ]
    return make_gang("g", waiting=tuple(waiting), topology=topology)


def least_tier(
    domains: Domains, room: NDArray[np.int64], wanted: Counter[int], asked: NetworkTopology
) -> int | None:
    """The lowest allowed tier whose domains the bound does not rule out; None: there is none."""
    able = domains.sums(room) >= sum(size * count for size, count in wanted.items())
    for least in wanted:
        count = sum(n for size, n in wanted.items() if size >= least)
        able &= domains.sums(room // least) >= count
    able &= domains.tiers <= (domains.highest_tier(asked) or 0)
    return int(domains.tiers[able].min()) if able.any() else None


def tier_of(domains: Domains, nodes: Sequence[Node], used: set[str]) -> int:
    """The tier of the lowest domain that has all these nodes."""
    names = sorted(str(node.name) for node in nodes)
    name = domains.around(np.array([names.index(each) for each in sorted(used)], dtype=np.intp))
    return int(domains.tiers[-1 if name == CLUSTER else domains.names.index(name)])


CASES = [
    Case(nodes, shapes, topology)
    for topology in (hard(2), SOFT)
    for nodes in (16, 64, 256)
    for shapes in (2, 3, 5)
]


SUB_GROUPS = 16
PARTED_NODES = 1000
PARTED_GANGS = 40
PARTED_COLUMNS = ("members", "shapes", "gang", "placed", "by sums", "missed", "cycle ms", "most")


@dataclass(frozen=True)
class Parted:
    """Gangs of sixteen sub-groups of so many ``members``, each of which needs one rack."""

    members: int
    shapes: int
    topology: NetworkTopology | None

    def row(self) -> Sequence[str]:
        """What came of all the gangs."""
        die, took = random.Random(1), []
        came: Counter[str] = Counter()
        for _ in range(PARTED_GANGS):
            nodes = cores(*(die.randrange(MOST_CORES + 1) for _ in range(PARTED_NODES)))
            domains = make_domains(nodes, tree(PARTED_NODES))
            gang = self._gang(die)
            began = process_time()
            outcome = cycle(gang, nodes=nodes, domains=domains)
            took.append(1000 * (process_time() - began))
            never = not outcome.nodes("g") and outcome.refusal("g").never is not None
            came["placed" if outcome.nodes("g") else "sums" if never else "missed"] += 1
        return (
            str(self.members),
            str(self.shapes),
            f"tier <= {self.topology.highest_tier}" if self.topology else "anywhere",
            f"{came['placed']} of {PARTED_GANGS}",
            str(came["sums"]),
            str(came["missed"]),
            f"{median(took):.1f}",
            f"{max(took):.1f}",
        )

    def _gang(self, die: random.Random) -> Gang:
        """All sub-groups are of other members; nodes are empty, so a sum that is short is final."""
        kinds = {cpu: sized(cpu) for cpu in die.sample(range(1, MOST_CORES), self.shapes)}
        waiting: list[Task] = []
        for number in range(SUB_GROUPS):
            for at in range(self.members):
                cpu = die.choice(sorted(kinds))
                name = f"g-{number}-{at}"
                waiting += members(name, 1, shape=kinds[cpu], role=f"r{cpu}")
        of = {t.uid: SubGroup("s", str(at // self.members)) for at, t in enumerate(waiting)}
        policy = SubGroupPolicy(
            "s", keys=("k",), size=self.members, least=SUB_GROUPS, topology=hard(1)
        )
        return make_gang(
            "g",
            waiting=tuple(waiting),
            topology=self.topology,
            sub_groups=(policy,),
            sub_group_of=of,
            sub_group_valid=Counter(of.values()),
        )


PARTED = [
    Parted(count, shapes, topology)
    for topology in (None, hard(2), hard(3))
    for count, shapes in ((2, 3), (4, 3), (8, 3), (8, 5))
]


LARGE_NODES = 5000
LARGE_ROUNDS = 7
LARGE_COLUMNS = ("gangs", "pods", "tier <=", "placed", "median ms", "most")


@dataclass(frozen=True)
class Large:
    """So many gangs of so many pods of one core, each in a domain up to that tier."""

    gangs: int
    pods: int
    tier: int

    def row(self) -> Sequence[str]:
        """What planning all of them takes."""
        die, took, placed = random.Random(1), [], 0
        nodes = cores(*(die.randrange(MOST_CORES // 2, MOST_CORES + 1) for _ in range(LARGE_NODES)))
        domains = make_domains(nodes, three_tiers(LARGE_NODES))
        by = policies((("priority", "gang"), ("predicates", "network-topology-aware")))
        for _ in range(LARGE_ROUNDS):
            shape = sized(1)
            gangs = [
                make_gang(
                    f"g{at}",
                    waiting=members(f"g{at}", self.pods, shape=shape),
                    topology=hard(self.tier),
                )
                for at in range(self.gangs)
            ]
            snapshot = make_snapshot(nodes=nodes, gangs=tuple(gangs), domains=domains)
            began = process_time()
            found = plan(snapshot, by, now=0.0, shapes=None)
            took.append(1000 * (process_time() - began))
            placed = len(found.placed)
        return (
            str(self.gangs),
            str(self.pods),
            str(self.tier),
            str(placed),
            f"{median(took):.0f}",
            f"{max(took):.0f}",
        )


def three_tiers(nodes: int) -> tuple[HyperNode, ...]:
    """Racks of 16, rows of 16 racks, and halls of four rows."""
    of_racks = {
        f"r{at}": " ".join(f"n{row}" for row in range(16 * at, min(16 * at + 16, nodes)))
        for at in range(-(-nodes // 16))
    }
    rows = [
        zone(f"row{at}", *(r for r in of_racks if int(r[1:]) // 16 == at))
        for at in range(-(-len(of_racks) // 16))
    ]
    halls = [
        zone(f"hall{at}", *(f"row{k}" for k in range(4 * at, min(4 * at + 4, len(rows)))), tier=3)
        for at in range(-(-len(rows) // 4))
    ]
    return (*racks(**of_racks), *rows, *halls)


LARGE = (Large(1, 512, 3), Large(1, 512, 2), Large(100, 32, 1))


def main() -> None:
    """Measure and print."""
    console = Console(width=110)
    console.print(machine())
    table = table_of(f"Gangs of several shapes in domains ({GANGS} each)", *COLUMNS)
    for case in CASES:
        table.add_row(*case.row())
    console.print(table)
    title = f"Gangs of {SUB_GROUPS} sub-groups on {PARTED_NODES} nodes"
    table = table_of(title, *PARTED_COLUMNS)
    for parted in PARTED:
        table.add_row(*parted.row())
    console.print(table)
    table = table_of(f"Large plans on {LARGE_NODES} nodes in three tiers", *LARGE_COLUMNS)
    for large in LARGE:
        table.add_row(*large.row())
    console.print(table)


if __name__ == "__main__":
    main()
