"""What is taken of volumes, and of the storage for new ones, as the ledger stands.

A place takes a volume, or storage for a new one, for each claim of its pod that waits for that. A
claim that several pods share is settled by the first of them: the others follow it to where its
volume can be reached. A roll-back restores every number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.core.entries import Entry, Evicted
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.placement.volume_reach import Reach
from app.core.placement.volumes import (
    Claims,
    claims_of,
    class_name,
    class_of,
    may_be_made_on,
    provisioner_of,
    serves,
)
from app.model.amounts import UNLIMITED
from app.model.ids import NO_NODE
from app.model.resources import Mask, Rows
from app.model.shape import ClaimSpec, VolumeAsk
from app.model.volumes import (
    PersistentVolume,
    StorageCapacity,
    Users,
    VolumeClaim,
)

_FEW = 64
"""Volumes that can be reached from so many nodes at most are looked up by node."""


class Wish(NamedTuple):
    """A volume that a pod waits for: of a claim, or one of its own (``claim`` None)."""

    spec: ClaimSpec
    claim: VolumeClaim | None = None


class Settled(NamedTuple):
    """What a wish gets: the ``volume`` of that name, or ``size`` bytes of the ``pool`` of that key.

    Without both it gets a new volume of a driver that does not say how much is left.
    """

    wish: Wish
    volume: str = ""
    pool: str = ""


class Lack(NamedTuple):
    """Why a wish gets nothing on a node: ``most`` bytes are left there, None: no volume is."""

    wish: Wish
    most: int | None = None


class _Move(NamedTuple):
    """What an entry of the journal changes, by which it is undone."""

    claims: Claims
    users: Users
    row: int
    settled: tuple[Settled, ...]


class _Volumes(NamedTuple):
    """Volumes of one class that wait for claims, the smallest first."""

    near: Mapping[int, Sequence[PersistentVolume]]
    wide: Sequence[tuple[PersistentVolume, Mask]]


class VolumeBooks:
    """The volumes of one cycle; rows are those of the node table."""

    def __init__(self, ledger: Ledger, reach: Reach) -> None:
        snapshot = ledger.snapshot
        self.storage = snapshot.volumes.storage
        self.reach = reach
        self._nodes = snapshot.table.nodes
        self._index = snapshot.table.index
        self._on = snapshot.volumes.on_nodes
        self._journal = JournalReader(ledger.journal)
        self._claims: dict[VolumeAsk, Claims] = {}
        self._users: dict[str, dict[int, Users]] = {}
        self._where: dict[str, Mask] = {}
        self._taken: set[str] = set()
        self._drawn: dict[str, int] = {}
        self._by_class: dict[str, _Volumes] = {}
        self._pools: dict[str, list[tuple[StorageCapacity, Mask]]] = {}
        self._versions: dict[str, int] = {}
        self._wide = 0
        self._moves: dict[int, _Move] = {}
        """By identity of the entries of the journal, which live as long as they are there."""
        self._take_up()

    def claims(self, ask: VolumeAsk) -> Claims:
        """What becomes of the claims of a pod."""
        known = self._claims.get(ask)
        if known is None:
            known = self._claims[ask] = claims_of(ask, self.storage)
        return known

    def follow(self) -> None:
        """Take in what the journal has gained or lost since the last call."""
        for entry, row, sign in self._journal.changes():
            if sign == entry.sign:
                move = self._move_of(entry, row)
                if move is not None:
                    self._moves[id(entry)] = move
                    self._apply(move)
            else:
                move = self._moves.pop(id(entry), None)
                if move is not None:
                    self._undo(move)

    # --- claims that wait ------------------------------------------------------------------------

    def wishes(self, ask: VolumeAsk) -> tuple[Wish, ...]:
        """The volumes that a pod waits for, the smallest first."""
        return self._wishes(self.claims(ask), ask.own)

    def version(self, ask: VolumeAsk) -> tuple[int, ...]:
        """Changes when something does that other nodes than the one of a place feel."""
        claims = self.claims(ask)
        keys = (*(each.key for each in claims.waiting), *claims.one_pod)
        return (self._wide, *(self._versions.get(key, 0) for key in keys))

    def is_settled(self, key: str) -> bool:
        """Whether the place of a pod has settled where the volume of the claim can be reached."""
        return key in self._where

    def in_use(self, key: str, *, ahead: bool) -> bool:
        """Whether a pod with a place uses the claim."""
        each = self._users.get(key, {}).values()
        return any(users.ahead if ahead else users.now for users in each)

    def has_volumes(self, ask: VolumeAsk, rows: Rows) -> Mask:
        """On which nodes of ``rows`` each volume is there, or can be made, that a pod waits for."""
        mask = np.ones(len(rows), dtype=np.bool_)
        harder: list[Wish] = []
        for wish in self.wishes(ask):
            where = self._settled_at(wish)
            if where is None and self._is_plain(wish):
                where = self._makeable(wish)
            if where is None:
                harder.append(wish)
            else:
                mask &= where[rows]
        if harder:
            for at in np.flatnonzero(mask).tolist():
                mask[at] = not isinstance(self._settle(harder, int(rows[at])), Lack)
        return mask

    def lack(self, ask: VolumeAsk, row: int) -> Lack | None:
        """What a pod would lack on the node of a row; None: nothing."""
        wishes = []
        for wish in self.wishes(ask):
            where = self._settled_at(wish)
            if where is None:
                wishes.append(wish)
            elif not where[row]:
                return Lack(wish)
        found = self._settle(wishes, row)
        return found if isinstance(found, Lack) else None

    def gets(self, ask: VolumeAsk, row: int) -> tuple[Settled, ...]:
        """What a pod on the node of a row gets that is not settled yet; empty where it cannot."""
        found = self._settle([w for w in self.wishes(ask) if self._settled_at(w) is None], row)
        return () if isinstance(found, Lack) else found

    def left_of(self, pool: StorageCapacity) -> int:
        """How many bytes are left of a pool, as the ledger stands."""
        left = UNLIMITED if pool.left is None else pool.left
        return left - self._drawn.get(pool.key, 0)

    def _wishes(self, claims: Claims, own: Iterable[ClaimSpec]) -> tuple[Wish, ...]:
        found = [Wish(claim.spec, claim) for claim in claims.waiting]
        found += [Wish(spec) for spec in own if self._is_delayed(spec)]
        return tuple(sorted(found, key=lambda wish: wish.spec.size))

    def _is_delayed(self, spec: ClaimSpec) -> bool:
        found = class_of(spec, self.storage)
        return found is not None and found.waits

    def _settled_at(self, wish: Wish) -> Mask | None:
        """Where the volume can be reached that another pod's place has settled; None: none has."""
        return None if wish.claim is None else self._where.get(wish.claim.key)

    def _is_plain(self, wish: Wish) -> bool:
        """Whether new volumes are all there are, and no driver says how much is left for them."""
        volumes = self._volumes(class_name(wish.spec, self.storage))
        driver = self.storage.drivers.get(provisioner_of(wish.spec, self.storage))
        return not (volumes.near or volumes.wide) and not (driver and driver.tells_capacity)

    def _makeable(self, wish: Wish) -> Mask:
        found = class_of(wish.spec, self.storage)
        if found is None or not provisioner_of(wish.spec, self.storage):
            return ~self.reach.every
        mask = self.reach.topologies(found)
        if wish.claim is None or wish.claim.selected == NO_NODE:
            return mask
        there = ~self.reach.every
        row = self._index.get(wish.claim.selected)
        if row is not None:
            there[row] = mask[row]
        return there

    def _settle(self, wishes: Sequence[Wish], row: int) -> tuple[Settled, ...] | Lack:
        settled: list[Settled] = []
        taken: set[str] = set()
        drawn: dict[str, int] = {}
        for wish in wishes:
            found = self._one(wish, row, taken, drawn)
            if isinstance(found, Lack):
                return found
            if found.volume:
                taken.add(found.volume)
            if found.pool:
                drawn[found.pool] = drawn.get(found.pool, 0) + wish.spec.size
            settled.append(found)
        return tuple(settled)

    def _one(
        self, wish: Wish, row: int, taken: set[str], drawn: Mapping[str, int]
    ) -> Settled | Lack:
        spec, claim = wish
        if claim is not None and not may_be_made_on(claim, self._nodes[row].name):
            return Lack(wish)
        if claim is None or claim.selected == NO_NODE:
            for volume in self._volumes_at(class_name(spec, self.storage), row):
                free = volume.name not in self._taken and volume.name not in taken
                if free and serves(volume, claim, spec):
                    return Settled(wish, volume=volume.name)
        of, driver = class_of(spec, self.storage), provisioner_of(spec, self.storage)
        if of is None or not driver or not self.reach.topologies(of)[row]:
            return Lack(wish)
        tells = self.storage.drivers.get(driver)
        if not spec.size or tells is None or not tells.tells_capacity:
            return Settled(wish)
        return self._from_pool(wish, of.name, row, drawn)

    def _from_pool(self, wish: Wish, of: str, row: int, drawn: Mapping[str, int]) -> Settled | Lack:
        best, most = "", -1
        for pool, mask in self._pools_of(of):
            if not mask[row]:
                continue
            left = self.left_of(pool) - drawn.get(pool.key, 0)
            largest = pool.left if pool.largest is None else pool.largest
            room = min(left, largest or 0)
            if room > most:
                best, most = pool.key, room
        if most < wish.spec.size:
            return Lack(wish, max(most, 0))
        return Settled(wish, pool=best)

    def _volumes_at(self, of: str, row: int) -> Iterator[PersistentVolume]:
        """Volumes of the class that can be reached from there, the smallest first."""
        volumes = self._volumes(of)
        near = volumes.near.get(row, ())
        wide = [volume for volume, mask in volumes.wide if mask[row]]
        return iter(sorted((*near, *wide), key=_size) if near and wide else near or wide)

    def _volumes(self, of: str) -> _Volumes:
        known = self._by_class.get(of)
        if known is not None:
            return known
        near: dict[int, list[PersistentVolume]] = {}
        wide: list[tuple[PersistentVolume, Mask]] = []
        each = (v for v in self.storage.volumes.values() if v.storage_class == of)
        for volume in sorted(each, key=_size):
            if not (volume.available or volume.claim) or volume.deleting:
                continue
            mask = self.reach.affinity(volume)
            rows = np.flatnonzero(mask)
            if len(rows) > _FEW:
                wide.append((volume, mask))
                continue
            for row in rows.tolist():
                near.setdefault(row, []).append(volume)
        known = self._by_class[of] = _Volumes(near, wide)
        return known

    def _pools_of(self, of: str) -> list[tuple[StorageCapacity, Mask]]:
        known = self._pools.get(of)
        if known is None:
            each = (p for _, p in sorted(self.storage.capacities.items()) if p.storage_class == of)
            known = self._pools[of] = [(pool, self.reach.selected(pool.nodes)) for pool in each]
        return known

    # --- following the ledger --------------------------------------------------------------------

    def _take_up(self) -> None:
        """Begin with the pods that have places as the cycle begins."""
        for name, there in sorted(self._on.items()):
            row = self._index.get(name)
            if row is None:
                continue
            for key, users in there.claims.items():
                claim = self.storage.claims[key]
                if not claim.bound and key not in self._where:
                    self._settle_for_good(Wish(claim.spec, claim), row)
                self._users.setdefault(key, {})[row] = users
            for spec, _ in there.to_make:
                if self._is_delayed(spec):
                    self._settle_for_good(Wish(spec), row)

    def _settle_for_good(self, wish: Wish, row: int) -> Settled | None:
        """Take what the wish gets on the node, and tell where the volume can be reached then."""
        found = self._one(wish, row, set(), {})
        settled = None if isinstance(found, Lack) else found
        if settled is not None:
            self._take(settled, row, times=1)
        if wish.claim is not None:
            self._where[wish.claim.key] = self._reach_of(wish, settled, row)
        return settled

    def _reach_of(self, wish: Wish, settled: Settled | None, row: int) -> Mask:
        if settled is not None and settled.volume:
            return self.reach.affinity(self.storage.volumes[settled.volume])
        driver = provisioner_of(wish.spec, self.storage)
        there = self.storage.nodes.get(self._nodes[row].name)
        keys = dict(there.segments).get(driver, ()) if there is not None else ()
        return self.reach.like(row, keys)

    def _take(self, settled: Settled, row: int, *, times: int) -> None:
        """Take a volume, or storage for one, or give it back (``times`` -1)."""
        if settled.volume:
            if times > 0:
                self._taken.add(settled.volume)
            else:
                self._taken.discard(settled.volume)
            self._wide += not self._is_only_there(settled.volume, row)
        if settled.pool:
            drawn = self._drawn.get(settled.pool, 0) + times * settled.wish.spec.size
            self._drawn[settled.pool] = drawn
            self._wide += 1

    def _is_only_there(self, volume: str, row: int) -> bool:
        mask = self.reach.affinity(self.storage.volumes[volume])
        return bool(mask[row]) and int(mask.sum()) == 1

    def _move_of(self, entry: Entry, row: int) -> _Move | None:
        ask = entry.shape.volumes
        if ask is None:
            return None
        claims = self.claims(ask)
        if isinstance(entry, Evicted):
            if entry.releasing:
                return None
            return _Move(claims, Users(0, -1), row, ())
        settled = []
        for wish in self._wishes(claims, ask.own):
            if self._settled_at(wish) is None:
                found = self._settle_for_good(wish, row)
                if found is not None:
                    settled.append(found)
        return _Move(claims, Users(0 if entry.pipelined else 1, 1), row, tuple(settled))

    def _apply(self, move: _Move) -> None:
        for key in _shared(move.claims):
            there = self._users.setdefault(key, {})
            there[move.row] = there.get(move.row, Users()).plus(move.users)
            self._versions[key] = self._versions.get(key, 0) + 1

    def _undo(self, move: _Move) -> None:
        for settled in move.settled:
            self._take(settled, move.row, times=-1)
        for key in _shared(move.claims):
            there = self._users[key]
            there[move.row] = there[move.row].minus(move.users)
            if not any(there[move.row]):
                del there[move.row]
            if not there:
                self._where.pop(key, None)
            self._versions[key] = self._versions.get(key, 0) + 1


def _shared(claims: Claims) -> tuple[str, ...]:
    """The keys of claims of which it matters who else uses them."""
    waiting = (claim.key for claim in claims.waiting)
    return tuple(dict.fromkeys((*waiting, *claims.one_pod)))


def _size(volume: PersistentVolume) -> tuple[int, str]:
    return volume.size, volume.name
