"""nodegroup: pods go to the groups of nodes that ``spec.affinity`` of their queue names.

The group of a node is its label ``volcano.sh/nodegroup-name``. Pods go to groups that are required
or preferred, and not to those that are banned (``nodeGroupAntiAffinity``, required); a group that
is only avoided (preferred there) is allowed after all, and scored last. Arguments:

* ``strict`` (true): nodes without the label take no pods; if false, they take those of queues
  without affinity;
* ``enablePreferredOrder`` (false): of preferred groups the earlier one is better;
* the switch ``enableHierarchy``: a queue without affinity has that of the nearest one above it.

The annotation ``volcano.sh/nodegroup-resource-limits`` of a queue says how much its pods may take
of a group together.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from app.core.arguments import Arguments
from app.core.entries import Placed
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.kit.quantities import amount_text
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.resources import Mask, Scores, Vector
from app.model.workload import NODE_GROUP, NodeGroupRules

_BASE = 100.0
_NO_GROUP = ""
_UNSET = NodeGroupRules()


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``strict`` and ``enablePreferredOrder``; ``enableHierarchy`` inherits affinity."""
    arguments = Arguments(conf)
    strict = arguments.flag("strict", default=True)
    ordered = arguments.flag("enablePreferredOrder", default=False)
    inherits = conf.enabled("enableHierarchy")

    def open_(session: Session) -> Hooks:
        groups = NodeGroups(session.ledger, strict=strict, ordered=ordered, inherits=inherits)
        return Hooks(
            node_rules=groups.rules(),
            node_score=NodeScore(groups.queue_of, groups.score),
            place_class=groups.place_class,
        )

    return open_


class NodeGroups:
    """The plugin on the nodes of one cycle."""

    def __init__(self, ledger: Ledger, *, strict: bool, ordered: bool, inherits: bool) -> None:
        self._snapshot = ledger.snapshot
        self._strict, self._ordered, self._inherits = strict, ordered, inherits
        of_nodes = [node.labels.get(NODE_GROUP, _NO_GROUP) for node in self._snapshot.table.nodes]
        self._names: Sequence[str] = sorted({_NO_GROUP, *of_nodes})
        code = {name: at for at, name in enumerate(self._names)}
        self._codes = np.array([code[name] for name in of_nodes], dtype=np.intp)
        self._rules: dict[QueueName, NodeGroupRules] = {}
        self._held = _Held(ledger, of_nodes)

    def rules(self) -> Sequence[NodeRule]:
        """Which nodes a task may go to, in the order in which a refusal counts them."""
        group = Cause.NODE_GROUP
        return [
            NodeRule(
                "node group resource limit annotation invalid",
                lambda gang, _: gang.queue if self._limits(gang.queue) is None else None,
                lambda _gang, _task, nodes: np.zeros(len(nodes.rows), dtype=np.bool_),
                group,
            ),
            NodeRule(
                "node group label not found",
                self.queue_of,
                lambda gang, _, nodes: self._labelled(gang)[self._codes[nodes.rows]],
                group,
            ),
            NodeRule(
                "node group affinity not specified",
                lambda gang, _: None if self._of(gang.queue).are_set else gang.queue,
                lambda _gang, _task, nodes: self._codes[nodes.rows] == 0,
                group,
                self._unset_details,
            ),
            NodeRule(
                "node does not satisfy the node group affinity",
                lambda gang, _: gang.queue if self._of(gang.queue).are_set else None,
                lambda gang, _, nodes: self._allowed(gang)[self._codes[nodes.rows]],
                group,
                self._affinity_details,
            ),
            NodeRule(
                "node group resource limit exceeded",
                self._limit_key,
                lambda gang, task, nodes: self._bears(gang, task)[self._codes[nodes.rows]],
                group,
                self._limit_details,
            ),
        ]

    def queue_of(self, gang: Gang, _task: Task) -> QueueName:
        """What scores, and all rules but that of limits, depend on."""
        return gang.queue

    def score(self, gang: Gang, _task: Task, nodes: NodesNow) -> Scores:
        """100 for a required group, up to 50 for a preferred one, -1 for one to be avoided."""
        rules = self._of(gang.queue)
        by_group = np.array([self._worth(rules, name) for name in self._names])
        worth: Scores = by_group[self._codes[nodes.rows]]
        return worth

    def place_class(self, _gang: Gang, _task: Task, row: int) -> Exchange:
        """No place is taken out of the group of its node."""
        return ANY_EQUAL.within(f"node group {self._names[self._codes[row]]}")

    def _of(self, queue: QueueName) -> NodeGroupRules:
        """The affinity that counts for ``queue``; names nothing where it has none."""
        known = self._rules.get(queue)
        if known is None:
            path = self._snapshot.ancestry(queue)
            queues = (
                self._snapshot.queues[name] for name in (path if self._inherits else path[:1])
            )
            own = (each.node_groups for each in queues if each.node_groups is not None)
            known = self._rules[queue] = next(own, _UNSET)
        return known

    def _labelled(self, gang: Gang) -> Mask:
        """By group: all but no group at all, which only queues without affinity may have."""
        mask = np.ones(len(self._names), dtype=np.bool_)
        mask[0] = not (self._strict or self._of(gang.queue).are_set)
        return mask

    def _allowed(self, gang: Gang) -> Mask:
        rules = self._of(gang.queue)
        return np.array([not name or rules.allow(name) for name in self._names], dtype=np.bool_)

    def _worth(self, rules: NodeGroupRules, name: str) -> float:
        if not name:
            return 0.0
        if name in rules.avoided:
            return -1.0
        worth = _BASE if name in rules.required else 0.0
        if name in rules.preferred:
            count = len(rules.preferred)
            behind = rules.preferred.index(name) if self._ordered else 0
            worth += _BASE / 2 * (count - behind) / count
        return worth

    # --- limits ----------------------------------------------------------------------------------

    def _limits(self, queue: QueueName) -> Mapping[str, Vector] | None:
        return self._held.limits(queue)

    def _limit_key(self, gang: Gang, task: Task) -> Hashable | None:
        if not self._limits(gang.queue):
            return None
        return gang.queue, task.request.tobytes(), self._held.stamp(gang.queue)

    def _bears(self, gang: Gang, task: Task) -> Mask:
        """By group: whether the limit of the queue bears ``task`` beside what it holds."""
        return np.array([not self._beyond(gang, task, name) for name in self._names])

    def _beyond(self, gang: Gang, task: Task, name: str) -> list[int]:
        """The columns of which ``task`` would take more than the queue's limit for the group."""
        limit = (self._limits(gang.queue) or {}).get(name)
        if limit is None:
            return []
        wanted = self._held.of(gang.queue, name) + task.request
        columns: list[int] = np.flatnonzero((limit >= 0) & (wanted > limit)).tolist()
        return columns

    # --- details ---------------------------------------------------------------------------------

    def _unset_details(self, gang: Gang, _task: Task, nodes: NodesNow) -> str:
        return f"queue {gang.queue} names no node group, nodes are in {self._groups(nodes)}"

    def _affinity_details(self, gang: Gang, _task: Task, nodes: NodesNow) -> str:
        rules = self._of(gang.queue)
        named = dict.fromkeys((*rules.required, *rules.preferred, *rules.avoided))
        allowed = [name for name in named if rules.allow(name)]
        may = f"may use node groups {', '.join(allowed)}" if allowed else "may use no node group"
        return f"queue {gang.queue} {may}, nodes are in {self._groups(nodes)}"

    def _limit_details(self, gang: Gang, task: Task, nodes: NodesNow) -> str:
        axis, limits = self._snapshot.axis, self._limits(gang.queue) or {}
        parts: list[str] = []
        for code in np.unique(self._codes[nodes.rows]).tolist():
            name = self._names[code]
            for column in self._beyond(gang, task, name):
                resource = axis.names[column]
                held, asked, limit = (
                    amount_text(resource, int(amounts[column]))
                    for amounts in (self._held.of(gang.queue, name), task.request, limits[name])
                )
                numbers = f"{resource} {held} held and {asked} asked of {limit}"
                parts.append(f"node group {name}: {numbers}")
        return f"queue {gang.queue} in {', '.join(parts)}"

    def _groups(self, nodes: NodesNow) -> str:
        codes = np.unique(self._codes[nodes.rows]).tolist()
        return ", ".join(self._names[code] for code in codes)


