"""What is taken of devices that claims ask for, and where claims have theirs, as a ledger stands.

kube-scheduler allocates the devices when the pods come to it. Until then the book counts what it
may choose: for pods that have places and for those that the cycle places. Evicted and terminating
pods give back what no other pod has, once they are gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.core.entries import Entry, Evicted
from app.core.ledger import Ledger
from app.core.placement.claims import Lacking, Offer, OpenClaim, Taken, Undecided, assign, lacking
from app.core.placement.journal import JournalReader
from app.core.placement.selectors import NodeSelectors
from app.model.amounts import Amounts
from app.model.device_claims import Allotted, ClaimSpec, DeviceClaim, DeviceRequest
from app.model.device_slices import ClaimedDevices, DeviceId, Reach, unqualified
from app.model.ids import PodUid
from app.model.resources import Mask
from app.model.shape import NodeTerm, PodClaims


class Claims(NamedTuple):
    """The claims of a pod: those without devices, and where those with devices can be used.

    ``missing`` says what is not there that has to be; empty: nothing. ``own``: a claim with devices
    is the pod's alone.
    """

    open: tuple[OpenClaim, ...] = ()
    at: tuple[str, ...] = ()
    missing: str = ""
    own: bool = False


@dataclass(slots=True, eq=False)
class _Given:
    """What an entry of the journal took: devices, and claims that have theirs by it."""

    taken: tuple[Taken, ...] = ()
    users: tuple[tuple[str, PodUid], ...] = ()
    placed: dict[str, Mask] = field(default_factory=dict)


class ClaimBooks:
    """The devices and claims of one cycle. ``facts`` are those of the snapshot."""

    def __init__(self, ledger: Ledger, facts: ClaimedDevices) -> None:
        table = ledger.snapshot.table
        self._facts = facts
        self._rows = table.index
        self._count = len(table.nodes)
        self._selectors = NodeSelectors(table.nodes)
        self._local: dict[int, list[int]] = {}
        self._wide: list[tuple[int, Mask]] = []
        self._reaches: dict[Reach, Mask] = {}
        self._index = {device.id: at for at, device in enumerate(facts.devices)}
        self._matching: dict[DeviceRequest, frozenset[int] | None] = {}
        self._uses: dict[int, dict[str, Amounts | None]] = {}
        self._users: dict[str, set[PodUid]] = {key: set(each) for key, each in facts.users.items()}
        self._leaving = set(facts.leaving)
        self._where: dict[str, Mask] = {}
        """Where claims can be used that have devices, or are given some by the book."""
        self._given: dict[int, _Given] = {}
        self.version = 0
        """Grows whenever devices that several nodes reach, or claims that pods share, change."""
        self._journal = JournalReader(ledger.journal)
        self._spread_out()
        for claim in facts.claims.values():
            self._open(claim)
        for pod in facts.reserved:
            row = self._rows.get(pod.node)
            if row is not None:
                self._give(pod.uid, pod.claims, row, ahead=False)

    # --- what a cycle begins with ----------------------------------------------------------------

    def _spread_out(self) -> None:
        for at, device in enumerate(self._facts.devices):
            if device.reach.node:
                row = self._rows.get(device.reach.node)
                if row is not None:
                    self._local.setdefault(row, []).append(at)
            else:
                self._wide.append((at, self._reach(device.reach)))

    def _reach(self, reach: Reach) -> Mask:
        known = self._reaches.get(reach)
        if known is None:
            if reach.everywhere or reach.terms is None:
                known = np.full(self._count, reach.everywhere, dtype=np.bool_)
            else:
                known = self._terms(reach.terms)
            self._reaches[reach] = known
        return known

    def _terms(self, terms: tuple[NodeTerm, ...] | None) -> Mask:
        if terms is None:
            return np.ones(self._count, dtype=np.bool_)
        return self._selectors.any_of(terms)

    def _open(self, claim: DeviceClaim) -> None:
        if claim.allocation is None:
            return
        self._where[claim.key] = self._terms(claim.allocation.node_terms)
        for device in claim.allocation.devices:
            self._take_over(claim, device)

    def _take_over(self, claim: DeviceClaim, device: Allotted) -> None:
        id_ = DeviceId(device.driver, device.pool, device.device)
        at = self._index.get(id_)
        if at is None or device.admin:
            return
        if not device.shared:
            self._use(Taken(claim.key, at, None))
            return
        parts = ((unqualified(name, device.driver), amount) for name, amount in device.consumed)
        self._use(Taken(claim.key, at, tuple(parts)))

    # --- asking ----------------------------------------------------------------------------------

    def claims(self, uid: PodUid, claims: PodClaims) -> Claims:
        """What the claims of a pod come to now; ``uid`` empty: of one that does not exist yet."""
        facts = self._facts
        open_: list[OpenClaim] = []
        at: list[str] = []
        own = False
        for each in claims.each:
            key = f"{claims.namespace}/{each.claim or each.template}"
            kind = "ResourceClaim" if each.claim else "ResourceClaimTemplate"
            if each.template:
                made = facts.made.get((uid, each.entry)) if uid else None
                template = facts.templates.get(key)
                claim = facts.claims.get(made) if made is not None else None
                spec = claim.spec if claim is not None else template.spec if template else None
                name = made if made is not None else f"{uid}/{each.entry}"
            else:
                claim = facts.claims.get(key)
                spec, name = claim.spec if claim is not None else None, key
            if spec is None:
                return Claims(missing=f"{kind} {key} does not exist")
            if claim is not None and claim.deleting and claim.allocation is None:
                return Claims(missing=f"{kind} {key} is being deleted")
            if name in self._where:
                at.append(name)
                own |= bool(each.template)
                continue
            absent = self._absent_class(spec)
            if absent:
                return Claims(missing=f"DeviceClass {absent} does not exist")
            open_.append(OpenClaim(name, spec))
        return Claims(tuple(open_), tuple(at), own=own)

    def offer(self, row: int, *, ahead: bool) -> Offer:
        """The devices that the node of a row reaches; not to be kept, as it moves."""
        wide = [at for at, mask in self._wide if mask[row]]
        devices = [*self._local.get(row, ()), *wide]
        pools = {self._facts.devices[at].id[:2] for at in devices}
        return Offer(
            devices=self._facts.devices,
            at=devices,
            matching=self.matching,
            used=lambda at: self._used(at, ahead=ahead),
            whole=self._facts.incomplete.isdisjoint(pools),
        )

    def fits(self, claims: Claims, row: int, *, ahead: bool) -> bool:
        """Whether the claims can have devices that the node of a row reaches, or may."""
        if claims.missing or not all(self._where[key][row] for key in claims.at):
            return False
        offer = self.offer(row, ahead=ahead)
        try:
            return assign(offer, claims.open) is not None
        except Undecided:
            return True

    def lacking(self, claims: Claims, row: int, *, ahead: bool) -> Lacking | None:
        """What most lacks on the node of a row."""
        return lacking(self.offer(row, ahead=ahead), claims.open)

    def is_elsewhere(self, claims: Claims, row: int) -> str:
        """A claim with devices that the node of a row does not reach; empty: there is none."""
        return next((key for key in claims.at if not self._where[key][row]), "")

    @property
    def any_wide(self) -> bool:
        """Whether some devices are reached by several nodes."""
        return bool(self._wide)

    def is_of_one_node(self, claims: Sequence[OpenClaim]) -> bool:
        """Whether all devices that some request asks for are of single nodes."""
        wide = {at for at, _ in self._wide}
        options = (
            o for claim in claims for request in claim.spec.requests for o in request.options
        )
        found = [self.matching(option) or frozenset() for option in options]
        return bool(found) and wide.isdisjoint(frozenset().union(*found))

    def matching(self, option: DeviceRequest) -> frozenset[int] | None:
        """The devices that satisfy a request; None: its class does not exist."""
        if option in self._matching:
            return self._matching[option]
        of_class = self._facts.classes.get(option.device_class)
        found: frozenset[int] | None = None
        if of_class is not None:
            found = frozenset(range(len(self._facts.devices)))
            for expression in (*of_class, *option.selectors):
                found &= self._facts.satisfying.get(expression, found)
        self._matching[option] = found
        return found

    def _absent_class(self, spec: ClaimSpec) -> str:
        options = (option for request in spec.requests for option in request.options)
        return next((o.device_class for o in options if self.matching(o) is None), "")

    def _used(self, at: int, *, ahead: bool) -> Mapping[str, int] | None:
        used: dict[str, int] = {}
        for key, parts in self._uses.get(at, {}).items():
            if ahead and self._is_going(key):
                continue
            if parts is None:
                return None
            for name, amount in parts:
                used[name] = used.get(name, 0) + amount
        return used

    def _is_going(self, key: str) -> bool:
        users = self._users.get(key)
        return bool(users) and self._leaving.issuperset(users or ())

    # --- following the ledger --------------------------------------------------------------------

    def follow(self) -> None:
        """Take up what the ledger's journal has got and lost since."""
        for entry, row, sign in self._journal.changes():
            undone = sign != entry.sign
            if isinstance(entry, Evicted):
                self._evict(entry, undone=undone)
            elif undone:
                self._take_back(entry)
            elif entry.task.shape.claims is not None:
                uid = entry.task.uid
                given = self._give(uid, entry.task.shape.claims, row, ahead=entry.pipelined)
                self._given[id(entry)] = given

    def _evict(self, entry: Evicted, *, undone: bool) -> None:
        if entry.pod.shape.claims is not None:
            self.version += 1
            (self._leaving.discard if undone else self._leaving.add)(entry.pod.uid)

    def _give(self, uid: PodUid, claims: PodClaims, row: int, *, ahead: bool) -> _Given:
        """Let a pod on the node of a row have devices, as far as that is known."""
        asked = self.claims(uid or PodUid(f"slot-{self.version}"), claims)
        given, shared = _Given(), claims.shared
        try:
            taken = assign(self.offer(row, ahead=ahead), asked.open)
        except Undecided:
            taken = ()
        given.taken = tuple(each for each in taken or () if each.parts != ())
        for each in given.taken:
            self._use(each)
        for key in [key for key, _ in asked.open if key in shared]:
            on = np.zeros(self._count, dtype=np.bool_)
            on[row] = True
            mine = [self._facts.devices[each.at].reach for each in given.taken if each.claim == key]
            if mine and not any(reach.node for reach in mine):
                on = np.logical_and.reduce([self._reach(reach) for reach in mine])
            self._where[key] = given.placed[key] = on
        given.users = tuple((key, uid) for key in (*asked.at, *(key for key, _ in asked.open)))
        for key, _ in given.users:
            self._users.setdefault(key, set()).add(uid)
        self.version += 1
        return given

    def _take_back(self, entry: Entry) -> None:
        given = self._given.pop(id(entry), None)
        if given is None:
            return
        self.version += 1
        for each in given.taken:
            self._uses[each.at].pop(each.claim, None)
        for key in given.placed:
            del self._where[key]
        for key, uid in given.users:
            self._users[key].discard(uid)

    def _use(self, taken: Taken) -> None:
        uses = self._uses.setdefault(taken.at, {})
        before = uses.get(taken.claim, ())
        if taken.parts is None or before is None:
            uses[taken.claim] = None
        else:
            sums = dict(before)
            for name, amount in taken.parts:
                sums[name] = sums.get(name, 0) + amount
            uses[taken.claim] = tuple(sums.items())
