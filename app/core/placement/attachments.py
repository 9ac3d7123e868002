"""How many volumes of CSI drivers are attached to nodes, as the ledger stands.

A volume is attached to a node once, however many pods there use it, and stays so for a while when
the last of them has gone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.core.entries import Entry, Evicted
from app.core.ledger import Ledger
from app.core.placement.arrays import MANY, Counts
from app.core.placement.journal import JournalReader
from app.core.placement.volumes import Claims
from app.model.ids import NodeName
from app.model.resources import Rows
from app.model.shape import VolumeAsk
from app.model.volumes import NodeVolumes, Storage, Users, VolumeId

_NO_USERS = Users()
_ATTACHED = Users(now=1)
"""A volume that is attached holds its place as one more user would, until that is over."""


class _Used(NamedTuple):
    """Volumes of one driver by row, now and once pods that are to go are gone; ``(N,)`` each."""

    now: Counts
    ahead: Counts


class Attachments:
    """The volumes attached to the nodes of one cycle; ``claims`` tells of those of a pod."""

    def __init__(self, ledger: Ledger, claims: Callable[[VolumeAsk], Claims]) -> None:
        snapshot = ledger.snapshot
        self._claims = claims
        self._rows = len(snapshot.table.nodes)
        self._journal = JournalReader(ledger.journal)
        self._limits = _limits(ledger)
        self._used: dict[str, _Used] = {}
        self._users: dict[int, dict[VolumeId, Users]] = {}
        on_nodes, attached = snapshot.volumes.on_nodes, _attached(snapshot.volumes.storage)
        for name in on_nodes.keys() | attached.keys():
            row = snapshot.table.index.get(name)
            if row is None:
                continue
            there = on_nodes.get(name, NodeVolumes())
            users_of = self._users[row] = dict(there.attached)
            for id_ in attached.get(name, ()):
                users_of[id_] = users_of.get(id_, _NO_USERS).plus(_ATTACHED)
            for (driver, _), users in users_of.items():
                self._count(driver, row, Users(bool(users.now), bool(users.ahead)))
            for driver, users in there.own.items():
                self._count(driver, row, users)

    def limited(self, claims: Claims) -> list[str]:
        """The drivers of a pod's volumes that some node has a limit for."""
        drivers = dict.fromkeys((*(driver for driver, _ in claims.ids), *claims.own))
        return [driver for driver in drivers if driver in self._limits]

    def free(self, driver: str, rows: Rows, *, ahead: bool) -> tuple[Counts, Counts]:
        """How many more volumes of a driver each node can attach, and how many in all."""
        limits, used = self._limits[driver][rows], self._used.get(driver)
        if used is None:
            return limits, limits
        return limits - (used.ahead if ahead else used.now)[rows], limits

    def asked(self, claims: Claims, driver: str, rows: Rows, *, ahead: bool) -> Counts:
        """How many volumes of a driver a pod brings to each node: those that are not there yet."""
        count = np.full(len(rows), claims.own.count(driver), dtype=np.int64)
        for id_ in claims.ids:
            if id_[0] == driver:
                for at, row in enumerate(rows.tolist()):
                    users = self._users.get(row, {}).get(id_, _NO_USERS)
                    count[at] += not (users.ahead if ahead else users.now)
        return count

    def follow(self) -> None:
        """Take in what the journal has gained or lost since the last call."""
        for entry, row, sign in self._journal.changes():
            ask = entry.shape.volumes
            if ask is not None:
                undone = sign != entry.sign
                self._move(self._claims(ask), row, _change(entry), undone=undone)

    def _move(self, claims: Claims, row: int, change: Users, *, undone: bool) -> None:
        if undone:
            change = Users().minus(change)
        for driver in claims.own:
            self._count(driver, row, change)
        there = self._users.setdefault(row, {})
        for id_ in claims.ids:
            before = there.get(id_, _NO_USERS)
            after = there[id_] = before.plus(change)
            more = Users(bool(after.now), bool(after.ahead))
            self._count(id_[0], row, more.minus(Users(bool(before.now), bool(before.ahead))))

    def _count(self, driver: str, row: int, change: Users) -> None:
        if driver not in self._limits:
            return
        used = self._used.get(driver)
        if used is None:
            used = self._used[driver] = _Used(
                np.zeros(self._rows, dtype=np.int64), np.zeros(self._rows, dtype=np.int64)
            )
        used.now[row] += change.now
        used.ahead[row] += change.ahead


def _change(entry: Entry) -> Users:
    if isinstance(entry, Evicted):
        return Users(0, 0 if entry.releasing else -1)
    return Users(0 if entry.pipelined else 1, 1)


def _attached(storage: Storage) -> dict[NodeName, set[VolumeId]]:
    """The volumes of CSI drivers that are attached, be there pods that use them or not."""
    found: dict[NodeName, set[VolumeId]] = {}
    for each in storage.attachments.values():
        volume = storage.volumes.get(each.volume)
        if volume is not None and volume.id is not None:
            found.setdefault(each.node, set()).add(volume.id)
    return found


def _limits(ledger: Ledger) -> dict[str, Counts]:
    """By driver: how many volumes each node can attach; nodes without a limit take many."""
    index = ledger.snapshot.table.index
    found: dict[str, Counts] = {}
    for name, node in ledger.snapshot.volumes.storage.nodes.items():
        row = index.get(name)
        for driver, limit in node.limits if row is not None else ():
            if driver not in found:
                found[driver] = np.full(len(index), MANY, dtype=np.int64)
            found[driver][row] = limit
    return found
