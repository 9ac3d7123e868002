"""ETAs of gangs that wait, asked of the planner: forecasts are kept for a few seconds.

A forecast is one question among those of :mod:`app.service.cycle.simulations`: it waits for its
turn, runs in slices, and is stopped after :data:`MOST_S` seconds. Nothing is decided by it, and
nothing is written.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from app.cache.cluster import ClusterCache
from app.core.eta.afterwards import without_pods_of_nodes
from app.core.eta.causes import EtaChange, Foretold, change_of
from app.core.eta.course import Expected
from app.core.eta.forecast import Eta, Forecast, forecast_steps
from app.core.eta.run_times import RunTime
from app.core.policy import Policies
from app.core.simulation import Outcome, changed
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, QueueName
from app.model.snapshot import MemberPlace, NodeTable, Snapshot
from app.service.cycle.eta.answers import Answers, Errors
from app.service.cycle.eta.run_times import RunTimes
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.cycle.simulations import Answer, Question, Simulations
from app.service.cycle.slices import in_slices

MOST_S: Final = 5.0
"""No further cycle is planned for a forecast after so long."""
FORETOLD_S: Final = 2.0
"""No further cycle is planned after so long for groups of a question what would be."""
FRESH_S: Final = 3.0
"""A forecast is told again for so long."""
MOST_KEPT: Final = 1_024
"""Gangs whose last answer is remembered."""
_AT_ONCE: Final = 64
"""Groups looked at between two turns of the event loop."""


@dataclass(frozen=True, slots=True, eq=False)
class EtaAnswer:
    """The ETA of a gang at ``now`` (seconds since the epoch), by so many ``courses``.

    ``change`` is the last one of more than a tenth since the gang was first asked about, None:
    there was none. ``errors`` are those of earlier answers for the queue, None: there are none.
    """

    eta: Eta
    now: float
    courses: int
    queue: QueueName
    change: EtaChange | None
    errors: Errors | None


@dataclass(slots=True, eq=False)
class Etas:
    """Answers for one gang, or for all that wait."""

    cache: ClusterCache
    simulations: Simulations
    run_times: RunTimes
    answers: Answers = field(default_factory=Answers)
    _all: tuple[float, Mapping[GroupKey, EtaAnswer]] | None = None
    _single: dict[GroupKey, tuple[float, EtaAnswer]] = field(default_factory=dict)
    _said: dict[GroupKey, tuple[Foretold, EtaChange | None]] = field(default_factory=dict)
    _nodes: tuple[NodeTable, frozenset[NodeName]] | None = None

    async def of(self, key: GroupKey) -> EtaAnswer | None:
        """The ETA of the gang; None: it is none that waits for a place. Raises `TooMany`."""
        if key not in self.cache.groups:
            return None
        found = self._kept(key)
        if found is None:
            async with self.simulations.turn():
                found = self._kept(key)
                if found is None:
                    told = await self._ask([key])
                    found = told.get(key)
                    if found is not None:
                        self._forget_old()
                        self._single[key] = (found.now, found)
        return found

    async def all(self) -> Mapping[GroupKey, EtaAnswer]:
        """The ETAs of all gangs that wait, by one forecast for all. Raises `TooMany`."""
        if self._all is None or not self._is_fresh(self._all[0]):
            async with self.simulations.turn():
                if self._all is None or not self._is_fresh(self._all[0]):
                    told = await self._ask(None)
                    self._all = (self.simulations.clock(), told)
        return self._all[1]

    async def simulate(self, question: Question) -> tuple[Answer, Mapping[GroupKey, EtaAnswer]]:
        """What would happen, and the ETAs of the groups asked about that would wait.

        Raises `UnknownResource`, `TooMany`, and `UnknownNode` for a node that is not there.
        """
        async with self.simulations.turn():
            answer = await self.simulations.answer(question)
            fates = answer.after.fates
            wanted = [
                key
                for key in (*answer.asked, *answer.displaced)
                if key in fates and fates[key].outcome is Outcome.WAITS
            ]
            return answer, await self._foretell(question, answer, wanted) if wanted else {}

    async def _foretell(
        self, question: Question, answer: Answer, wanted: Collection[GroupKey]
    ) -> dict[GroupKey, EtaAnswer]:
        """The ETAs of groups in the cluster of the question; no later answer is compared."""
        known = await self._expected()
        other = await self.simulations.otherwise(question, running=True, before=answer.otherwise)
        now = self.simulations.clock()
        asked = {each.group.key: self.run_times.known(each.group) for each in other.asked}
        expected = replace(known, run_times={**known.run_times, **asked})
        cluster = without_pods_of_nodes(changed(other.snapshot, other.change), question.gone)
        found = await self._drive(
            cluster, other.policies, expected, now=now, wanted=wanted, most_s=FORETOLD_S
        )
        gangs, errors = cluster.gangs, self.answers.errors
        return {
            key: EtaAnswer(
                eta, now, found.courses, gangs[key].queue, None, errors(gangs[key].queue)
            )
            for key, eta in found.etas.items()
        }

    def gone(self, key: GroupKey) -> None:
        """There is no such gang any more."""
        self.answers.gone(key)
        for table in (self._said, self._single):
            table.pop(key, None)

    def _kept(self, key: GroupKey) -> EtaAnswer | None:
        if self._all is not None and self._is_fresh(self._all[0]) and key in self._all[1]:
            return self._all[1][key]
        at, found = self._single.get(key, (0.0, None))
        return found if found is not None and self._is_fresh(at) else None

    def _is_fresh(self, at: float) -> bool:
        return self.simulations.clock() - at < FRESH_S

    def _forget_old(self) -> None:
        self._single = {k: each for k, each in self._single.items() if self._is_fresh(each[0])}

    async def _ask(self, wanted: Collection[GroupKey] | None) -> dict[GroupKey, EtaAnswer]:
        simulations = self.simulations
        expected = await self._expected()
        now = simulations.clock()
        token = simulations.input.token(now, running=True)
        found = await self._drive(
            token.snapshot, token.policies, expected, now=now, wanted=wanted, most_s=MOST_S
        )
        nodes = self._open_nodes(token.snapshot.table)
        told: dict[GroupKey, EtaAnswer] = {}
        for number, (key, eta) in enumerate(found.etas.items()):
            gang = token.snapshot.gangs[key]
            change = self._change(gang, eta, found, policies=token.policies, nodes=nodes)
            self.answers.note(gang.queue, eta, asked=now)
            errors = self.answers.errors(gang.queue)
            told[key] = EtaAnswer(eta, now, found.courses, gang.queue, change, errors)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        return told

    async def _drive(
        self,
        snapshot: Snapshot,
        policies: Policies,
        expected: Expected,
        *,
        now: float,
        wanted: Collection[GroupKey] | None,
        most_s: float,
    ) -> Forecast:
        """A forecast in slices; after ``most_s`` seconds no further cycle is planned for it."""
        simulations = self.simulations
        steps = forecast_steps(
            snapshot,
            policies,
            expected,
            now=now,
            wanted=wanted,
            stops=lambda: simulations.clock() - now > most_s,
        )
        return await in_slices(steps, clock=simulations.clock, slice_s=simulations.limits.slice_s)

    async def _expected(self) -> Expected:
        run_times: dict[GroupKey, RunTime] = {}
        began: dict[GroupKey, float] = {}
        slots: dict[GroupKey, Collection[MemberPlace]] = {}
        vector = self.cache.node_usage.vector
        for number, group in enumerate(list(self.cache.groups.values())):
            run_times[group.key] = self.run_times.known(group)
            since = self.run_times.began(group.key)
            if since is not None:
                began[group.key] = since
            if group.slots:
                slots[group.key] = [
                    MemberPlace(slot.node, slot.role, vector(slot.request), slot.sub_group)
                    for slot in group.slots.values()
                ]
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        return Expected(run_times, began, slots)

    def _open_nodes(self, table: NodeTable) -> frozenset[NodeName]:
        if self._nodes is None or self._nodes[0] is not table:
            names = frozenset(n.name for n in table.nodes if n.ready and not n.unschedulable)
            if self._nodes is not None and self._nodes[1] == names:
                names = self._nodes[1]
            self._nodes = (table, names)
        return self._nodes[1]

    def _change(
        self,
        gang: Gang,
        eta: Eta,
        found: Forecast,
        *,
        policies: object,
        nodes: frozenset[NodeName],
    ) -> EtaChange | None:
        """What is different from what was said of the gang before."""
        if eta.p50 is None:
            return None
        basis = Foretold(
            asked=found.now,
            p50=eta.p50,
            asks=(gang.uid, gang.queue, gang.priority, gang.min_member, gang.request.tobytes()),
            policies=policies,
            nodes=nodes,
            ends={key: found.ends[key] for key in eta.after if key in found.ends},
            ahead=frozenset(eta.ahead),
        )
        before, change = self._said.get(gang.key, (None, None))
        if before is not None:
            new = change_of(before, basis, ends=found.ends, began=self.run_times.began)
            if new is None:
                return change
            change = new
        while len(self._said) >= MOST_KEPT and gang.key not in self._said:
            del self._said[next(iter(self._said))]
        self._said[gang.key] = (basis, change)
        return change


def etas_beside(cycle: PlanningCycle, simulations: Simulations) -> Etas:
    """ETAs that learn from what is seen after each ``cycle``."""
    run_times = RunTimes(cycle.cache, cycle.clock)
    etas = Etas(cycle.cache, simulations, run_times)
    run_times.started.append(etas.answers.started)
    run_times.gone.append(etas.gone)
    cycle.after.append(run_times.after_cycle)
    cycle.leadership.stood_by.append(run_times.stand_by)
    return etas
