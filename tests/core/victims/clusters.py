"""Random clusters to make room in, and the cheapest way by trying everything.

Nothing here is of the solver: sets, costs and placements are worked out one by one.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from app.core.victims.problem import Limit, Places, Problem, Wanted
from app.core.victims.units import Unit
from app.model.ids import GroupKey
from app.model.parts import Part
from app.model.placed_pods import Codes, frozen
from app.model.resources import Mask
from app.model.running import Running
from tests.builders import make_pod

Amount = tuple[int, int, int]
Cost = tuple[int, int, int, int]
POD = make_pod()
LOWEST = -(1 << 31)


@dataclass(frozen=True)
class Member:
    """A running pod."""

    node: int
    amount: Amount
    lost: int = 0


@dataclass(frozen=True)
class Group:
    """Pods that run; ``minimum`` of them stay, or none does."""

    members: tuple[Member, ...]
    minimum: int = 1
    priority: int = 0


@dataclass(frozen=True)
class Ask:
    """``count`` equal members that may go to ``nodes``, so many of them to one."""

    amount: Amount
    count: int
    nodes: frozenset[int]
    per_node: int | None = None


@dataclass(frozen=True)
class Cap:
    """Of these pods no more than ``most`` may go, as a PodDisruptionBudget has it."""

    pods: frozenset[int]
    most: int


@dataclass(frozen=True)
class Owed:
    """Of these pods so much must go besides, as the limit of a queue has it."""

    pods: frozenset[int]
    amount: Amount


@dataclass(frozen=True)
class Cluster:
    """What is idle, what runs, and what is asked for; pods are numbered through all groups."""

    idle: tuple[Amount, ...]
    groups: tuple[Group, ...]
    asks: tuple[Ask, ...]
    caps: tuple[Cap, ...] = ()
    owed: tuple[Owed, ...] = ()

    @cached_property
    def pods(self) -> list[tuple[int, Member]]:
        """The group of each pod, and the pod."""
        return [(at, pod) for at, group in enumerate(self.groups) for pod in group.members]

    @cached_property
    def mine(self) -> list[list[int]]:
        """The numbers of the pods of each group."""
        found: list[list[int]] = [[] for _ in self.groups]
        for number, (of, _) in enumerate(self.pods):
            found[of].append(number)
        return found

    # --- what may go -----------------------------------------------------------------------------

    def may_go(self, gone: frozenset[int]) -> bool:
        """Whether every group keeps its minimum or goes whole, and no cap is exceeded."""
        for at, group in enumerate(self.groups):
            mine = self.mine[at]
            left = len([pod for pod in mine if pod not in gone])
            if left not in (0, len(mine)) and left < group.minimum:
                return False
        return self.keeps_caps(gone)

    def keeps_caps(self, gone: frozenset[int]) -> bool:
        """Whether no cap is exceeded."""
        return all(len(cap.pods & gone) <= cap.most for cap in self.caps)

    def cost(self, gone: frozenset[int]) -> Cost:
        """Groups of more than one that end, highest priority, lost work, pods."""
        ended, highest, lost = 0, LOWEST, 0
        for at, group in enumerate(self.groups):
            mine = [pod for pod in self.mine[at] if pod in gone]
            if mine:
                highest = max(highest, group.priority)
            left = len(group.members) - len(mine)
            ended += bool(mine) and group.minimum > 1 and left < group.minimum
        lost = sum(self.pods[pod][1].lost for pod in gone)
        return ended, highest, lost, len(gone)

    # --- what fits -------------------------------------------------------------------------------

    def free(self, gone: frozenset[int]) -> list[list[int]]:
        """What is idle of each node without these pods."""
        free = [list(amount) for amount in self.idle]
        for number in gone:
            pod = self.pods[number][1]
            for r, amount in enumerate(pod.amount):
                free[pod.node][r] += amount
        return free

    def placed(self, gone: frozenset[int]) -> list[list[int]] | None:
        """Nodes for the members of each ask, by trying all; None: none, or more is owed."""
        if not self.pays(gone):
            return None
        free = self.free(gone)
        members = [at for at, ask in enumerate(self.asks) for _ in range(ask.count)]
        rows: list[list[int]] = [[] for _ in self.asks]
        return rows if self._try(free, members, rows) else None

    def pays(self, gone: frozenset[int]) -> bool:
        """Whether these pods are what is owed."""
        for owed in self.owed:
            mine = [self.pods[pod][1].amount for pod in owed.pods & gone]
            paid = [sum(amount[r] for amount in mine) for r in range(3)]
            if any(have < want for have, want in zip(paid, owed.amount, strict=True)):
                return False
        return True

    def _try(self, free: list[list[int]], members: Sequence[int], rows: list[list[int]]) -> bool:
        if not members:
            return True
        at, rest = members[0], members[1:]
        for node in range(len(free)):
            if rows[at] and node < rows[at][-1]:
                continue  # equal members in ascending order of their nodes
            if not self.fits(free, at, node, rows):
                continue
            _add(free[node], self.asks[at].amount, -1)
            rows[at].append(node)
            if self._try(free, rest, rows):
                return True
            rows[at].pop()
            _add(free[node], self.asks[at].amount, 1)
        return False

    def fits(self, free: list[list[int]], at: int, node: int, rows: list[list[int]]) -> bool:
        """Whether one more member of an ask has room on the node."""
        ask = self.asks[at]
        if node not in ask.nodes or rows[at].count(node) == ask.per_node:
            return False
        return all(
            want <= have for want, have in zip(ask.amount, free[node], strict=True) if want > 0
        )

    def holds(self, places: Places, gone: frozenset[int]) -> bool:
        """Whether all members have room on these nodes at once."""
        free = self.free(gone)
        rows: list[list[int]] = [[] for _ in self.asks]
        for at, ask in enumerate(self.asks):
            if len(places[at]) != ask.count:
                return False
            for node in places[at]:
                if not self.fits(free, at, node, rows):
                    return False
                _add(free[node], ask.amount, -1)
                rows[at].append(node)
        return True

    # --- what is best ----------------------------------------------------------------------------

    def sets(self) -> Iterator[frozenset[int]]:
        """All sets of pods that may go."""
        pods = range(len(self.pods))
        for count in range(len(pods) + 1):
            for some in combinations(pods, count):
                if self.may_go(frozenset(some)):
                    yield frozenset(some)

    def cheapest(self) -> Cost | None:
        """The cost of the cheapest set that makes room; None: none does."""
        found = sorted((self.cost(gone), gone) for gone in self.sets())
        return next((cost for cost, gone in found if self.placed(gone) is not None), None)


def _add(free: list[int], amount: Amount, sign: int) -> None:
    for r, each in enumerate(amount):
        free[r] += sign * each


# --- the same for the solver ---------------------------------------------------------------------


def units_of(cluster: Cluster) -> list[Unit]:
    """The units of its groups, in the order of the groups."""
    units: list[Unit] = []
    for at, group in enumerate(cluster.groups):
        mine, size = cluster.mine[at], len(group.members)
        key = GroupKey(f"g{at}")
        spare = size if group.minimum <= 1 else size - group.minimum
        if spare > 0:
            units += [
                Unit((pod,), key, False, spare, group.priority, cluster.pods[pod][1].lost)
                for pod in mine
            ]
        if group.minimum > 1:
            lost = sum(member.lost for member in group.members)
            units.append(Unit(tuple(mine), key, True, 0, group.priority, lost))
    return units


def running_of(cluster: Cluster) -> Running:
    """Its pods as columns."""
    pods = cluster.pods
    count = len(pods)
    return Running(
        pods=(POD,) * count,
        index={},
        nodes=frozen([pod.node for _, pod in pods]),
        gangs=tuple(GroupKey(f"g{group}") for group, _ in pods),
        parts=(Part(""),) * count,
        queues=Codes.of([None] * count),
        requests=np.array([pod.amount for _, pod in pods], dtype=np.int64).reshape(count, 3),
        priorities=np.zeros(count, dtype=np.int64),
        created=np.zeros(count),
        started=np.zeros(count),
        counted=np.ones(count, dtype=np.bool_),
        bound=np.ones(count, dtype=np.bool_),
        releasing=np.zeros(count, dtype=np.bool_),
        protected=np.zeros(count, dtype=np.int8),
        saved=np.zeros(count),
        grace=np.zeros(count),
        kinds=Codes.of([None] * count),
    )


def gone_with(units: Sequence[Unit]) -> frozenset[int]:
    """The pods of ``units``."""
    return frozenset(pod for unit in units for pod in unit.pods)


@dataclass
class Going:
    """Units that go together, asked about one by one."""

    cluster: Cluster
    gone: frozenset[int] = frozenset()

    def take(self, units: Sequence[Unit]) -> int | None:
        """Let all of these go as well, if they may."""
        gone = self.gone
        for number, unit in enumerate(units):
            gone |= set(unit.pods)
            if not self.cluster.keeps_caps(gone):
                return number
        self.gone = gone
        return None

    def still_may(self) -> Mask:
        """Which units may go yet, each by itself."""
        units = units_of(self.cluster)
        return np.array([self.cluster.keeps_caps(self.gone | set(unit.pods)) for unit in units])


@dataclass
class Asked:
    """A problem, and what its solver asked."""

    cluster: Cluster
    tells_limits: bool = True
    """Else the planner alone knows of what is owed."""
    proofs: int = 0

    @property
    def problem(self) -> Problem:
        """The problem; the planner believes given places, else takes the first that fit."""
        cluster = self.cluster
        return Problem(
            units=units_of(cluster),
            running=running_of(cluster),
            room=np.array(cluster.idle, dtype=np.int64).reshape(len(cluster.idle), 3),
            wanted=[
                Wanted(
                    np.array([node in ask.nodes for node in range(len(cluster.idle))]),
                    np.array(ask.amount, dtype=np.int64),
                    ask.count,
                    ask.per_node,
                )
                for ask in cluster.asks
            ],
            limits=[
                Limit(
                    np.array([at in owed.pods for at in range(len(cluster.pods))]),
                    np.array(owed.amount, dtype=np.int64),
                )
                for owed in cluster.owed
                if self.tells_limits
            ],
            together=lambda: nullcontext(Going(cluster)),
            prove=self._prove,
        )

    def _prove(self, units: Sequence[Unit], hint: Places | None) -> Places | None:
        self.proofs += 1
        gone = gone_with(units)
        if not self.cluster.pays(gone):
            assert not self.tells_limits
            return None
        if hint is not None and self.cluster.holds(hint, gone):
            return hint
        assert hint is None or not self.tells_limits
        return self._first_fit(gone)

    def _first_fit(self, gone: frozenset[int]) -> Places | None:
        free = self.cluster.free(gone)
        rows: list[list[int]] = [[] for _ in self.cluster.asks]
        for at, ask in enumerate(self.cluster.asks):
            for _ in range(ask.count):
                fitting = (n for n in range(len(free)) if self.cluster.fits(free, at, n, rows))
                node = next(fitting, None)
                if node is None:
                    return None
                _add(free[node], ask.amount, -1)
                rows[at].append(node)
        return tuple(tuple(nodes) for nodes in rows)


# --- random ones ---------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn, *, pods: int, least: int = 0, caps: bool = True) -> Cluster:
    """Up to eight nodes, on which between ``least`` and ``pods`` pods run."""
    nodes = draw(st.integers(1, 8))
    some = st.integers(0, 3)
    idle = draw(st.lists(st.tuples(some, some, some), min_size=nodes, max_size=nodes))
    members = st.builds(
        Member,
        node=st.integers(0, nodes - 1),
        amount=st.tuples(st.integers(0, 4), st.integers(0, 3), st.just(1)),
        lost=st.integers(0, 5),
    )
    running = draw(st.lists(members, min_size=least, max_size=pods))
    groups: list[Group] = []
    while running:
        size = draw(st.integers(1, min(4, len(running))))
        mine, running = tuple(running[:size]), running[size:]
        minimum = draw(st.integers(1, size))
        groups.append(Group(mine, minimum, priority=draw(st.integers(0, 2))))
    count = sum(len(group.members) for group in groups)
    asks = draw(
        st.lists(
            st.builds(
                Ask,
                amount=st.tuples(st.integers(0, 5), st.integers(0, 4), st.just(1)),
                count=st.integers(1, 3),
                nodes=st.frozensets(st.integers(0, nodes - 1), min_size=min(nodes, 2)),
                per_node=st.sampled_from((None, None, None, 1)),
            ),
            min_size=1,
            max_size=2,
        )
    )
    capped = st.builds(
        Cap, pods=st.frozensets(st.integers(0, max(count - 1, 0))), most=st.integers(0, 3)
    )
    limits = draw(st.lists(capped, max_size=2)) if caps else []
    amount = st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 3))
    every = st.sets(st.integers(0, max(count - 1, 0)), max_size=3).map(
        lambda some: frozenset(range(count)) - some
    )
    owed = draw(st.lists(st.builds(Owed, pods=every, amount=amount), max_size=1))
    return Cluster(tuple(idle), tuple(groups), tuple(asks), tuple(limits), tuple(owed))
