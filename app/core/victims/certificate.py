"""The certificate of an eviction: all that is needed to verify the decision, as JSON.

``pumice check-eviction`` verifies it without a cluster and without this package
(:mod:`app.cli.certificates`). Amounts are by resource name in base units
(:mod:`app.model.amounts`), times are seconds since the epoch, and *before* means before this
decision: other decisions of the same cycle are made already. Version 1 has these fields:

``format``, ``version``, ``action``, ``generation`` (of the snapshot), ``time``, ``total`` (what the
cluster has; at least 1 of each resource), ``tree`` (whether a queue counts those below it),
``ancestorLevel`` (how many queues above the preemptor's may answer for it when it reclaims).

An eviction for no gang, because a queue holds more than its capability (``over-capability``), has
that queue as the one of a ``preemptor`` without a ``group``, members and ``places``. The ``limit``
of the queue is then its capability, or what it keeps at least as more of its pods may not go; no
other queue has one.

``preemptor``: ``group``, ``queue``, ``priority``, ``admits`` (it is admitted by this decision),
``domain`` (the ``name`` and the ``nodes`` of the domain of the network that all places have to be
in; null: they may be anywhere),
``minimum`` (``members``, ``roles``, and ``policies`` of sub-groups: ``size`` members make one
whole, ``least`` must be), ``has`` (``members``, ``roles``, ``subGroups`` by policy that have room
before), and ``places``: ``name``, ``uid`` (empty: a slot), ``role``, ``policy``, ``subGroup``,
``priority``, ``shape`` (a position in ``shapes``), ``node``.

``shapes``: equal members, by ``request``; ``perNode`` may be on one node, ``nodes`` lists those of
``nodes`` that rules about nodes allow, and ``elsewhere`` tells how many members all other nodes
have room for. ``elsewhere`` (of the certificate) sums what is free of other nodes that have room
for some member.

``nodes``: by name those with places and those of the pods below: ``allocatable``, ``used``,
``releasing`` (that part of it terminates), ``pledged`` (what other decisions take of the room that
is to be free; less than zero where they evict more than they take).

``pods``: by UID the victims, and with an exhaustive witness all that might have gone: what they are
(``namespace``, ``name``, ``node``, ``gang``, ``queue``, ``role``, ``policy``, ``subGroup``,
``request``, ``priority``, ``priorityClass``), whether their gang counts them as ready
(``counted``), what might protect them (``bound``, ``releasing``, ``preemptable``, ``foreign``,
``static``, ``daemonSet``, ``mayGoFrom``), the plugins that allow it (``rule``, joined by ``+``),
when they ``started``, when their work was ``saved`` (start or checkpoint), and the ``lostWork``
since then: millionths of the cluster times seconds, by the largest share.

``gangs``: of these pods: ``queue``, ``priority``, ``single`` (a group that is but one pod),
``endsWhole`` (no member is spared when one goes), ``running`` (so many pods may go), ``minimum``,
``has``, and ``left``: members that have room afterwards.

``queues``: those of the preemptor and the victims, in a tree also those above: ``parent``,
``reclaimable``, ``deserved``, ``limit`` (absent: none), and what they hold ``before`` and
``after``.

``budgets``: PodDisruptionBudgets that cover one of the pods: how many evictions are ``allowed``
now, and the pods that it ``covers``.

``units``: pods that go together: ``kind`` (``surplus``: a pod beyond its gang's minimum;
``single``; ``gang``), ``pods``, and the ``witness`` of one that goes (null: it stays). Its ``kind``
is one of

* ``bound``: without the unit there is no room: of what ``bound`` names the nodes or the queue
  ``have`` less than the places ``need``. ``members``: places for the shape ``of``; ``sum``: of
  ``resource`` on all nodes that have room for some member; ``queue``: of ``resource`` under the
  limit of the queue ``of`` (none is needed for ``over-capability``: less than nothing is left).
* ``exhaustive``: every set of ``units`` without it that costs less has no room, or breaks a rule.
  ``forbidden`` are sets of positions in ``units`` that rules forbid, by the planner's word.
* ``planner``: the planner found no places without it.
* ``excess``: on the ``node`` of one of its pods more than ``most`` of ``resource`` is taken. With
  ``beyond`` what the node measures is meant: so much more than its pods request of ``resource``, or
  of ``kubernetes.io/batch-cpu`` and ``-memory`` in its stead.

The action ``revoke`` evicts for no group either: its victims leave nodes that are theirs no more,
and the ``preemptor`` is their queue, without a ``group``, members and ``places``.

The action ``shuffle`` evicts for no group: ``preemptor`` is then what comes in the stead of the
victims, and its places are where the planner places it as things stand.

``victims``: UIDs in the order of eviction. ``cost``: ``gangs`` that end, the highest ``priority``
of a victim or its group, ``lostWork``, ``pods``; the first that differs decides.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.core.accounts import GangAccount
from app.core.ledger import Ledger
from app.core.policy import QueueShares
from app.core.victim_rules import Preemptor
from app.core.victims.bounds import places_on
from app.core.victims.certificate_facts import ExceededBound, NodeFacts, QueueFacts
from app.core.victims.problem import Problem, Solution, Witness, WitnessKind
from app.core.victims.units import Unit, cost_of, is_single, pods_of
from app.model.amounts import UNLIMITED
from app.model.domains import Domain
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, QueueName
from app.model.parts import NO_SUB_GROUP, Part
from app.model.resources import Vector
from app.model.running import NO_GROUP

FORMAT: Final = "pumice.sh/eviction"
VERSION: Final = 1
Json = dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What was decided, and from what.

    ``tasks`` are the members for each of ``problem.wanted``, in the order of ``solution.places``.
    ``rule`` names the plugins that let the pod at a position of ``snapshot.running`` go,
    ``may_go_from`` tells from when on it may. ``lost`` and ``saved`` (shape ``(P,)``) are what the
    costs were worked out from. ``queue_shares`` None: no plugin shares the cluster.
    """

    preemptor: Preemptor
    problem: Problem
    solution: Solution
    tasks: Sequence[Sequence[Task]]
    rule: Callable[[int], str]
    lost: NDArray[np.int64]
    saved: NDArray[np.float64]
    may_go_from: Callable[[int], float] = lambda _at: 0.0
    queue_shares: QueueShares | None = None
    admits: bool = False
    domain: Domain | None = None
    """The domain of the network that all places are in; None: they may be anywhere."""
    limit: Vector | None = None
    """What the queue is to hold no more of, where no member asks for a place; shape ``(R,)``."""


