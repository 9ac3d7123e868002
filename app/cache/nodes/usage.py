"""How much of every node is taken, by which pods and slots.

A *charge* says: this holder (a pod or a slot) takes this vector on this node. A holder has at most
one charge, so nothing can be counted twice, whatever order events come in; charging again moves it.
Rows of the matrices are stable for a node's life (a node that is charged before it is seen gets one
too); :meth:`NodeUsage.table` gives the planner's sorted view and :meth:`NodeUsage.sorted_used` the
matching copy.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from app.cache.nodes.uncounted import Uncounted
from app.core.placement.taints import bears_cordon
from app.model.amounts import Amounts
from app.model.ids import GroupKey, NodeName
from app.model.node import Node
from app.model.resources import CPU_COLUMN, Matrix, ResourceAxis, Vector
from app.model.running import NO_GROUP
from app.model.shape import PodShape
from app.model.snapshot import NodeTable

VECTORS_KEPT = 1_000
"""Distinct amounts whose vectors are shared; far more come and go in the life of a cluster."""


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """What one holder takes; ``releasing`` when its pod is terminating."""

    node: NodeName
    request: Amounts
    vector: Vector
    reserved: bool
    releasing: bool


def read_only(array: Matrix) -> Matrix:
    """``array`` made read-only: snapshots share it."""
    array.flags.writeable = False
    return array


class NodeUsage:
    """Nodes and the charges on them."""

    def __init__(self) -> None:
        self.axis = ResourceAxis()
        self.nodes: dict[NodeName, Node] = {}
        self.charges: dict[str, Charge] = {}
        self.generation = 0
        self.grown: Callable[[], None] | None = None
        """Called after the axis grew: vectors that others keep are too short now."""
        self.moved: list[Callable[[str], None]] = []
        """Called for a holder whose charge, or whose pod, says something else than before.

        The charge is new, gone or on another node, or is no reservation any more, or one that is
        acted on.
        """
        self.kept_on: Collection[NodeName] = ()
        """Nodes some of whose idle room is kept back for pods that others are evicted for."""
        self.kept_back: Callable[[NodeName, GroupKey], Vector] | None = None
        """How much there is kept back from a group, shape ``(R,)``."""
        self.charges_made = 0
        """How often a holder took or was reserved room that it did not have before."""
        self._rows: dict[NodeName, int] = {}
        self._free_rows: list[int] = []
        self._holders: dict[NodeName, set[str]] = {}
        self._reserved_on: dict[NodeName, int] = {}
        self._used = np.zeros((64, len(self.axis)), dtype=np.int64)
        self._releasing = np.zeros_like(self._used)
        self._allocatable = np.zeros_like(self._used)
        self.uncounted = Uncounted()
        self._uncounted: Vector | None = None
        self._vectors: dict[Amounts, Vector] = {}
        self._table: NodeTable | None = None
        self._order: np.ndarray[tuple[int], np.dtype[np.int64]] = np.zeros(0, dtype=np.int64)

    # --- vectors ---------------------------------------------------------------------------------

    def vector(self, values: Amounts) -> Vector:
        """``values`` on the axis, shape ``(R,)``; the axis grows when a name is new.

        Equal amounts share one read-only vector as a rule; there is no counting on it.
        """
        known = self._vectors.get(values)
        if known is not None:
            return known
        self._cover(name for name, _ in values)
        if len(self._vectors) >= VECTORS_KEPT:
            self._vectors.clear()  # those in use live on with their users
        vector = self._vectors[values] = read_only(self.axis.vector(values))
        return vector

    def _cover(self, names: Iterable[str]) -> None:
        axis = self.axis.covering(names)
        extra = len(axis) - len(self.axis)
        if not extra:
            return
        self.axis = axis
        pad = ((0, 0), (0, extra))
        self._used = np.pad(self._used, pad)
        self._releasing = np.pad(self._releasing, pad)
        self._allocatable = np.pad(self._allocatable, pad)
        self._vectors.clear()
        for holder, old in self.charges.items():
            self.charges[holder] = Charge(
                old.node, old.request, self.vector(old.request), old.reserved, old.releasing
            )
        self._changed()
        if self.grown is not None:
            self.grown()

    # --- nodes -----------------------------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add or replace ``node``; returns whether placement rules see a difference."""
        old = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if old is not None and old.places_like(node):
            return False
        self._cover(name for name, _ in node.allocatable)
        self.uncounted.note_node(node, old)
        row = self._row(node.name)
        self._allocatable[row] = self.axis.vector(node.allocatable) if node.ready else 0
        self._changed()
        return True

    def drop_node(self, name: NodeName) -> bool:
        """Forget the node (its charges stay until their pods go); returns whether it was known."""
        node = self.nodes.pop(name, None)
        if node is None:
            return False
        self.uncounted.note_node(None, node)
        self._allocatable[self._rows[name]] = 0
        self._vacate(name)
        self._changed()
        return True

    def set_devices(self, names: frozenset[str]) -> bool:
        """``names`` are resources that DeviceClasses map; returns whether that is news."""
        return self._follow_uncounted(self.uncounted.set_mapped(names))

    def set_offered(self, offered: Mapping[str, int]) -> bool:
        """So much there is of devices of classes; returns whether that is news."""
        return self._follow_uncounted(self.uncounted.set_offered(offered))

    def _follow_uncounted(self, is_news: bool) -> bool:
        if is_news:
            self._changed()
        return is_news

    def _changed(self) -> None:
        self.generation += 1
        self._table = self._uncounted = None

    def _beyond(self) -> Vector:
        """What every node has besides, as only kube-scheduler knows how much; shape ``(R,)``."""
        if self._uncounted is None:
            self._uncounted = read_only(self.uncounted.of_each_node(self.axis))
        return self._uncounted

    def _row(self, name: NodeName) -> int:
        row = self._rows.get(name)
        if row is None:
            row = self._free_rows.pop() if self._free_rows else len(self._rows)
            if row >= len(self._used):
                pad = ((0, len(self._used)), (0, 0))
                self._used = np.pad(self._used, pad)
                self._releasing = np.pad(self._releasing, pad)
                self._allocatable = np.pad(self._allocatable, pad)
            self._rows[name] = row
        return row

    def _vacate(self, name: NodeName) -> None:
        """Give the row back once neither the node nor a charge needs it."""
        if name not in self.nodes and not self._holders.get(name):
            self._holders.pop(name, None)
            self._free_rows.append(self._rows.pop(name))

    # --- charges ---------------------------------------------------------------------------------

    def charge(
        self, holder: str, node: NodeName, request: Amounts, *, reserved: bool, releasing: bool
    ) -> bool:
        """Let ``holder`` take ``request`` on ``node``; returns whether any sum changed."""
        old = self.charges.get(holder)
        if old is not None:
            same = old.node == node and old.request == request
            if same and old.releasing == releasing:
                if old.reserved != reserved:
                    self._count_reservation(node, 1 if reserved else -1)
                    self.charges[holder] = Charge(node, request, old.vector, reserved, releasing)
                    self.tell(holder)
                return False
            self.discharge(holder)
        self.charges_made += old is None or old.request != request
        vector = self.vector(request)
        row = self._row(node)
        self._used[row] += vector
        if releasing:
            self._releasing[row] += vector
        self._holders.setdefault(node, set()).add(holder)
        if reserved:
            self._count_reservation(node, 1)
        self.charges[holder] = Charge(node, request, vector, reserved, releasing)
        self.tell(holder)
        return True

    def discharge(self, holder: str) -> bool:
        """Give back what ``holder`` took; returns whether it held anything."""
        old = self.charges.pop(holder, None)
        if old is None:
            return False
        row = self._rows[old.node]
        self._used[row] -= old.vector
        if old.releasing:
            self._releasing[row] -= old.vector
        self._holders[old.node].discard(holder)
        if old.reserved:
            self._count_reservation(old.node, -1)
        self._vacate(old.node)
        self.tell(holder)
        return True

    def exchange(self, one: str, other: str) -> None:
        """Let two holders whose charges differ in nothing but the node change nodes: sums stay."""
        mine, theirs = self.charges[one], self.charges[other]
        self.charges[one], self.charges[other] = theirs, mine
        for node, leaves in ((mine.node, one), (theirs.node, other)):
            self._holders[node].discard(leaves)
        for node, comes in ((mine.node, other), (theirs.node, one)):
            self._holders[node].add(comes)
        self.tell(one)
        self.tell(other)

    def tell(self, holder: str) -> None:
        """Tell followers of charges of ``holder``."""
        for tell in self.moved:
            tell(holder)

    def _count_reservation(self, node: NodeName, by: int) -> None:
        count = self._reserved_on.get(node, 0) + by
        if count:
            self._reserved_on[node] = count
        else:
            del self._reserved_on[node]

    def holders(self, node: NodeName) -> frozenset[str]:
        """The holders of charges on ``node``."""
        return frozenset(self._holders.get(node, ()))

    def reserved_nodes(self) -> frozenset[NodeName]:
        """Nodes with room reserved for pods that are not bound yet."""
        return frozenset(self._reserved_on)

    def is_short(self, node: NodeName) -> bool:
        """Whether reservations on ``node`` ask for something of which it has less than nothing."""
        if node not in self._reserved_on or node not in self.nodes or (self.idle(node) >= 0).all():
            return False
        return any(
            self.is_squeezed(holder)
            for holder in self._holders[node]
            if self.charges[holder].reserved
        )

    def is_squeezed(self, holder: str, *, without: Collection[str] = frozenset()) -> bool:
        """Whether ``holder`` has a charge on a node that lacks some of what it takes.

        ``without``: as if these other holders were not there.
        """
        charge = self.charges.get(holder)
        if charge is None or charge.node not in self.nodes:
            return False
        return bool((self.free(charge.node, without=without) < 0)[charge.vector > 0].any())

    def has_room(
        self,
        node: NodeName,
        request: Vector,
        *,
        without: Collection[str] = frozenset(),
        owner: GroupKey = NO_GROUP,
    ) -> bool:
        """Whether all that ``request`` asks for is free on ``node``. Raises ``KeyError``.

        ``without``: as if these holders were not there. What is kept back is free for its ``owner``
        only. A node may lack what is not asked for (it shrank, or a foreign pod was forced onto
        it).
        """
        free = self.free(node, without=without)
        if node in self.kept_on and self.kept_back is not None:
            free -= self.kept_back(node, owner)
        return bool((free >= request)[request > 0].all())

    def free(self, node: NodeName, *, without: Collection[str]) -> Vector:
        """:meth:`idle` as if these holders were not there."""
        free = self.idle(node)
        for holder in self._holders.get(node, frozenset()).intersection(without):
            free += self.charges[holder].vector
        return free

    def idle(self, node: NodeName) -> Vector:
        """Free room on ``node``, shape ``(R,)``; may be negative. Raises ``KeyError``."""
        row = self._rows[node]
        free: Vector = self._allocatable[row] - self._used[row] + self._beyond()
        return free

    def best_of(
        self, names: Sequence[NodeName], request: Vector, *, pack: bool, least: int = 1
    ) -> NodeName | None:
        """The node among ``names`` with room for ``request``; None when fewer than ``least`` have.

        The one with the least free CPU left when ``pack``, else the one with the most; ties go to
        the first by name.
        """
        known = [name for name in names if name in self.nodes]
        rows = np.array([self._rows[name] for name in known], dtype=np.intp)
        free = self._allocatable.take(rows, axis=0) - self._used.take(rows, axis=0)
        free += self._beyond()
        if self.kept_on and self.kept_back is not None:
            for at, name in enumerate(known):
                if name in self.kept_on:
                    free[at] -= self.kept_back(name, NO_GROUP)
        fits = ((free >= request) | (request == 0)).all(axis=1)
        if np.count_nonzero(fits) < least:
            return None
        cpu = free[:, CPU_COLUMN]
        best = cpu[fits].min() if pack else cpu[fits].max()
        return min(compress(known, (fits & (cpu == best)).tolist()))

    def is_up(self, node: NodeName) -> bool:
        """Whether ``node`` is known and ready, cordoned or not."""
        known = self.nodes.get(node)
        return known is not None and known.ready

    def takes(self, node: NodeName, shape: PodShape) -> bool:
        """Whether ``node`` is known, ready, and not cordoned for pods of ``shape``."""
        known = self.nodes.get(node)
        if known is None or not known.ready:
            return False
        return not known.unschedulable or bears_cordon(shape)

    # --- views -----------------------------------------------------------------------------------

    def table(self) -> NodeTable:
        """The nodes sorted by name; the same object until something but usage changes."""
        if self._table is None:
            names = sorted(self.nodes)
            self._order = np.array([self._rows[n] for n in names], dtype=np.int64)
            allocatable = np.asfortranarray(self._allocatable[self._order])
            allocatable += self._beyond()
            cordoned = np.array([self.nodes[name].is_cordoned for name in names], dtype=np.bool_)
            total: Vector = allocatable[~cordoned].sum(axis=0)
            self._table = NodeTable(
                axis=self.axis,
                nodes=tuple(self.nodes[n] for n in names),
                index={name: i for i, name in enumerate(names)},
                allocatable=read_only(allocatable),
                total=read_only(self.uncounted.with_offered(total, self.axis)),
                away=tuple(row for row, name in enumerate(names) if not self.nodes[name].ready),
                cordoned=tuple(np.flatnonzero(cordoned).tolist()),
                generation=self.generation,
            )
        return self._table

    def total(self, *, asked_of_cordoned: Vector | None = None) -> Vector:
        """What the cluster has now, shape ``(R,)``, see :meth:`NodeTable.total_with`."""
        return self.table().total_with(
            lambda rows: self._used[self._order[rows]], asked_of_cordoned=asked_of_cordoned
        )

    def sorted_used(self) -> tuple[Matrix, Matrix]:
        """Copies of what is used and releasing, rows as in :meth:`table`, shape ``(N, R)``."""
        self.table()
        return read_only(self._used[self._order]), read_only(self._releasing[self._order])
