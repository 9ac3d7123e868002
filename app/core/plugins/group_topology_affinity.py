"""group-topology-affinity: members go beside other groups or apart from them, by domain.

PodGroups and vcjobs say it (``topologyAffinity``): near to other groups, or apart from them;
sub-groups of one group together, or apart; members spread over so many domains. Required terms are
rules about nodes and hold whether the plugin is configured or not. Each preferred term that a node
breaks takes its weight, in hundredths, from 100 times the plugin's ``weight`` (1); nothing is left
of it below zero. A term that is about a tier which no domain has is broken on every node if it is
required, and says nothing if it is preferred.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from app.core.arguments import Arguments
from app.core.ledger import Ledger
from app.core.placement.occupancy import Occupancy, Selected
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.core.topology.relations import Level
from app.model.conf import PluginConf
from app.model.domains import whole_cluster
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.ids import GroupKey
from app.model.parts import SubGroup
from app.model.reason import Cause
from app.model.resources import Mask, Scores
from app.model.topology import GroupTerm, PartTerm, SpreadTerm, Tier

NAME = "group-topology-affinity"
_FULL = 100.0
_NAMED = 3
"""How many domains or groups are named in a reason."""


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``weight``, of preferred terms."""
    weight = Arguments(conf).integer("weight", 1)

    def open_(session: Session) -> Hooks:
        if not session.ledger.snapshot.affine:
            return Hooks()
        affinities = Affinities(session.ledger)
        return Hooks(
            node_rules=affinities.rules(),
            node_score=NodeScore(affinities.score_key, partial(affinities.score, weight=weight)),
            node_area=affinities.area,
            place_class=affinities.place_class,
        )

    return open_


class _Asked(NamedTuple):
    """What one term asks of the nodes of a member.

    ``mask`` has the shape ``(N,)``; ``numbers`` tells of it in words.
    """

    kind: str
    weight: int
    mask: Callable[[], Mask | None]
    numbers: Callable[[], str]


