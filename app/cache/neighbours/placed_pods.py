"""The pods on each node, as rules about other pods see them: kept as they change.

While no pod has such a rule nothing is kept. From the first question on, holders of room whose pod
or place changed are noted, and looked at when the next snapshot is made: it costs what changed, not
what there is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from app.cache.gangs.members import Slot
from app.cache.neighbours.codes import LiveCodes
from app.model.ids import NodeName
from app.model.placed_pods import NO_LABELS, Codes, PlacedPods, Rows, terms_of
from app.model.pod import Pod
from app.model.shape import PodShape
from app.model.snapshot import NodeTable

SPARE = 64
"""Rows for those to come, at first."""


class Occupant(NamedTuple):
    """A pod that has a place, or the place that is kept for one."""

    node: NodeName
    namespace: str
    labels: Mapping[str, str]
    shape: PodShape
    leaving: bool = False

    @classmethod
    def of(cls, pod: Pod, node: NodeName) -> "Occupant":
        """A pod, on its node or on the one reserved for it."""
        return cls(node, pod.namespace, pod.labels, pod.shape, pod.deleting)

    @classmethod
    def of_slot(cls, slot: Slot, *, namespace: str) -> "Occupant":
        """Room that is kept for a pod: its labels are those that the planner saw."""
        _, labels = slot.shape.spread_identity or (namespace, ())
        return cls(slot.node, namespace, dict(labels), slot.shape)


Find = Callable[[str], Occupant | None]


class PlacedPodTable:
    """Occupants by holder. ``find`` tells the present one, ``holders`` are all that have one."""

    def __init__(self, find: Find, holders: Iterable[str]) -> None:
        self._find = find
        self._holders = holders
        self._noted: dict[str, None] = {}
        self._columns: _Columns | None = None

    def note(self, holder: str) -> None:
        """Something about that one changed, maybe."""
        if self._columns is not None:
            self._noted[holder] = None

    def placed_pods(self, table: NodeTable, asked: frozenset[str]) -> PlacedPods:
        """All placed pods now; of their labels those with keys that are ``asked`` for."""
        if self._columns is None:
            found = ((holder, self._find(holder)) for holder in self._holders)
            self._columns = _Columns({holder: one for holder, one in found if one is not None})
        self.follow()
        return self._columns.told(table, asked)

    def follow(self) -> None:
        """Look at holders that were noted; to be called now and then when no rule asks any more."""
        if self._columns is not None:
            for holder in self._noted:
                self._columns.put(holder, self._find(holder))
            self._noted.clear()


class _Columns:
    """One row per holder; rows of those that went are for those that come."""

    def __init__(self, found: Mapping[str, Occupant]) -> None:
        occupants = list(found.values())
        size = len(occupants) + SPARE
        self._rows = {holder: row for row, holder in enumerate(found)}
        self._free = list(range(size - 1, len(occupants) - 1, -1))
        self._seen = [one.labels for one in occupants] + [NO_LABELS] * SPARE
        self._nodes = LiveCodes([one.node for one in occupants], size=size)
        self._homes = LiveCodes([one.namespace for one in occupants], size=size)
        self._leaving = LiveCodes[bool]([one.leaving or None for one in occupants], size=size)
        self._terms = LiveCodes([terms_of(one.shape) for one in occupants], size=size)
        self._labels: dict[str, LiveCodes[str]] = {}
        self._places = _NodeRows()
        self._told: PlacedPods | None = None

    def put(self, holder: str, one: Occupant | None) -> None:
        """``holder`` is that one now, or none."""
        if one is None:
            row = self._rows.pop(holder, None)
            if row is not None:
                self._nodes.put(row, None)
                self._terms.put(row, None)
                self._free.append(row)
            return
        row = self._rows.get(holder)
        if row is None:
            row = self._rows[holder] = self._new_row()
        self._nodes.put(row, one.node)
        self._homes.put(row, one.namespace)
        self._leaving.put(row, one.leaving or None)
        self._terms.put(row, terms_of(one.shape))
        self._seen[row] = one.labels
        for key, column in self._labels.items():
            column.put(row, one.labels.get(key))

    def _new_row(self) -> int:
        if not self._free:
            size, wider = len(self._seen), 2 * len(self._seen)
            for column in (self._nodes, self._homes, self._leaving, self._terms):
                column.widen(wider)
            for column in self._labels.values():
                column.widen(wider)
            self._seen += [NO_LABELS] * size
            self._free = list(range(wider - 1, size - 1, -1))
        return self._free.pop()

    def told(self, table: NodeTable, asked: frozenset[str]) -> PlacedPods:
        """The placed pods as a value for good; the same value as long as nothing changes."""
        self._labels = {key: self._labels.get(key) or self._column(key) for key in sorted(asked)}
        made = PlacedPods(
            rows=self._places.rows(self._nodes.told(), table),
            homes=self._homes.told(),
            leaving=self._leaving.told(),
            terms=self._terms.told(),
            labels={key: column.told() for key, column in self._labels.items()},
        )
        if self._told is None or not _same(made, self._told):
            self._told = made
        return self._told

    def _column(self, key: str) -> LiveCodes[str]:
        return LiveCodes([labels.get(key) for labels in self._seen], size=len(self._seen))


class _NodeRows:
    """Which rows of the node table the nodes' codes are; worked out when either changed."""

    def __init__(self) -> None:
        self._of: tuple[Mapping[NodeName, int], NodeTable] | None = None
        self._at: Rows = np.zeros(0, dtype=np.intp)
        self._codes: Rows | None = None
        self._rows = self._at

    def rows(self, nodes: Codes[NodeName], table: NodeTable) -> Rows:
        """As in :class:`~app.model.placed_pods.PlacedPods`."""
        if self._of is None or self._of[0] is not nodes.values or self._of[1] is not table:
            self._of, self._codes = (nodes.values, table), None
            beyond = len(table.nodes)
            at = [table.index.get(name, beyond) for name in nodes.values]
            self._at = np.array([*at, beyond], dtype=np.intp)
        if self._codes is not nodes.codes:
            self._codes, self._rows = nodes.codes, self._at.take(nodes.codes)
            self._rows.flags.writeable = False
        return self._rows


def _same(one: PlacedPods, other: PlacedPods) -> bool:
    return (
        one.rows is other.rows
        and one.homes is other.homes
        and one.leaving is other.leaving
        and one.terms is other.terms
        and one.labels == other.labels
    )
