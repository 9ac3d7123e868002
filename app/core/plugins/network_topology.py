"""network-topology-aware: members go near to those with places, and into domains that are full.

Of domains of a tier that would take a gang, the one is tried first of which most would be used with
the gang in it (``hypernode.binpack.cpu``, ``.memory``, ``.resources`` and ``.resources.<name>`` are
weights of resources); of equal ones the one that has more of its members.

A node gets up to 100 times ``weight`` for a member of a gang that asks for a domain. Let the domain
of the members with places be the lowest one that has all of them: a node whose lowest domain it is
gets all of that, and another one the less the higher the lowest domain is that has the node too.
The tiers count from the lowest one, which gives all, to the whole cluster, which gives nothing. To
nodes of equal worth the share of the members is added that the lowest domain of the node has.

For other pods a node gets the more the fuller its domains are (``hypernode.binpack.normal-pod.``
``enable`` and ``.fading``): those of each tier count ``fading`` times as much as those of the tier
below. A node without a domain in a tier gets all of what the tier may give.

Where a cluster has no HyperNodes, ``hypernode.tiers`` names labels of nodes, the widest first:
nodes that have the values of a label and of those before it in common are a domain.

Victims for a gang that needs one domain are looked for in so many domains of each tier at most as
``hypernode.gradient.evict.max-hypernodes`` says.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.placement.occupancy import members_of
from app.core.policy import Hooks, NodeScore, NodesNow, OpenPlugin, Session
from app.model.amounts import CPU, MEMORY
from app.model.conf import PluginConf
from app.model.domains import Domains, whole_cluster
from app.model.gang import Gang, Task
from app.model.ids import GroupKey
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.resources import Mask, Matrix, Rows, Scores, Vector
from app.model.snapshot import Snapshot

_FULL = 100.0
_EVICTING = 8
"""Domains of a tier in which victims are looked for, where the argument says nothing of use."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The plugin's arguments; ``fading`` None: other pods than those of such gangs do not count."""

    weight: int
    resources: Mapping[str, int]
    fading: float | None
    most_evicting: int = _EVICTING
    """In so many domains of each tier victims are looked for at most."""


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``weight``, ``hypernode.binpack.*``, ``hypernode.tiers`` and the cap on evictions."""
    setting = _setting(Arguments(conf))
    tiers_of(conf)

    known: list[Where] = []

    def where(snapshot: Snapshot) -> Where:
        domains = snapshot.domains or whole_cluster(len(snapshot.table.nodes))
        if not known or known[0].domains is not domains:
            known[:] = [Where(domains)]
        return known[0]

    def open_(session: Session) -> Hooks:
        if not setting.weight:
            return Hooks(most_domains=setting.most_evicting)
        network = Network(session.ledger, setting, where(session.ledger.snapshot))
        return Hooks(
            node_score=NodeScore(network.key, network.score),
            domain_score=network.of_domains,
            most_domains=setting.most_evicting,
        )

    return open_


def tiers_of(conf: PluginConf) -> tuple[str, ...]:
    """The labels of nodes that ``hypernode.tiers`` names, the widest first; raises `ConfError`."""
    names = [name.strip() for name in Arguments(conf).text("hypernode.tiers").split(",")]
    tiers = tuple(name for name in names if name)
    if len(set(tiers)) < len(tiers):
        raise ConfError(f"plugin {conf.name}: argument hypernode.tiers: names a label twice")
    return tiers


def _setting(arguments: Arguments) -> Setting:
    def weight(key: str) -> int:
        given = arguments.integer(key, 1)
        return 1 if given < 0 else given

    resources = {
        CPU: weight("hypernode.binpack.cpu"),
        MEMORY: weight("hypernode.binpack.memory"),
    }
    for name in arguments.text("hypernode.binpack.resources").split(","):
        resource = name.strip()
        if resource and resource not in resources:
            resources[resource] = weight(f"hypernode.binpack.resources.{resource}")
    fading = arguments.number("hypernode.binpack.normal-pod.fading", 0.8)
    enabled = arguments.flag("hypernode.binpack.normal-pod.enable", default=True)
    most = arguments.integer("hypernode.gradient.evict.max-hypernodes", _EVICTING)
    return Setting(
        weight=arguments.integer("weight", 1),
        resources=resources,
        fading=(0.8 if fading < 0 else fading) if enabled else None,
        most_evicting=most if most > 0 else _EVICTING,
    )


class Network:
    """The plugin on one ledger."""

    def __init__(self, ledger: Ledger, setting: Setting, where: "Where") -> None:
        self._ledger, self._setting, self._where = ledger, setting, where
        self._domains = where.domains
        self._members = _Members(ledger, where)
        self._last: tuple[Hashable, Scores] | None = None
        self._common: dict[bytes, tuple[Scores, Rows]] = {}

    @cached_property
    def _use(self) -> "_Use":
        return _Use(self._ledger, self._where)

    def key(self, gang: Gang, task: Task) -> Hashable | None:
        """What a score depends on: where members are, or how full the domains are."""
        if len(self._domains) == 1:
            return None
        near = _asked_of(gang, task)
        if near is not None:
            there, _ = self._members.around(gang, near)
            return (gang.key, near, *there.state()) if there.nodes else None
        columns = self._counted(task.request)
        if self._setting.fading is None or not columns:
            return None
        at = [column for column, _ in columns]
        return task.request[at].tobytes(), self._use.free()[:, at].tobytes()

    def score(self, gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        """Up to 100 times the weight, and for equal nodes up to as much again."""
        key = self.key(gang, task)
        if self._last is None or self._last[0] != key:
            near = _asked_of(gang, task)
            if near is None:
                found = self._packed(task)
            else:
                there, size = self._members.around(gang, near)
                found = self._near(there, of=size)
            self._last = key, found * (_FULL * self._setting.weight)
        return self._last[1][nodes.rows]

    def of_domains(self, gang: Gang, asked: Vector) -> Scores:
        """How much a gang that still asks for so much likes each domain, shape ``(D,)``."""
        tiers = self._domains.tiers
        worth = self._fullness(asked)
        there, members = self._members.around(gang, NO_SUB_GROUP)
        if there.nodes:
            share = there.members_in / max(members, 1)
            for tier in np.unique(tiers):
                same = tiers == tier
                best = same & (worth == worth[same].max())
                worth[best] += share[best]
        return worth * (_FULL * self._setting.weight)

    def _near(self, there: "_There", *, of: int) -> Scores:
        """Of each node, shape ``(N,)``, 1 at most but for what tells equal ones apart."""
        has_all = there.nodes_in == len(there.nodes)
        known = self._common.get(has_all.tobytes())
        if known is None:
            known = self._common[has_all.tobytes()] = self._worth_around(has_all)
        worth, best = known[0].copy(), known[1]
        worth[best] += there.members_in[self._where.of_row[best]] / max(of, 1)
        return worth

    def _worth_around(self, has_all: Mask) -> tuple[Scores, Rows]:
        """What nodes are worth, and the best of them that are in a HyperNode.

        ``has_all`` says of each domain whether it has all members.
        """
        tiers, where, cluster = self._domains.tiers, self._where, len(self._domains) - 1
        common = tiers[where.lowest(has_all)]
        worth: Scores = (tiers[-1] - common) / (tiers[-1] - tiers[0])
        around = int(has_all.argmax())
        if around < cluster:
            worth[where.of_row == around] = 1.0
        return worth, np.flatnonzero((worth == worth.max()) & (where.of_row < cluster))

    def _packed(self, task: Task) -> Scores:
        fading = self._setting.fading or 0.0
        fullness = self._fullness(task.request)
        total, weights = np.zeros(len(self._where.of_row)), 0.0
        for tier, of_row in self._where.by_tier.items():
            weight = fading ** max(tier - 1, 0)
            weights += weight
            total += weight * np.append(fullness, 1.0)[of_row]
        return total / weights if weights else total

    def _fullness(self, asked: Vector) -> Scores:
        """The share of each domain in use with ``asked`` in it; 0 where it has not so much."""
        size, free = self._use.size, self._use.free()
        worth, weights = np.zeros(len(self._domains)), 0
        fits = np.ones(len(self._domains), dtype=np.bool_)
        for column, weight in self._counted(asked):
            used = size[:, column] - free[:, column] + asked[column]
            fits &= used <= size[:, column]
            worth += weight * used / np.maximum(size[:, column], 1)
            weights += weight
        return np.where(fits, worth / max(weights, 1), 0.0)

    def _counted(self, asked: Vector) -> list[tuple[int, int]]:
        """The columns that count for what is asked, with their weights."""
        index = self._ledger.snapshot.axis.index
        return [
            (index[name], weight)
            for name, weight in self._setting.resources.items()
            if weight and name in index and asked[index[name]] > 0
        ]


class Where:
    """Which of some domains the row of a node is in."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self._at = np.repeat(np.arange(len(domains), dtype=np.intp), np.diff(domains.starts))
        self._nodes = int(domains.starts[-1] - domains.starts[-2])
        self.of_row: NDArray[np.intp] = self.lowest(np.ones(len(domains), dtype=np.bool_))
        """The lowest domain of each node, shape ``(N,)``."""
        self.by_tier: dict[int, NDArray[np.intp]] = {
            tier: self._first(domains.tiers == tier, none=len(domains))
            for tier in np.unique(domains.tiers[:-1]).tolist()
        }
        """The domain of each node in a tier; ``len(domains)``: it is in none."""
        self._by_row = self._at[np.argsort(domains.rows, kind="stable")]
        sizes = np.bincount(domains.rows, minlength=self._nodes)
        self._starts = np.concatenate(([0], np.cumsum(sizes)))

    def lowest(self, among: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The lowest domain of each node, shape ``(N,)``, among some: at most the cluster."""
        return self._first(among, none=len(self.domains) - 1)

    def domains_of(self, row: int) -> Rows:
        """The positions of all domains that have the node of ``row``."""
        return self._by_row[self._starts[row] : self._starts[row + 1]]

    def _first(self, among: NDArray[np.bool_], *, none: int) -> NDArray[np.intp]:
        kept = among[self._at]
        found = np.full(self._nodes, none, dtype=np.intp)
        np.minimum.at(found, self.domains.rows[kept], self._at[kept])
        return found


class _Use:
    """What is free in each domain as the ledger stands."""

    def __init__(self, ledger: Ledger, where: Where) -> None:
        self._ledger, self._where = ledger, where
        self._idle = ledger.idle.copy()
        self._seen = len(ledger.touched)
        self.size = self._sums(ledger.snapshot.table.allocatable)
        """What each domain has, shape ``(D, R)``."""
        self._free = self._sums(self._idle)

    def free(self) -> Matrix:
        """What is free in each domain, shape ``(D, R)``; it moves."""
        touched = self._ledger.touched
        for row in touched[self._seen :]:
            now = self._ledger.idle[row]
            self._free[self._where.domains_of(row)] += now - self._idle[row]
            self._idle[row] = now
        self._seen = len(touched)
        return self._free

    def _sums(self, per_node: Matrix) -> Matrix:
        columns = [self._where.domains.sums(column) for column in per_node.T]
        return np.stack(columns, axis=1)


class _There:
    """Members with places: on which nodes, and how many of both each domain has, shape (D,)."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self.nodes: Counter[int] = Counter()
        self.members_in = np.zeros(len(where.domains), dtype=np.int64)
        self.nodes_in = np.zeros(len(where.domains), dtype=np.int64)

    def note(self, row: int, sign: int) -> None:
        """One more is on the node of ``row`` (``sign`` 1), or one less (-1)."""
        domains = self._where.domains_of(row)
        before = self.nodes[row]
        self.nodes[row] += sign
        if not self.nodes[row]:
            del self.nodes[row]
        self.members_in[domains] += sign
        self.nodes_in[domains] += (before + sign > 0) - (before > 0)

    def state(self) -> tuple[bytes, bytes]:
        """What all scores follow from."""
        return self.members_in.tobytes(), self.nodes_in.tobytes()


class _Members:
    """Where members of groups have places, as the ledger stands."""

    def __init__(self, ledger: Ledger, where: Where) -> None:
        self._ledger, self._where = ledger, where
        self._journal = JournalReader(ledger.journal)
        self._known: dict[GroupKey, dict[SubGroup, _There]] = {}

    def around(self, gang: Gang, near: SubGroup) -> tuple[_There, int]:
        """Where members are, and how many there are at all: of the sub-group, or of the gang.

        While the sub-group has none, those of a gang count that asks for a domain itself.
        """
        for entry, row, sign in self._journal.changes():
            if entry.gang is not None and entry.gang.key in self._known and entry.counts:
                self._note(entry.gang.key, row, entry.sub_group, sign)
        if gang.key not in self._known:
            self._count(gang)
        known = self._known[gang.key]
        mine = known.get(near)
        if near != NO_SUB_GROUP and ((mine and mine.nodes) or gang.topology is None):
            return mine or _There(self._where), gang.sub_group_valid.get(near, 0)
        return known[NO_SUB_GROUP], gang.counts.tasks + gang.counts.slots

    def _count(self, gang: Gang) -> None:
        """Count the members of ``gang`` as the journal stands, which is read to its end."""
        self._known[gang.key] = {NO_SUB_GROUP: _There(self._where)}
        for sub_group, row, sign in members_of(self._ledger, (gang.key,)):
            self._note(gang.key, row, sub_group, sign)

    def _note(self, key: GroupKey, row: int, sub_group: SubGroup, sign: int) -> None:
        known = self._known[key]
        known[NO_SUB_GROUP].note(row, sign)
        if sub_group != NO_SUB_GROUP:
            known.setdefault(sub_group, _There(self._where)).note(row, sign)


def _asked_of(gang: Gang, task: Task) -> SubGroup | None:
    """The sub-group of ``task`` that asks for a domain, else that of all; None: nothing asks."""
    sub_group = gang.sub_group_of.get(task.uid)
    if sub_group is not None:
        for policy in gang.sub_groups:
            if policy.name == sub_group.policy and policy.topology is not None:
                return sub_group
    return None if gang.topology is None else NO_SUB_GROUP