class Affinities:
    """The plugin on one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._snapshot = ledger, ledger.snapshot
        self._domains = self._snapshot.domains or whole_cluster(len(self._snapshot.table.nodes))
        self._where = Occupancy(ledger)
        self._levels: dict[Tier, Level | None] = {}
        self._masks: dict[tuple[GroupKey, SubGroup | None, str], tuple[int, Mask]] = {}
        self._scores: dict[tuple[GroupKey, SubGroup | None], tuple[int, Scores]] = {}
        self._looked_at: frozenset[GroupKey] | None = None

    # --- what the planner asks -------------------------------------------------------------------

    def rules(self) -> Sequence[NodeRule]:
        """Which nodes a member may go to, in the order in which a refusal counts them."""
        return [
            NodeRule(
                f"node(s) didn't match the group's {kind}",
                partial(self._key, kind),
                partial(self._allows, kind),
                Cause.TOPOLOGY_AFFINITY,
                partial(self._details, kind),
            )
            for kind in _KINDS
        ]

    def area(self, gang: Gang, sub_group: SubGroup | None) -> Mask | None:
        """The nodes that terms leave to all waiting members of the gang, or of the sub-group.

        Shape ``(N,)``; None: all. What members of the gang, or of the sub-group, bar by going
        somewhere is left out of account.
        """
        kinds = _OF_GROUPS if sub_group is None else (*_OF_GROUPS, *_OF_PARTS)
        masks = [self._mask(kind, gang, sub_group) for kind in kinds]
        known = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(known) if known else None

    def score_key(self, gang: Gang, task: Task) -> Hashable | None:
        """What a score depends on: where members are that preferred terms look at."""
        if not any(each.weight for each in self._asked(gang, _part(gang, task))):
            return None
        return self._score(gang, _part(gang, task)).tobytes()

    def score(self, gang: Gang, task: Task, nodes: NodesNow, *, weight: int) -> Scores:
        """Up to 100 times the weight."""
        return self._score(gang, _part(gang, task))[nodes.rows] * (_FULL * weight)

    def place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """Places that rules are about are exchanged among members of one group and sub-group."""
        part = _part(gang, task)
        if self._rules_over(gang, part) or gang.key in self._looked_at_by_rules():
            return ANY_EQUAL.within(f"affinity of {gang.key} {part.values if part else ''}")
        return ANY_EQUAL

    # --- terms -----------------------------------------------------------------------------------

    def _asked(self, gang: Gang, part: SubGroup | None) -> Iterator[_Asked]:
        """What terms ask of a member of that sub-group."""
        affinity = gang.affinity
        if affinity is None:
            return
        for kind, groups in ((_NEAR, affinity.groups_near), (_APART, affinity.groups_apart)):
            for of_groups in groups:
                yield self._of_groups(kind, gang, of_groups)
        for kind, parts in ((_TOGETHER, affinity.parts_near), (_PARTED, affinity.parts_apart)):
            for of_parts in parts:
                if part is not None and part.policy in of_parts.policies:
                    yield self._of_parts(kind, gang, part, of_parts)
        for spread in affinity.spread:
            yield self._of_spread(gang, spread)

    def _of_groups(self, kind: str, gang: Gang, term: GroupTerm) -> _Asked:
        selected = Selected(term.groups, gang.namespace, term.namespaces)

        def others() -> Mask:
            return self._where.of_groups(selected, but=gang.key)

        def mask() -> Mask | None:
            level = self._level(term.tier)
            if level is None or kind == _APART:
                return None if level is None else level.apart_from(others())
            there = others()
            if not there.any() and gang.key in self._where.keys(selected):
                return level.every  # the first of groups that look for each other
            return level.near_to(there)

        def numbers() -> str:
            level = self._level(term.tier)
            if level is None:
                return self._unknown(term.tier)
            names = self._named(level, others())
            groups = sorted(
                key
                for key in self._where.keys(selected)
                if key != gang.key and self._where.of_gang(key).any()
            )
            held = f"{_listed(groups)} {'has' if len(groups) == 1 else 'have'} {names}"
            return f"{kind}: {held}" if groups else f"{kind}: no group that it names has a place"

        return _Asked(kind, term.weight, mask, numbers)

    def _of_parts(self, kind: str, gang: Gang, part: SubGroup, term: PartTerm) -> _Asked:
        def others() -> Mask:
            policies = term.policies
            if kind == _PARTED and len(policies) > 1:
                policies = tuple(name for name in policies if name != part.policy)
            but = part if kind == _PARTED else None
            held = [self._where.of_policy(gang.key, name, but=but) for name in policies]
            found: Mask = np.logical_or.reduce(held)
            return found

        def mask() -> Mask | None:
            level = self._level(term.tier)
            if level is None:
                return None
            rule = level.together_with if kind == _TOGETHER else level.apart_from
            return rule(others())

        def numbers() -> str:
            level = self._level(term.tier)
            if level is None:
                return self._unknown(term.tier)
            return f"{kind}: [{' '.join(term.policies)}] have {self._named(level, others())}"

        return _Asked(kind, term.weight, mask, numbers)

    def _of_spread(self, gang: Gang, term: SpreadTerm) -> _Asked:
        def mask() -> Mask | None:
            level = self._level(term.tier)
            if level is None:
                return None
            ready = self._ledger.gang(gang).ready
            return level.spread(
                self._where.of_gang(gang.key),
                least=term.least,
                most=term.most,
                others_to_come=max(gang.min_member - ready - 1, 0),
            )

        def numbers() -> str:
            level = self._level(term.tier)
            if level is None:
                return self._unknown(term.tier)
            wanted = f"at least {term.least}" + (f", at most {term.most}" if term.most else "")
            there = self._named(level, self._where.of_gang(gang.key))
            return f"{_SPREAD}: {wanted} domains; its members have {there}"

        return _Asked(_SPREAD, term.weight, mask, numbers)

    def _level(self, tier: Tier) -> Level | None:
        if tier not in self._levels:
            self._levels[tier] = Level.at(self._domains, tier)
        return self._levels[tier]

    # --- masks and scores ------------------------------------------------------------------------

    def _key(self, kind: str, gang: Gang, task: Task) -> Hashable | None:
        mask = self._mask(kind, gang, _part(gang, task))
        return None if mask is None else mask.tobytes()

    def _allows(self, kind: str, gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        mask = self._mask(kind, gang, _part(gang, task))
        return np.ones(len(nodes.rows), dtype=np.bool_) if mask is None else mask[nodes.rows]

    def _mask(self, kind: str, gang: Gang, part: SubGroup | None) -> Mask | None:
        """The nodes that all required terms of the kind allow; None: there is none."""
        if gang.affinity is None:
            return None
        now, key = self._where.follow(), (gang.key, part, kind)
        known = self._masks.get(key)
        if known is not None and known[0] == now:
            return known[1]
        found: Mask | None = None
        for asked in self._asked(gang, part):
            if asked.weight or asked.kind != kind:
                continue
            mask = asked.mask()
            if mask is None:
                mask = np.zeros(len(self._snapshot.table.nodes), dtype=np.bool_)
            found = mask if found is None else found & mask
        if found is not None:
            self._masks[key] = now, found
        return found

    def _score(self, gang: Gang, part: SubGroup | None) -> Scores:
        """What each node is worth, 0 to 1, shape ``(N,)``."""
        now, key = self._where.follow(), (gang.key, part)
        known = self._scores.get(key)
        if known is None or known[0] != now:
            worth = np.ones(len(self._snapshot.table.nodes))
            for asked in self._asked(gang, part):
                mask = asked.mask() if asked.weight else None
                if mask is not None:
                    worth -= ~mask * (asked.weight / _FULL)
            known = self._scores[key] = now, np.maximum(worth, 0.0)
        return known[1]

    # --- words -----------------------------------------------------------------------------------

    def _details(self, kind: str, gang: Gang, task: Task, _nodes: NodesNow) -> str:
        terms = [each for each in self._asked(gang, _part(gang, task)) if each.kind == kind]
        return "; ".join(dict.fromkeys(each.numbers() for each in terms if not each.weight))

    def _named(self, level: Level, held: Mask) -> str:
        """``rack-1, rack-2 (2 of 3 domains)``."""
        occupied = np.flatnonzero(level.occupied(held)).tolist()
        count = f"{len(occupied)} of {len(level.names)} domains"
        named = _listed([level.names[at] for at in occupied])
        return f"{named} ({count})" if occupied else count

    def _unknown(self, tier: Tier) -> str:
        return f"no domain of the network is of tier {tier.name or tier.number}"

    # --- exchange --------------------------------------------------------------------------------

    def _rules_over(self, gang: Gang, part: SubGroup | None) -> bool:
        return any(not asked.weight for asked in self._asked(gang, part))

    def _looked_at_by_rules(self) -> frozenset[GroupKey]:
        """The groups that required terms of others are about."""
        if self._looked_at is None:
            self._looked_at = frozenset(
                key
                for gang in self._snapshot.affine
                for term in (gang.affinity.of_groups if gang.affinity is not None else ())
                if not term.weight
                for key in self._where.keys(Selected(term.groups, gang.namespace, term.namespaces))
            )
        return self._looked_at


_NEAR, _APART = "podGroupAffinity", "podGroupAntiAffinity"
_TOGETHER, _PARTED, _SPREAD = "subGroupAffinity", "subGroupAntiAffinity", "memberSpread"
_OF_GROUPS = (_NEAR, _APART)
_OF_PARTS = (_TOGETHER, _PARTED)
_KINDS = (*_OF_GROUPS, *_OF_PARTS, _SPREAD)


def _part(gang: Gang, task: Task) -> SubGroup | None:
    return gang.sub_group_of.get(task.uid)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    named = ", ".join(names[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named