class _Held:
    """What queues with limits hold of node groups, as the ledger stands."""

    def __init__(self, ledger: Ledger, group_of: Sequence[str]) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._group_of = group_of
        self._limit: dict[QueueName, Mapping[str, Vector] | None] = {}
        self._held: defaultdict[QueueName, dict[str, Vector]] = defaultdict(dict)
        self._journal = JournalReader(ledger.journal)
        self._counted = False

    def limits(self, queue: QueueName) -> Mapping[str, Vector] | None:
        """By group, -1 where there is no limit, shape ``(R,)``; None: the annotation is wrong."""
        if queue not in self._limit:
            known = self._snapshot.queues.get(queue)
            limits = {} if known is None else known.node_group_limits
            self._limit[queue] = None if limits is None else self._vectors(limits)
        return self._limit[queue]

    def of(self, queue: QueueName, group: str) -> Vector:
        """What ``queue`` holds of ``group``, shape ``(R,)``."""
        self._follow()
        held = self._held[queue].get(group)
        return np.zeros(len(self._snapshot.axis), dtype=np.int64) if held is None else held

    def stamp(self, queue: QueueName) -> bytes:
        """Differs as what ``queue`` holds of any group does."""
        self._follow()
        held = self._held[queue]
        return b"".join(group.encode() + held[group].tobytes() for group in sorted(held))

    def _vectors(self, limits: Mapping[str, tuple[tuple[str, int], ...]]) -> dict[str, Vector]:
        index = self._snapshot.axis.index
        found: dict[str, Vector] = {}
        for group, amounts in limits.items():
            vector = found[group] = np.full(len(index), -1, dtype=np.int64)
            for name, amount in amounts:
                if name in index:
                    vector[index[name]] = amount
        return found

    def _follow(self) -> None:
        if not self._counted:
            self._counted = True
            rows = self._snapshot.table.index
            for key, places in self._snapshot.places.items():
                gang = self._snapshot.gangs.get(key)
                for place in places if gang is not None else ():
                    row = rows.get(place.node)
                    if gang is not None and row is not None:
                        self._add(gang.queue, row, place.request)
        for entry, row, sign in self._journal.changes():
            if entry.gang is None or not self.limits(entry.gang.queue):
                continue
            if isinstance(entry, Placed):
                self._add(entry.gang.queue, row, entry.task.request * sign)
            elif entry.counts:
                self._add(entry.gang.queue, row, entry.request * sign)

    def _add(self, queue: QueueName, row: int, amount: Vector) -> None:
        group, held = self._group_of[row], self._held[queue]
        if group:
            held[group] = held[group] + amount if group in held else amount
