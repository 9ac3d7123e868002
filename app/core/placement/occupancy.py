"""On which nodes members of groups are, as the ledger stands.

Counted are members with a place, slots and places that are to come included; pods that terminate,
or are to be evicted, are not.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.parts import SubGroup
from app.model.resources import Mask
from app.model.shape import LabelSelector, Operator
from app.model.workload import Namespace


class Selected(NamedTuple):
    """Which groups: by labels, of ``namespace``, or of those whose labels ``namespaces`` match."""

    groups: LabelSelector
    namespace: str
    namespaces: LabelSelector | None


@dataclass(slots=True, eq=False)
class _Counted:
    """How many members of some groups each node has, shape ``(N,)``.

    Of those of the policy and of the sub-group only; empty and None: of all.
    """

    counts: NDArray[np.int64]
    policy: str = ""
    sub_group: SubGroup | None = None

    def note(self, sub_group: SubGroup, row: int, sign: int) -> None:
        if self.sub_group is not None and sub_group != self.sub_group:
            return
        if not self.policy or sub_group.policy == self.policy:
            self.counts[row] += sign


class Occupancy:
    """The members of groups on the nodes of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._snapshot = ledger, ledger.snapshot
        self._journal = JournalReader(ledger.journal)
        self._by_group: defaultdict[GroupKey, list[_Counted]] = defaultdict(list)
        self._known: dict[object, _Counted] = {}
        self._keys: dict[Selected, frozenset[GroupKey]] = {}
        self._labelled: dict[tuple[str, str], list[Gang]] | None = None
        self._changes = 0

    def follow(self) -> int:
        """Take up what has changed; returns a number that is another one then.

        It stays the same while groups change that were never asked about.
        """
        for entry, row, sign in self._journal.changes():
            if entry.gang is None or not entry.counts:
                continue
            counted = self._by_group.get(entry.gang.key, ())
            for each in counted:
                each.note(entry.sub_group, row, sign)
            self._changes += bool(counted)
        return self._changes

    def of_gang(self, key: GroupKey) -> Mask:
        """The nodes of all members of the group, shape ``(N,)``."""
        return self._of(("gang", key), (key,)).counts > 0

    def of_policy(self, key: GroupKey, policy: str, *, but: SubGroup | None = None) -> Mask:
        """The nodes of members of sub-groups of the policy, without those of one of them."""
        counts = self._of(("policy", key, policy), (key,), policy=policy).counts
        if but is not None and but.policy == policy:
            counts = counts - self._of(("part", key, but), (key,), sub_group=but).counts
        return counts > 0

    def of_groups(self, selected: Selected, *, but: GroupKey) -> Mask:
        """The nodes of members of those groups, without one of them, shape ``(N,)``."""
        keys = self.keys(selected)
        counts = self._of(selected, keys).counts
        if but in keys:
            counts = counts - self._of(("gang", but), (but,)).counts
        return counts > 0

    def keys(self, selected: Selected) -> frozenset[GroupKey]:
        """The groups that are selected, with places or without."""
        known = self._keys.get(selected)
        if known is None:
            known = self._keys[selected] = frozenset(
                gang.key
                for gang in self._candidates(selected.groups)
                if self._is_in(gang.namespace, selected) and selected.groups.matches(gang.labels)
            )
        return known

    def _is_in(self, namespace: str, selected: Selected) -> bool:
        if selected.namespaces is None:
            return namespace == selected.namespace
        known: Namespace | None = self._snapshot.namespaces.get(namespace)
        return selected.namespaces.matches(known.labels if known is not None else {})

    def _candidates(self, groups: LabelSelector) -> Iterable[Gang]:
        """The groups that may match, by the first label that has to have one of some values."""
        wanted = next((r for r in groups.requirements if r.operator is Operator.IN), None)
        if wanted is None:
            return (gang for gang in self._snapshot.gangs.values() if not gang.solo)
        if self._labelled is None:
            self._labelled = defaultdict(list)
            for gang in self._snapshot.gangs.values():
                for item in gang.labels.items():
                    self._labelled[item].append(gang)
        labelled = self._labelled
        return (gang for value in wanted.values for gang in labelled.get((wanted.key, value), ()))

    def _of(
        self,
        name: object,
        keys: Collection[GroupKey],
        *,
        policy: str = "",
        sub_group: SubGroup | None = None,
    ) -> _Counted:
        self.follow()
        known = self._known.get(name)
        if known is None:
            nothing = np.zeros(len(self._snapshot.table.nodes), dtype=np.int64)
            known = self._known[name] = _Counted(nothing, policy, sub_group)
            for of, row, sign in members_of(self._ledger, keys):
                known.note(of, row, sign)
            for key in keys:
                self._by_group[key].append(known)
        return known


def members_of(ledger: Ledger, keys: Collection[GroupKey]) -> Iterator[tuple[SubGroup, int, int]]:
    """Where the members of these groups are: sub-group, row of the node, and 1; -1: one less."""
    snapshot = ledger.snapshot
    for key in keys:
        for place in snapshot.places.get(key, ()):
            row = snapshot.table.index.get(place.node)
            if row is not None:
                yield place.sub_group, row, 1
    for entry in ledger.journal:
        if entry.gang is None or entry.gang.key not in keys or entry.node is None:
            continue
        if entry.counts:
            yield entry.sub_group, entry.node, entry.sign
