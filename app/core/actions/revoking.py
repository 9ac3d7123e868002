"""Pods that have to leave their nodes are evicted, whether any gang asks for room or not.

There is no preemptor (volcano.md §3.5, the end of ``preempt``). Pods go in the units in which pods
are evicted at all (:mod:`app.core.victims.units`): single pods, members beyond a gang's minimum,
and whole gangs, if all their pods have to leave. What protects pods from every preemptor protects
them here. Of a gang that says by no budget how many of its members may be missing one unit goes at
a time, and none of a gang of which pods are going.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.core.actions.cycle import Cycle, Steps
from app.core.actions.victim_search import Work
from app.core.evicting import Judgement
from app.core.protection.job_budgets import has_budget
from app.core.victim_rules import NodeExcess, Preemptor
from app.core.victims.candidates import among
from app.core.victims.certificate import Decision, certificate_of
from app.core.victims.going import going
from app.core.victims.over_capability import of_no_members
from app.core.victims.problem import Problem, Solution, Witness, WitnessKind
from app.core.victims.units import Unit, units_of
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.running import NO_GROUP, Running

_MINE = EvictionAction.REVOKE


def revoke(cycle: Cycle) -> Steps:
    """Evict what plugins name, unit by unit."""
    rows = among(cycle.ledger, cycle.snapshot.running.counted).rows if cycle.opened.revoked else ()
    for plugin in cycle.opened.revoked:
        leaving = plugin.leaving(np.array(rows, dtype=np.intp))
        if not leaving:
            continue
        revoking = _Revoking(cycle, plugin.name, leaving, Work.of(cycle))
        going_of = {victim.gang for plan in cycle.snapshot.begun for victim in plan.victims}
        for unit in revoking.units(list(leaving)):
            if unit.gang not in going_of and revoking.take(unit):
                gang, pod = cycle.snapshot.gangs[unit.gang], revoking.running.pods[unit.pods[0]]
                if not has_budget(gang.annotations, pod.annotations):
                    going_of.add(unit.gang)
            yield


@dataclass(frozen=True, eq=False)
class _Revoking:
    """The pods of one plugin that are ``leaving``, with what their nodes have too much of."""

    cycle: Cycle
    plugin: str
    leaving: Mapping[int, NodeExcess]
    work: Work

    @property
    def running(self) -> Running:
        return self.cycle.snapshot.running

    def units(self, rows: list[int]) -> tuple[Unit, ...]:
        """What goes together, as the ledger stands."""
        return units_of(
            np.array(rows, dtype=np.intp),
            self.running,
            self.cycle.snapshot.gangs,
            account_of=self.cycle.ledger.gang,
            lost=self.work.lost,
        )

    def take(self, unit: Unit) -> bool:
        """Evict a unit if it may go; whether it does."""
        cycle, ledger = self.cycle, self.cycle.ledger
        if any(self.running.pods[at].uid in ledger.evicted for at in unit.pods):
            return False
        queue = cycle.snapshot.gangs[unit.gang].queue
        nothing = np.zeros(len(cycle.snapshot.axis), dtype=np.int64)
        in_its_name = Preemptor(_MINE, of_no_members(queue, nothing), (), nothing)
        rules = cycle.opened.unified_evictable
        judgement = rules.unprotected(in_its_name, np.array(unit.pods))
        whole = unit.whole or bool(self.units(list(unit.pods)))
        if not (whole and judgement.still_allows(unit.pods)):
            return False
        certificate = self._certificate(unit, judgement)
        for at in unit.pods:
            ledger.evict(at)
        victims = tuple(self._victim(at) for at in unit.pods)
        cycle.evict(EvictionPlan(_MINE, NO_GROUP, victims, certificate=certificate), None, None)
        return True

    def _victim(self, at: int) -> VictimPod:
        pod, key = self.running.pods[at], self.running.gangs[at]
        queue = self.cycle.snapshot.gangs[key].queue
        return VictimPod(pod.uid, pod.namespace, pod.name, pod.node, key, queue, self.plugin)

    def _certificate(self, unit: Unit, judgement: Judgement) -> Mapping[str, object]:
        problem = Problem(
            units=(unit,),
            running=self.running,
            room=self.cycle.ledger.future_idle.copy(),
            wanted=(),
            together=lambda: going(judgement, (unit,)),
            prove=lambda _units, _hint: (),
        )
        witness = Witness(WitnessKind.EXCESS, excess=self.leaving[unit.pods[0]])
        decision = Decision(
            preemptor=judgement.preemptor,
            problem=problem,
            solution=Solution((unit,), (), (witness,), exact=False),
            tasks=(),
            rule=lambda _at: self.plugin,
            lost=self.work.lost,
            saved=self.work.since,
            may_go_from=judgement.may_go_from,
            queue_shares=self.cycle.opened.queue_shares,
        )
        return certificate_of(decision, self.cycle.ledger, now=self.cycle.now)
