"""shuffle: pods that plugins want on other nodes are evicted, to come again there.

There is no preemptor (volcano.md §3.5). Pods move in the units in which pods are evicted at all
(:mod:`app.core.victims.units`): single pods, members beyond a gang's minimum, and whole gangs, if
all their pods are wanted elsewhere. A unit moves only if the planner itself would place what comes
in its stead on nodes that the plugin chose: else it might come back to where it was, and go again.
Pods of a gang that has to be in one domain of the network move inside that domain.

Nothing keeps the places for the pods that come, as it is not known which these are; what the action
decided stands on the ledger of its own cycle.

Members of groups that wait stay, and as long as pods of an earlier round are to go no others do.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from app.core.actions.cycle import Cycle, Steps
from app.core.actions.victim_search import Work
from app.core.evicting import Judgement
from app.core.moving import Wanted as WantedPods
from app.core.victim_rules import NodeExcess, Preemptor, VictimTasks
from app.core.victims.candidates import among
from app.core.victims.certificate import Decision, certificate_of
from app.core.victims.going import going
from app.core.victims.problem import Problem, Solution, Wanted, Witness, WitnessKind
from app.core.victims.units import Unit, units_of
from app.model.amounts import is_best_effort
from app.model.domains import Domain
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.gang import Counts, Gang, Task
from app.model.ids import GroupKey
from app.model.resources import Mask
from app.model.running import NO_GROUP, Running

_Places = tuple[tuple[Task, int], ...]
"""What comes, with the rows of the nodes where it is placed."""

_MINE = EvictionAction.SHUFFLE


def shuffle(cycle: Cycle) -> Steps:
    """Move pods, unit by unit, as far as plugins want it."""
    wanted = cycle.opened.victim_tasks
    if wanted is None or any(plan.action is _MINE for plan in cycle.snapshot.begun):
        return
    pods = wanted(among(cycle.ledger, cycle.snapshot.running.counted).rows)
    if not pods:
        return
    round_ = _Round(cycle, pods)
    for unit in round_.units():
        with cycle.as_held():
            round_.move(unit)
        yield


@dataclass(eq=False)
class _Round:
    """One action of one cycle; ``pods`` are wanted elsewhere, first in front."""

    cycle: Cycle
    pods: WantedPods
    work: Work = field(init=False)
    wants: dict[int, VictimTasks] = field(init=False)

    def __post_init__(self) -> None:
        self.work = Work.of(self.cycle)
        self.wants = dict(self.pods)

    def units(self) -> Sequence[Unit]:
        """What may move together, first in front."""
        cycle = self.cycle
        waits = {gang.key for gang in cycle.pending} | cycle.begun.keys()
        gangs = cycle.snapshot.running.gangs
        return self._units_of([at for at, _ in self.pods if gangs[at] not in waits])

    def _units_of(self, rows: Sequence[int]) -> Sequence[Unit]:
        cycle = self.cycle
        return units_of(
            np.array(rows, dtype=np.intp),
            cycle.snapshot.running,
            cycle.snapshot.gangs,
            account_of=cycle.ledger.gang,
            lost=self.work.lost,
        )

    def move(self, unit: Unit) -> None:
        """Evict a unit, if its pods are still to go and what comes in its stead has places."""
        cycle, ledger = self.cycle, self.cycle.ledger
        running = cycle.snapshot.running
        if any(running.pods[at].uid in ledger.evicted for at in unit.pods):
            return
        if cycle.snapshot.gangs[unit.gang].affinity is not None:
            return  # where its members are may be what others of them, or other groups, go by
        excess = [self.wants[at].excess(at) for at in unit.pods]
        first = excess[0]
        if first is None or None in excess:
            return
        comers = _comers(cycle, unit)
        judgement = self._judgement(unit, comers)
        if not (judgement.still_allows(unit.pods) and self._keeps_minimum(unit)):
            return
        places = self._places(unit, comers)
        if places is None:
            return
        certificate = self._certificate(unit, judgement, places, first)
        for at in unit.pods:
            ledger.evict(at)
        for task, row in places:
            ledger.pipeline(comers, task, node=row)
        victims = tuple(self._victim(at) for at in unit.pods)
        plan = EvictionPlan(_MINE, NO_GROUP, victims, certificate=certificate)
        cycle.evict(plan, None, None)

    def _judgement(self, unit: Unit, comers: Gang) -> Judgement:
        """What protects pods of the unit, whatever plugins let go."""
        makes_room_for = Preemptor(_MINE, comers, comers.waiting, comers.request)
        rules = self.cycle.opened.unified_evictable
        return rules.unprotected(makes_room_for, np.array(unit.pods))

    def _keeps_minimum(self, unit: Unit) -> bool:
        """Whether the gang has its minimum without the unit by now, or the unit is all of it."""
        return unit.whole or bool(self._units_of(unit.pods))

    def _plugin(self, task: Task) -> VictimTasks:
        return self.wants[self.cycle.snapshot.running.index[task.uid]]

    def _places(self, unit: Unit, comers: Gang) -> _Places | None:
        """Where the planner places what comes once ``unit`` has gone; None: not where it should."""
        cycle, ledger = self.cycle, self.cycle.ledger
        with ledger.trial() as trial:
            for at in unit.pods:
                ledger.evict(at)
            borrows = cycle.opened.borrows
            if not borrows and cycle.opened.overused(comers.queue) is not None:
                return None
            with cycle.ahead(), cycle.beyond_shares(allowed=borrows):
                for task in comers.waiting:
                    takes = self._plugin(task).takes(task.request)
                    domains = self._domains(unit, task)
                    if domains is None:
                        return None
                    with ExitStack() as inside:
                        for domain in domains:
                            inside.enter_context(cycle.inside(domain))
                        refusal = cycle.try_place(comers, task)
                    if refusal is not None:
                        return None
                    if not takes[ledger.placed_since(trial.start)[-1].node]:
                        return None
            return tuple((entry.task, entry.node) for entry in ledger.placed_since(trial.start))

    def _domains(self, unit: Unit, task: Task) -> Sequence[Domain] | None:
        """The domains of the network that the pod has to stay in; None: its gang is in none.

        Each is the widest one allowed that has all nodes of its gang, or of its sub-group, by now.
        """
        snapshot = self.cycle.snapshot
        running, gang = snapshot.running, snapshot.gangs[unit.gang]
        mine = running.parts[running.index[task.uid]].sub_group
        of_policy = {policy.name: policy.topology for policy in gang.sub_groups}
        if gang.topology is None and not any(of_policy.values()):
            return ()
        rows = [at for at, key in enumerate(running.gangs) if key == unit.gang]
        part = [at for at in rows if running.parts[at].sub_group == mine]
        among, found = snapshot.domains, list[Domain]()
        for asked, held in ((gang.topology, rows), (of_policy.get(mine.policy), part)):
            if among is None or asked is None or not asked.is_hard:
                continue
            highest = among.highest_tier(asked)
            if highest is None:
                return None
            allowed = np.flatnonzero(among.allowed(highest, np.unique(running.nodes[held])))
            if not len(allowed):
                return None
            found.append(among.domain(int(allowed[-1])))
        return found

    def _victim(self, at: int) -> VictimPod:
        snapshot = self.cycle.snapshot
        pod, key = snapshot.running.pods[at], snapshot.running.gangs[at]
        rule, queue = self.wants[at].name, snapshot.gangs[key].queue
        return VictimPod(pod.uid, pod.namespace, pod.name, pod.node, key, queue, rule)

    def _certificate(
        self, unit: Unit, judgement: Judgement, places: _Places, excess: NodeExcess
    ) -> Mapping[str, object]:
        cycle, comers = self.cycle, judgement.preemptor.gang.waiting
        problem = Problem(
            units=(unit,),
            running=cycle.snapshot.running,
            room=cycle.ledger.future_idle.copy(),
            wanted=[Wanted(self._allowed(task), task.request, 1) for task in comers],
            together=lambda: going(judgement, (unit,)),
            prove=lambda _units, hint: hint,
        )
        rows = tuple((row,) for _, row in places)
        witness = Witness(WitnessKind.EXCESS, excess=excess)
        decision = Decision(
            preemptor=judgement.preemptor,
            problem=problem,
            solution=Solution((unit,), rows, (witness,), exact=False),
            tasks=[[task] for task in comers],
            rule=lambda at: self.wants[at].name,
            lost=self.work.lost,
            saved=self.work.since,
            may_go_from=judgement.may_go_from,
            queue_shares=cycle.opened.queue_shares,
        )
        return certificate_of(decision, cycle.ledger, now=cycle.now)

    def _allowed(self, task: Task) -> Mask:
        """The nodes that a pod may move to, as rules and its plugin say, shape ``(N,)``."""
        mask: Mask = self._plugin(task).takes(task.request) & self.cycle.room_ahead.admits(task)
        return mask


def _comers(cycle: Cycle, unit: Unit) -> Gang:
    """What comes in the stead of ``unit``, as a group of its own that needs all of them."""
    running = cycle.snapshot.running
    gang = cycle.snapshot.gangs[unit.gang]
    tasks = tuple(_task(running, at) for at in unit.pods)
    nothing = np.zeros_like(gang.allocated)
    return replace(
        gang,
        key=GroupKey(f"{gang.key} without {tasks[0].name}"),
        waiting=tasks,
        min_member=len(tasks),
        counts=Counts(pending=len(tasks)),
        allocated=nothing,
        kept=nothing,
        request=sum((task.request for task in tasks), nothing),
        min_request=None,
        gated_request=nothing,
        releasing=nothing,
        queue_first=(),
        role_minimum={},
        role_ready={},
        role_valid={},
        role_slots={},
        sub_groups=(),
        sub_group_of={},
        sub_group_ready={},
        sub_group_valid={},
    )


def _task(running: Running, at: int) -> Task:
    """The pod at that position as one that waits for a node."""
    pod = running.pods[at]
    return Task(
        uid=pod.uid,
        name=pod.name,
        role=running.parts[at].role,
        shape=pod.shape,
        request=running.requests[at],
        priority=int(running.priorities[at]),
        created=pod.created,
        best_effort=is_best_effort(pod.shape.requests),
    )
