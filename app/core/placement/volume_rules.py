"""Which nodes a pod may go to for the sake of its volumes.

The texts are those of the stock filters, whose rules these are: VolumeRestrictions, VolumeBinding,
VolumeZone and NodeVolumeLimits. What they know and Pumice does not (volumes of other kinds than
CSI, volumes that a detached pod has left attached) comes back as a veto.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np

from app.core.ledger import Ledger
from app.core.placement.arrays import all_of
from app.core.placement.attachments import Attachments
from app.core.placement.volume_books import VolumeBooks
from app.core.placement.volume_reach import Reach
from app.core.placement.volumes import Claims, class_name, place_text, size_text
from app.core.policy import NodeRule, NodesNow
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.ids import NO_NODE
from app.model.reason import Cause
from app.model.resources import Mask
from app.model.shape import VolumeAsk
from app.model.snapshot import NodeTable

NOT_USABLE = "node(s) cannot have the pod's claims"
OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity"
OTHER_ZONE = "node(s) had no available volume zone"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
TOO_MANY = "node(s) exceed max volume count"


class VolumeRules:
    """The rules on the nodes of one cycle."""

    def __init__(
        self, ledger: Ledger, reach: Reach, *, binding: bool, zone: bool, limits: bool
    ) -> None:
        """``binding``, ``zone`` and ``limits``: which rules are on."""
        self._ledger = ledger
        self._reach = reach
        self._storage = ledger.snapshot.volumes.storage
        self.rules = self._switched_on(binding=binding, zone=zone, limits=limits)
        """The rules that are on, in the order in which a refusal counts nodes."""

    def _switched_on(self, *, binding: bool, zone: bool, limits: bool) -> Sequence[NodeRule]:
        found: list[NodeRule] = []
        if not self._storage.known:
            return found
        if binding:
            found += [
                NodeRule(NOT_USABLE, self._use_key, self._usable, Cause.VOLUMES, self._trouble),
                NodeRule(
                    OTHER_NODE, self._affinity_key, self._near, Cause.VOLUMES, self._affinity_text
                ),
            ]
        if zone:
            found.append(
                NodeRule(OTHER_ZONE, self._zone_key, self._in_zone, Cause.VOLUMES, self._zone_text)
            )
        if binding:
            found.append(
                NodeRule(NO_VOLUME, self._wish_key, self._found, Cause.VOLUMES, self._wish_text)
            )
        if limits:
            found.append(
                NodeRule(TOO_MANY, self._limit_key, self._attachable, Cause.VOLUMES, self._numbers)
            )
        return found

    def place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """Where a rule has a say free room on any node does not do, the place of an equal does."""
        if task.shape.volumes is None or all(rule.key(gang, task) is None for rule in self.rules):
            return ANY_EQUAL
        return ANY_EQUAL.within("volumes")

    @cached_property
    def _books(self) -> VolumeBooks:
        return VolumeBooks(self._ledger, self._reach)

    @cached_property
    def _attachments(self) -> Attachments:
        return Attachments(self._ledger, self._books.claims)

    def books(self) -> VolumeBooks:
        """What is taken of volumes as the ledger stands now."""
        self._books.follow()
        return self._books

    def _claims(self, ask: VolumeAsk | None) -> Claims:
        return Claims() if ask is None else self._books.claims(ask)

    # --- claims that no node will do for ---------------------------------------------------------

    def _use_key(self, _gang: Gang, task: Task) -> Hashable | None:
        ask = task.shape.volumes
        if ask is None:
            return None
        claims = self._claims(ask)
        if claims.trouble:
            return ask
        return (ask, self.books().version(ask)) if claims.one_pod else None

    def _usable(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        fine = not self._why_not(task, ahead=nodes.ahead)
        return np.full(len(nodes.rows), fine, dtype=np.bool_)

    def _trouble(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        return self._why_not(task, ahead=nodes.ahead)

    def _why_not(self, task: Task, *, ahead: bool) -> str:
        claims = self._claims(task.shape.volumes)
        if claims.trouble or not claims.one_pod:
            return claims.trouble
        books = self.books()
        used = next((key for key in claims.one_pod if books.in_use(key, ahead=ahead)), None)
        if used is None:
            return ""
        return f"claim {used} is for one pod at a time (ReadWriteOncePod), and another one uses it"

    # --- volumes that are there ------------------------------------------------------------------

    def _affinity_key(self, _gang: Gang, task: Task) -> Hashable | None:
        if task.shape.volumes is None:
            return None
        bound = self._claims(task.shape.volumes).bound
        return tuple(volume.name for volume in bound if volume.terms is not None) or None

    def _near(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        bound = self._claims(task.shape.volumes).bound
        return all_of([self._reach.affinity(volume) for volume in bound])[nodes.rows]

    def _affinity_text(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        bound = self._claims(task.shape.volumes).bound
        return "; ".join(
            place_text(volume)
            for volume in bound
            if not self._reach.affinity(volume)[nodes.rows].all()
        )

    def _zone_key(self, _gang: Gang, task: Task) -> Hashable | None:
        if task.shape.volumes is None:
            return None
        bound = self._claims(task.shape.volumes).bound
        return tuple(volume.name for volume in bound if volume.zones) or None

    def _in_zone(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        bound = (v for v in self._claims(task.shape.volumes).bound if v.zones)
        return all_of([self._reach.zones(volume) for volume in bound])[nodes.rows]

    def _zone_text(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        bound = (v for v in self._claims(task.shape.volumes).bound if v.zones)
        return "; ".join(
            place_text(volume)
            for volume in bound
            if not self._reach.zones(volume)[nodes.rows].all()
        )

    # --- volumes that claims wait for ------------------------------------------------------------

    def wish_key(self, task: Task) -> Hashable | None:
        """What tells apart where a task gets the volumes that it waits for; None: it has none."""
        ask = task.shape.volumes
        if ask is None or self._claims(ask).trouble or not self._books.wishes(ask):
            return None
        return ask, task.request.tobytes(), self.books().version(ask)

    def _wish_key(self, _gang: Gang, task: Task) -> Hashable | None:
        return self.wish_key(task)

    def _found(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        """Where volumes are to be had, and where other resources are short in any case."""
        ask = task.shape.volumes
        if ask is None:
            return np.ones(len(nodes.rows), dtype=np.bool_)
        return self.books().has_volumes(ask, nodes.rows) | _short(task, nodes)

    def _wish_text(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        ask, books = task.shape.volumes, self.books()
        if ask is None:
            return ""
        lacks = [lack for row in nodes.rows.tolist() if (lack := books.lack(ask, row))]
        if not lacks:
            return ""
        short = max(lacks, key=lambda lack: -1 if lack.most is None else lack.most)
        spec, claim = short.wish
        of = f"class {class_name(spec, self._storage)}"
        asked = f"{size_text(spec.size)} asked" + (f" by claim {claim.key}" if claim else "")
        if short.most is not None:
            return f"{asked} of {of}; at most {size_text(short.most)} left on a node"
        if claim is not None and claim.selected != NO_NODE:
            return f"the volume of claim {claim.key} is being made for node {claim.selected}"
        if claim is not None and books.is_settled(claim.key):
            return f"claim {claim.key} gets its volume where another pod uses it"
        return f"{asked} of {of}; no node has such a volume free"

    # --- volumes to attach -----------------------------------------------------------------------

    def _limit_key(self, _gang: Gang, task: Task) -> Hashable | None:
        ask = task.shape.volumes
        if ask is None or not self._attachments.limited(self._claims(ask)):
            return None
        return ask, task.request.tobytes()

    def _attachable(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        """Where the node can attach the volumes, and where other resources are short anyway."""
        claims, attached = self._claims(task.shape.volumes), self._attachments
        attached.follow()
        mask = np.ones(len(nodes.rows), dtype=np.bool_)
        for driver in attached.limited(claims):
            free, _ = attached.free(driver, nodes.rows, ahead=nodes.ahead)
            asked = attached.asked(claims, driver, nodes.rows, ahead=nodes.ahead)
            mask &= (asked <= free) | (asked == 0)
        return mask | _short(task, nodes)

    def _numbers(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        """``node n1: 3 of 16 volumes of csi.example.com free; 4 asked``, of the best node."""
        claims, attached = self._claims(task.shape.volumes), self._attachments
        attached.follow()
        for driver in attached.limited(claims):
            free, limits = attached.free(driver, nodes.rows, ahead=nodes.ahead)
            asked = attached.asked(claims, driver, nodes.rows, ahead=nodes.ahead)
            short = np.flatnonzero((asked > free) & (asked > 0))
            if len(short):
                at = int(short[(free - asked)[short].argmax()])
                node = self._ledger.snapshot.table.nodes[int(nodes.rows[at])].name
                more = ", no other has more" if len(short) > 1 else ""
                return (
                    f"node {node}: {max(int(free[at]), 0)} of {limits[at]} volumes of {driver} "
                    f"free{more}; {asked[at]} asked"
                )
        return ""


class ReachByTable:
    """Keeps :class:`Reach` between cycles, as long as the node table stays."""

    def __init__(self) -> None:
        self._table: NodeTable | None = None
        self._reach: Reach | None = None

    def of(self, table: NodeTable) -> Reach:
        """The reach of volumes on ``table``: the kept one where its nodes are the same."""
        kept = self._table
        if self._reach is None or kept is None or kept.nodes is not table.nodes:
            self._table, self._reach = table, Reach(table)
        return self._reach


def _short(task: Task, nodes: NodesNow) -> Mask:
    asked = task.request[:, None]
    lacking: Mask = (nodes.free < asked) & (asked > 0)
    mask: Mask = np.logical_or.reduce(lacking, axis=0)
    return mask
