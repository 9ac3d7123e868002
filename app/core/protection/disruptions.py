"""What protects running pods in all tiers, whatever the conf names, as the ledger stands.

Pods are told by their positions in ``snapshot.running``. Budgets, and gangs whose minimum is one of
roles or sub-groups, are asked about all pods that go together: each of two pods may go, and the two
may not.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np

from app.core.ledger import Ledger
from app.core.protection.gang_minimum import spares
from app.core.protection.job_budgets import has_budget, may_be_missing
from app.core.protection.run_time import has_run_for, minimum_run_time
from app.core.settling import SETTLING, Settling
from app.core.victim_rules import Preemptor
from app.model.disruption import DisruptionBudget
from app.model.ids import GroupKey, PodUid
from app.model.parts import Part
from app.model.resources import Mask, Rows

POD_BUDGET = "protected by a PodDisruptionBudget"
JOB_BUDGET = "protected by a job disruption budget"
RUN_TIME = "in the minimum run time of their queue"

ComingTo = Callable[[GroupKey], Sequence[Part]]
"""What members count for that come to a gang, in the stead of others."""


class Disruptions:
    """What protects the pods of one cycle; ``now`` is seconds since the epoch."""

    def __init__(self, ledger: Ledger, *, now: float) -> None:
        self._ledger = ledger
        self._now = now
        self._covered: dict[int, frozenset[PodUid]] = {}
        self._settling = Settling(ledger, now=now)
        times = {n: minimum_run_time(q) for n, q in ledger.snapshot.queues.items()}
        self._run_times = {name: seconds for name, seconds in times.items() if seconds}

    def spared(self, rows: Rows, preemptor: Preemptor | None = None) -> list[tuple[str, Mask]]:
        """What protects the pods at ``rows`` by themselves, and which of them (shape ``(C,)``).

        From ``preemptor`` as well as from all others.
        """
        found = []
        if preemptor is not None:
            found.append((SETTLING, self._settling.spared(preemptor, rows)))
        if self._run_times:
            found.append((RUN_TIME, ~self._have_run(rows)))
        if self._budgets:
            pods = self._ledger.snapshot.running.pods
            used_up = frozenset().union(*map(self._covers, self._used_up()))
            covered = [pods[at].uid in used_up for at in rows.tolist()] if used_up else False
            found.append((POD_BUDGET, np.full(len(rows), covered)))
        if self._with_job_budget:
            gangs = self._ledger.snapshot.running.gangs
            full = {
                at
                for at in rows.tolist()
                if gangs[at] in self._with_job_budget and self._exceed_a_job_budget((at,))
            }
            found.append((JOB_BUDGET, np.array([at in full for at in rows.tolist()], np.bool_)))
        return found

    def may_go_from(self, at: int) -> float:
        """When the minimum run time of that pod ends; 0: its queue has none."""
        running = self._ledger.snapshot.running
        gang = self._ledger.snapshot.gangs.get(running.gangs[at])
        least = self._run_times.get(gang.queue) if gang is not None else None
        return 0.0 if least is None else (float(running.started[at]) or self._now) + least

    def tightest(self, rows: Rows) -> str:
        """The budget that lets the fewest of the pods at ``rows`` go, of those that not all may go.

        ``PodDisruptionBudget default/web lets 1 of 4 pods go``; empty: all may, by budgets.
        """
        running, evicted = self._ledger.snapshot.running, self._ledger.evicted
        uids = {running.pods[at].uid for at in rows.tolist() if not running.releasing[at]}
        found: list[tuple[int, str, int]] = []
        for budget in (each for budgets in self._budgets.values() for each in budgets):
            covered = self._covers(budget)
            left = max(budget.allowed - len(covered & evicted), 0)
            if (asked := len(covered & uids)) > left:
                found.append((left, f"{budget.namespace}/{budget.name}", asked))
        if not found:
            return ""
        left, name, asked = min(found)
        return f"PodDisruptionBudget {name} lets {left} of {asked} pods go"

    def allow(self, rows: Collection[int], *, coming_to: ComingTo) -> bool:
        """Whether all of these may go together, while ``coming_to`` says what comes to gangs."""
        if self._run_times and not self._have_run(np.array(list(rows), dtype=np.intp)).all():
            return False
        if self._exceed_a_budget(rows) or self._exceed_a_job_budget(rows):
            return False
        return not self._leave_a_part_short(rows, coming_to)

    def _have_run(self, rows: Rows) -> Mask:
        running = self._ledger.snapshot.running
        least = np.zeros(len(running.queues.values) + 1)
        for name, seconds in self._run_times.items():
            code = running.queues.values.get(name)
            if code is not None:
                least[code] = seconds
        started = running.started[rows]
        return has_run_for(started, least=least[running.queues.codes[rows]], now=self._now)

    def _used_up(self) -> list[DisruptionBudget]:
        evicted = self._ledger.evicted
        return [
            budget
            for budgets in self._budgets.values()
            for budget in budgets
            if len(self._covers(budget) & evicted) >= budget.allowed
        ]

    def _exceed_a_budget(self, rows: Collection[int]) -> bool:
        """A pod that terminates takes nothing from a budget any more."""
        running = self._ledger.snapshot.running
        going: dict[str, set[PodUid]] = {}
        for at in rows:
            pod = running.pods[at]
            if pod.namespace in self._budgets and not running.releasing[at]:
                going.setdefault(pod.namespace, set()).add(pod.uid)
        evicted = self._ledger.evicted
        for namespace, uids in going.items():
            for budget in self._budgets[namespace]:
                covered = self._covers(budget)
                taken = covered & uids
                if taken and len(taken | (covered & evicted)) > budget.allowed:
                    return True
        return False

    def _exceed_a_job_budget(self, rows: Collection[int]) -> bool:
        snapshot = self._ledger.snapshot
        running = snapshot.running
        leaving: Counter[GroupKey] = Counter()
        sample: dict[GroupKey, int] = {}
        for at in rows:
            if running.counted[at] and running.gangs[at] in self._with_job_budget:
                leaving[running.gangs[at]] += 1
                sample[running.gangs[at]] = at
        for key, count in leaving.items():
            gang = snapshot.gangs.get(key)
            if gang is not None:
                annotations = running.pods[sample[key]].annotations
                left = may_be_missing(gang, self._ledger.gang(gang), annotations)
                if left is not None and count > left:
                    return True
        return False

    def _leave_a_part_short(self, rows: Collection[int], coming_to: ComingTo) -> bool:
        """Whether a gang keeps members, and too few of a role or too few whole sub-groups."""
        snapshot, ledger = self._ledger.snapshot, self._ledger
        running = snapshot.running
        for key in {running.gangs[at] for at in rows} & self._of_gangs_in_parts.keys():
            there = self._of_gangs_in_parts[key]
            staying = {at for at in there if running.pods[at].uid not in ledger.evicted}
            leaving = staying.intersection(rows)
            parts = [running.parts[at] for at in leaving if running.counted[at]]
            gang, come = snapshot.gangs[key], coming_to(key)
            if leaving != staying and not spares(gang, ledger.gang(gang), parts, coming=come):
                return True
        return False

    @cached_property
    def _of_gangs_in_parts(self) -> dict[GroupKey, list[int]]:
        """The running members of gangs whose minimum is one of roles or sub-groups as well."""
        running, gangs = self._ledger.snapshot.running, self._ledger.snapshot.gangs
        found: dict[GroupKey, list[int]] = {
            key: []
            for key in {kind.gang for kind in running.kinds.values}
            if (gang := gangs.get(key)) and (gang.role_minimums or gang.sub_groups)
        }
        for at, key in enumerate(running.gangs):
            if key in found and not running.releasing[at]:
                found[key].append(at)
        return found

    @cached_property
    def _with_job_budget(self) -> frozenset[GroupKey]:
        """Gangs that say how many of their members may be missing, themselves or by their pods."""
        snapshot = self._ledger.snapshot
        running = snapshot.running
        said = {key for key, gang in snapshot.gangs.items() if has_budget(gang.annotations)}
        for pod, key in zip(running.pods, running.gangs, strict=True):
            if pod.annotations and has_budget(pod.annotations):
                said.add(key)
        return frozenset(said)

    @cached_property
    def _budgets(self) -> dict[str, Sequence[DisruptionBudget]]:
        found: dict[str, list[DisruptionBudget]] = {}
        for budget in self._ledger.snapshot.budgets:
            found.setdefault(budget.namespace, []).append(budget)
        return dict(found)

    def _covers(self, budget: DisruptionBudget) -> frozenset[PodUid]:
        """The running pods whose evictions take from ``budget``."""
        known = self._covered.get(id(budget))
        if known is None:
            running = self._ledger.snapshot.running
            mine = zip(running.pods, running.releasing.tolist(), strict=True)
            known = frozenset(pod.uid for pod, gone in mine if not gone and budget.covers(pod))
            self._covered[id(budget)] = known
        return known