def certificate_of(decision: Decision, ledger: Ledger, *, now: float) -> Mapping[str, object]:
    """The certificate of ``decision``, of which nothing is on ``ledger`` yet."""
    return _Writer(decision, ledger).written(now)


class _Writer:
    """What the parts of one certificate are made from."""

    def __init__(self, decision: Decision, ledger: Ledger) -> None:
        self.decision = decision
        self.ledger = ledger
        self.snapshot = ledger.snapshot
        self.running = ledger.snapshot.running
        self.gang = decision.preemptor.gang
        self.problem, self.solution = decision.problem, decision.solution
        kinds = [witness.kind for witness in self.solution.witnesses]
        self.is_exhaustive = WitnessKind.EXHAUSTIVE in kinds
        self.units = self.problem.units if self.is_exhaustive else self.solution.units
        self.pods = list(dict.fromkeys(pods_of(self.units)))
        self.victims = pods_of(self.solution.units)
        self.nodes = NodeFacts(self.running, self.problem.room, self.problem.wanted, self._rows())
        self.queues = QueueFacts(
            ledger, decision.queue_shares, preemptor=self.gang, to_keep=decision.limit
        )
        staying = zip(self.running.gangs, self.running.releasing.tolist(), strict=True)
        self.sizes = Counter(gang for gang, gone in staying if not gone)
        self.free = self.nodes.free_without(self.victims)
        self.held = self.queues.held_by_line(self.victims)
        counted = self.running.counted
        self.lost = Counter(self.running.gangs[at] for at in self.victims if counted[at])

    def written(self, now: float) -> Mapping[str, object]:
        names = [self.running.pods[at].uid for at in self.victims]
        gangs = dict.fromkeys(self.running.gangs[at] for at in self.pods)
        owners = [self.gang.queue, *(self.snapshot.gangs[key].queue for key in gangs)]
        queues = dict.fromkeys(name for owner in owners for name in self.queues.line(owner))
        cost = cost_of(self.solution.units)
        return {
            "format": FORMAT,
            "version": VERSION,
            "action": self.decision.preemptor.action.value,
            "generation": self.snapshot.generation,
            "time": now,
            "total": self._amounts(np.maximum(self.snapshot.total, 1)),
            "tree": self.queues.tree,
            "ancestorLevel": self.queues.ancestors,
            "preemptor": self._preemptor(),
            "shapes": [self._shape(at) for at in range(len(self.problem.wanted))],
            "elsewhere": self._amounts(self.nodes.free_elsewhere),
            "nodes": {self._node(row): self._usage(row) for row in self.nodes.rows},
            "pods": {self.running.pods[at].uid: self._pod(at) for at in self.pods},
            "gangs": {key: self._victim_gang(key) for key in gangs},
            "queues": {name: self._queue(name) for name in queues},
            "budgets": [*self._budgets()],
            "units": [*self._units()],
            "forbidden": [list(each) for each in self.solution.forbidden if self.is_exhaustive],
            "victims": names,
            "cost": {
                "gangs": cost.gangs,
                "priority": cost.priority,
                "lostWork": cost.lost,
                "pods": cost.pods,
            },
        }

    def _amounts(self, vector: Vector) -> dict[str, int]:
        return dict(self.snapshot.axis.amounts(vector))

    # --- the preemptor, its places and the nodes -------------------------------------------------

    def _preemptor(self) -> Json:
        gang, domain = self.gang, self.decision.domain
        account = self.ledger.gang(gang)
        return {
            "group": gang.key,
            "queue": gang.queue,
            "priority": gang.priority,
            "admits": self.decision.admits,
            "domain": None if domain is None else self._domain(domain),
            "minimum": _minimum(gang),
            "has": _held(account.ready, account.role_ready, account),
            "places": [
                self._place(task, shape, row)
                for shape, tasks in enumerate(self.decision.tasks)
                for task, row in zip(tasks, self.solution.places[shape], strict=True)
            ],
        }

    def _domain(self, domain: Domain) -> Json:
        return {"name": domain.name, "nodes": [self._node(row) for row in domain.rows.tolist()]}

    def _place(self, task: Task, shape: int, row: int) -> Json:
        sub_group = self.gang.sub_group_of.get(task.uid, NO_SUB_GROUP)
        return {
            "name": task.name,
            "uid": task.uid,
            **_part(Part(task.role, sub_group)),
            "priority": task.priority,
            "shape": shape,
            "node": self._node(row),
        }

    def _shape(self, at: int) -> Json:
        wanted = self.problem.wanted[at]
        most = wanted.count if wanted.per_node is None else min(wanted.count, wanted.per_node)
        return {
            "request": self._amounts(wanted.request),
            "perNode": most,
            "nodes": [self._node(row) for row in self.nodes.rows if wanted.mask[row]],
            "elsewhere": self.nodes.places_elsewhere[at],
        }

    def _rows(self) -> list[int]:
        """Rows of the nodes that it tells of."""
        rows = {row for rows in self.solution.places for row in rows}
        rows.update(int(self.running.nodes[at]) for at in self.pods)
        wanted, room = self.problem.wanted, self.problem.room
        if self.is_exhaustive and len(wanted) > 1:
            # How many members of several shapes other nodes have room for is no number per shape.
            rows.update(row for w in wanted for row in np.flatnonzero(places_on(room, w)).tolist())
        return sorted(row for row in rows if row < len(room))

    def _node(self, row: int) -> str:
        return self.snapshot.table.nodes[row].name

    def _usage(self, row: int) -> Json:
        snapshot = self.snapshot
        allocatable, used = snapshot.table.allocatable[row], snapshot.used[row]
        releasing = snapshot.releasing[row]
        return {
            "allocatable": self._amounts(allocatable),
            "used": self._amounts(used),
            "releasing": self._amounts(releasing),
            "pledged": self._amounts(allocatable - used + releasing - self.problem.room[row]),
        }

    # --- victims ---------------------------------------------------------------------------------

    def _pod(self, at: int) -> Json:
        running = self.running
        pod, row = running.pods[at], int(running.nodes[at])
        gang = self.snapshot.gangs[running.gangs[at]]
        owner = "" if pod.owner is None else pod.owner.kind
        return {
            "namespace": pod.namespace,
            "name": pod.name,
            "node": self._node(row) if row < len(self.snapshot.table.nodes) else pod.node,
            "gang": gang.key,
            "queue": gang.queue,
            **_part(running.parts[at]),
            "request": self._amounts(running.requests[at]),
            "priority": int(running.priorities[at]),
            "priorityClass": pod.priority_class,
            "counted": bool(running.counted[at]),
            "bound": bool(running.bound[at]),
            "releasing": bool(running.releasing[at]),
            "preemptable": pod.preemptable_in(gang.preemptable),
            "foreign": running.gangs[at] == NO_GROUP,
            "static": owner == "Node",
            "daemonSet": owner == "DaemonSet",
            "mayGoFrom": float(self.decision.may_go_from(at)),
            "rule": self.decision.rule(at),
            "started": float(running.started[at]),
            "saved": float(self.decision.saved[at]),
            "lostWork": int(self.decision.lost[at]),
        }

    def _victim_gang(self, key: GroupKey) -> Json:
        gang = self.snapshot.gangs[key]
        account = self.ledger.gang(gang)
        members, roles = account.existing(gang)
        return {
            "queue": gang.queue,
            "priority": gang.priority,
            "single": is_single(gang, size=self.sizes[key]),
            "endsWhole": gang.ends_whole,
            "running": self.sizes[key],
            "minimum": _minimum(gang),
            "has": _held(members, roles, account),
            "left": members - self.lost[key],
        }

    def _budgets(self) -> Iterator[Json]:
        pods, index = self.running.pods, self.running.index
        for budget in self.snapshot.budgets:
            covers = [pods[at].uid for at in self.pods if budget.covers(pods[at])]
            if covers:
                evicted = [pods[index[uid]] for uid in self.ledger.evicted if uid in index]
                taken = sum(budget.covers(pod) and not pod.deleting for pod in evicted)
                yield {
                    "name": f"{budget.namespace}/{budget.name}",
                    "allowed": budget.allowed - taken,
                    "covers": covers,
                }

    def _queue(self, name: QueueName) -> Json:
        about, standing = self.snapshot.queues.get(name), self.queues.standing(name)
        after = self.queues.held(name, self.victims)
        if name in self.queues.line(self.gang.queue):
            after += self.decision.preemptor.asked
        limit = zip(self.snapshot.axis.names, self.queues.limit(name).tolist(), strict=True)
        return {
            "parent": self.queues.parent(name),
            "reclaimable": about is None or about.reclaimable,
            "deserved": {} if standing is None else self._amounts(standing.deserved),
            "limit": {resource: most for resource, most in limit if most < UNLIMITED},
            "before": self._amounts(self.queues.before(name)),
            "after": self._amounts(after),
        }

    # --- units and their witnesses ---------------------------------------------------------------

    def _units(self) -> Iterator[Json]:
        chosen = zip(self.solution.units, self.solution.witnesses, strict=True)
        witnesses = {unit.pods: self._witness(unit, witness) for unit, witness in chosen}
        for unit in self.units:
            single = is_single(self.snapshot.gangs[unit.gang], size=self.sizes[unit.gang])
            yield {
                "kind": unit.kind(single=single),
                "pods": [self.running.pods[at].uid for at in unit.pods],
                "witness": witnesses.get(unit.pods),
            }

    def _witness(self, unit: Unit, witness: Witness) -> Json:
        """A bound wherever one proves it, but for a unit untried or one that goes for no gang."""
        if witness.excess is not None:
            row, resource, most, beyond = witness.excess
            name, kind = self.snapshot.axis.names[resource], witness.kind.value
            told = {"kind": kind, "node": self._node(row), "resource": name, "most": most}
            return told if beyond is None else {**told, "beyond": beyond}
        if witness.kind is WitnessKind.UNTRIED:
            return {"kind": witness.kind.value}
        bound = next(self._bounds_without(unit), None)
        if bound is not None:
            return {"kind": WitnessKind.BOUND.value, **bound._asdict()}
        kind = witness.kind if witness.kind is not WitnessKind.BOUND else WitnessKind.PLANNER
        return {"kind": kind.value}

    def _bounds_without(self, unit: Unit) -> Iterator[ExceededBound]:
        free = self.nodes.with_pods(self.free, unit.pods)
        yield from self.nodes.exceeded(free, self.snapshot.axis.names)
        yield from self.queues.exceeded(self.held, unit.pods, self.decision.preemptor.asked)


def _minimum(gang: Gang) -> Json:
    policies = {each.name: {"size": each.size, "least": each.least} for each in gang.sub_groups}
    roles = dict(gang.role_minimums)
    return {"members": gang.min_member, "roles": roles, "policies": policies}


def _held(members: int, roles: Mapping[str, int], account: GangAccount) -> Json:
    sub_groups: dict[str, dict[str, int]] = {}
    for (policy, values), count in account.sub_group_ready.items():
        sub_groups.setdefault(policy, {})[values] = count
    return {"members": members, "roles": dict(roles), "subGroups": sub_groups}


def _part(part: Part) -> Json:
    return {
        "role": part.role,
        "policy": part.sub_group.policy,
        "subGroup": part.sub_group.values,
    }
