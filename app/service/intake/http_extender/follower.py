"""Asks the HTTP extender whatever the planner is to know, and hands it the answers.

It is asked in rounds: when groups wait that it was not asked about, and again while they wait. No
cycle and no call of kube-scheduler waits for an answer; a group that lacks some is refused until
they are there. A server that fails is asked again after pauses that grow; where it is ignorable it
is passed over, and both are told.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw

from app.cache.cluster import ClusterCache
from app.core.placement.statics import ShapeCache
from app.model.gang import Gang, Task
from app.model.http_extender import (
    NOT_ASKED,
    Answered,
    HttpExtenderConf,
    HttpExtenderFacts,
    Subject,
    Verb,
)
from app.model.ids import GroupKey, NodeName
from app.model.reason import Cause, Refusal
from app.service.activity import Activity
from app.service.configuration import Configuration
from app.service.intake.http_extender.asking import AGAIN_NO_S, AGAIN_S, Asking
from app.service.intake.http_extender.calling import Calls
from app.service.intake.http_extender.groups import Ask, AskedGroups
from app.service.intake.http_extender.nodes import AGAIN_FULL_S, AskedNodes, IdleNodes
from app.service.intake.http_extender.telling import Bodies
from app.service.intake.http_extender.victims import AskedVictims
from app.service.ports import Clock, HttpExtender, HttpExtenderError
from app.wire import http_extender as wire

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0
AT_ONCE: Final = 16
"""Calls under way at a time, as in Volcano."""
MOST_SUBJECTS: Final = 2_000
"""Of more, those asked about longest ago are forgotten, and asked about again in their turn.

So many are known at most, in a round as well; a round forgets half of them at most.
"""
ROUND_S: Final = 10.0
"""After so long no further group of a round is asked about nodes for.

The next round begins at once: with those that were never asked about, which may be new, the highest
priority first, and then with those that were asked about longest ago.
"""
CHUNKS: Final = 8
"""After so many times :data:`AT_ONCE` nodes another group has its turn."""
_PIECE: Final = 4
"""Groups looked at between two turns of the event loop."""
_NODES_LACK: Final = frozenset(
    {
        Cause.NOT_ENOUGH_RESOURCES,
        Cause.NO_NODE_FITS,
        Cause.NODE_GROUP,
        Cause.NODE_LOAD,
        Cause.NUMA,
        Cause.DEVICES,
        Cause.VOLUMES,
        Cause.DEVICE_CLAIMS,
        Cause.HTTP_EXTENDER,
        Cause.VETOED,
        Cause.COLLECTING,
        Cause.NO_DOMAIN,
        Cause.TOPOLOGY_AFFINITY,
    }
)
"""Causes that answers about more nodes may take away."""


class HttpExtenderFollower:
    """One task, :meth:`run`; ``told`` are told that there are answers that were not there.

    ``refusals`` tells why each group waits.
    """

    def __init__(
        self,
        cache: ClusterCache,
        *,
        server: HttpExtender,
        configuration: Configuration,
        activity: Activity,
        victims: AskedVictims,
        refusals: Callable[[], Mapping[GroupKey, Refusal]],
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._configuration = configuration
        self._activity = activity
        self._clock = clock
        self._refusals = refusals
        self._calls = Calls(server, clock=clock)
        self._asking = Asking(self._calls, clock=clock)
        self._bodies = Bodies(cache)
        self._groups = AskedGroups(cache, self._asking, self._bodies, victims)
        self._nodes: dict[Subject, AskedNodes] = {}
        self._had_turn: dict[Subject, float] = {}
        """When those were forgotten for others to have their turn."""
        self._shapes = ShapeCache()
        self._cycles = 0
        self._kept_up_at = 0.0
        self._news = asyncio.Event()
        self._conf: HttpExtenderConf | None = None
        self._problem = ""
        self.told: list[Callable[[], None]] = []
        victims.told.append(self._news.set)

    async def run(self) -> None:
        """Follow for ever; cancel to stop."""
        while True:
            self._news.clear()
            conf = self._configuration.http_extender
            if conf != self._conf:
                self._begin_anew(conf)
            if conf is not None and self._activity.active:
                await self._attempt(conf)
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._news.wait()
            except TimeoutError:
                continue

    def after_cycle(self, _changed: Collection[GroupKey]) -> None:
        """Groups may wait by now that were not asked about."""
        self._cycles += 1
        self._news.set()

    def notices(self) -> tuple[str, ...]:
        """What an operator should know."""
        conf = self._conf
        if conf is None:
            return ()
        follows = "it is passed over" if conf.ignorable else "groups wait for it"
        return tuple(
            f"the HTTP extender does not answer {conf.address(verb)}: {failing.why}; {follows}"
            for verb, failing in sorted(self._calls.failing.items())
            if conf.asks(verb)
        )

    def _begin_anew(self, conf: HttpExtenderConf | None) -> None:
        self._conf = conf
        self._calls.begin_anew()
        self._nodes.clear()
        self._had_turn.clear()
        self._groups.begin_anew()
        self._problem = ""
        self._asking.changed = self._cache.http_extender is not NOT_ASKED
        self._publish()

    # --- a round ---------------------------------------------------------------------------------

    async def _attempt(self, conf: HttpExtenderConf) -> None:
        """A round; one that fails in an unexpected way is followed by another."""
        try:
            await self._round(conf)
        except Exception:
            log.exception("the HTTP extender was not asked")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _round(self, conf: HttpExtenderConf) -> None:
        pending = self._cache.registry.refresh().pending
        self._forget(pending)
        self._bodies.begin_anew()
        pressing, groups = self._groups.pressing(conf, pending), self._groups.due(conf, pending)
        subjects = await self._due_subjects(conf, list(pending.values()))
        if not (pressing or groups or subjects) or not await self._session(conf, Verb.OPEN):
            return
        await self._in_chunks(pressing)
        for start in range(0, len(groups), AT_ONCE):
            await self._in_chunks(groups[start : start + AT_ONCE])
            await self._in_chunks(self._groups.pressing(conf, pending))
        ends = self._clock() + ROUND_S
        for each in subjects:
            if self._clock() >= ends:
                self._news.set()
                break
            await self._ask_nodes(conf, each)
        await self._session(conf, Verb.CLOSE)

    def _forget(self, pending: Mapping[GroupKey, Gang]) -> None:
        """Groups that do not wait any more are not asked about."""
        self._groups.forget(pending, queues=self._cache.queues)
        for subject in [each for each in self._nodes if each.gang not in pending]:
            del self._nodes[subject]
        for subject in [each for each in self._had_turn if each.gang not in pending]:
            del self._had_turn[subject]

    async def _keep_up(self, conf: HttpExtenderConf) -> None:
        """Renew what is due of victims and queues, and the oldest answers about groups.

        A round may take longer than answers count.
        """
        if self._clock() - self._kept_up_at < LOOK_EVERY_S:
            return
        self._kept_up_at = self._clock()
        pending = self._cache.registry.refresh().pending
        due = self._groups.due(conf, pending)[:AT_ONCE]
        await self._in_chunks([*self._groups.pressing(conf, pending), *due])

    def _admit(self, new: list[tuple[Subject, Gang, Task]]) -> None:
        """Make room for these, if need be: they come by turns."""
        room = MOST_SUBJECTS - len(self._nodes)
        if len(new) > room:
            had = self._had_turn
            new.sort(key=lambda each: (had.get(each[0], 0.0), -each[1].priority, *each[1].age))
            until = self._clock() - AGAIN_NO_S
            old = [subject for subject, each in self._nodes.items() if each.asked_at <= until]
            old.sort(key=lambda subject: self._nodes[subject].asked_at)
            for subject in old[: min(len(new) - room, MOST_SUBJECTS // 2)]:
                del self._nodes[subject]
                had[subject] = self._clock()
            room = MOST_SUBJECTS - len(self._nodes)
        for subject, gang, task in new[:room]:
            self._nodes[subject] = AskedNodes(gang, task)

    async def _due_subjects(
        self, conf: HttpExtenderConf, gangs: Iterable[Gang]
    ) -> list[AskedNodes]:
        """Those to ask about, in the order in which that is done."""
        if not (conf.asks(Verb.PREDICATE) or conf.asks(Verb.PRIORITIZE)):
            return []
        found: list[AskedNodes] = []
        new: dict[Subject, tuple[Subject, Gang, Task]] = {}
        for gang in gangs:
            for task in {id(task.shape): task for task in gang.waiting}.values():
                subject = Subject.of(gang.key, task.shape)
                if (known := self._nodes.get(subject)) is not None:
                    known.renew(gang, task)
                elif conf.minds(task.shape):
                    new[subject] = (subject, gang, task)
        self._admit(list(new.values()))
        room, refusals = self._room(), self._refusals()
        for number, asked in enumerate(list(self._nodes.values()), start=1):
            if conf.asks(Verb.PREDICATE):
                why = refusals.get(asked.gang.key)
                lacks = why is not None and why.cause in _NODES_LACK
                asked.widen(room, now=self._clock(), cycle=self._cycles, lacks_nodes=lacks)
            if self._wanted(conf, asked, room) or self._scores_due(conf, asked, room):
                found.append(asked)
            if number % _PIECE == 0:
                await asyncio.sleep(0)
        return sorted(found, key=lambda a: (a.asked_at, -a.gang.priority, *a.gang.age))

    def _room(self) -> IdleNodes:
        usage = self._cache.node_usage
        used, _ = usage.sorted_used()
        table = usage.table()
        facts = self._shapes.facts(table)
        return IdleNodes(table, table.allocatable - used, facts, self._configuration.predicates)

    def _wanted(self, conf: HttpExtenderConf, asked: AskedNodes, room: IdleNodes) -> Sequence[int]:
        if not conf.asks(Verb.PREDICATE):
            return ()
        return asked.wanted(room, now=self._clock(), also_full=self._configuration.evicts)

    def _scores_due(self, conf: HttpExtenderConf, asked: AskedNodes, room: IdleNodes) -> bool:
        if not conf.asks(Verb.PRIORITIZE):
            return False
        if self._asking.is_due(Verb.PRIORITIZE, asked.scores):
            return True
        names = self._to_score(conf, asked, room)
        return len(names) > asked.scored and not self._asking.pauses(Verb.PRIORITIZE)

    def _to_score(
        self, conf: HttpExtenderConf, asked: AskedNodes, room: IdleNodes
    ) -> Sequence[NodeName]:
        all_of = None if conf.asks(Verb.PREDICATE) else room
        return asked.to_score(now=self._clock(), all_of=all_of)

    # --- questions -------------------------------------------------------------------------------

    async def _session(self, conf: HttpExtenderConf, verb: Verb) -> bool:
        """Tell that a round begins or ends; returns whether it may go on."""
        if not conf.asks(verb):
            return True
        body = await self._bodies.session() if verb is Verb.OPEN else b"{}"
        problem = ""
        try:
            await self._calls.ask(conf, verb, body, wire.read_nothing)
        except HttpExtenderError as error:
            problem = "" if conf.ignorable or verb is Verb.CLOSE else str(error)
        if problem != self._problem:
            self._problem, self._asking.changed = problem, True
            self._publish()
        return not problem

    async def _ask_nodes(self, conf: HttpExtenderConf, asked: AskedNodes) -> None:
        member = self._cache.members.get(asked.task.uid)
        if member is None:
            return
        asked.asked_at = self._clock()
        manifest = await self._calls.manifest_of(member.pod.namespace, member.pod.name)
        asked.body = Raw(wire.encode(self._bodies.task(member.pod, manifest=manifest)))
        room = self._room()
        for _ in range(CHUNKS):
            await self._keep_up(conf)
            rows = self._wanted(conf, asked, room)
            if not rows:
                break
            some = rows if self._asking.pauses(Verb.PREDICATE) else rows[:AT_ONCE]
            await _together(self._ask_node(conf, asked, row, room) for row in some)
            self._publish()
        else:
            self._news.set()
        if self._scores_due(conf, asked, room):
            await self._ask_scores(conf, asked, self._to_score(conf, asked, room))

    async def _ask_node(
        self, conf: HttpExtenderConf, asked: AskedNodes, row: int, room: IdleNodes
    ) -> None:
        name = room.table.nodes[row].name
        if name not in self._cache.node_usage.nodes:
            asked.note(row, Answered(None, self._clock()), due=self._clock() + AGAIN_S)
            return
        body = self._bodies.predicate(asked.body, name)
        verb, old = Verb.PREDICATE, asked.answers.get(name)
        found = await self._asking.ask(conf, verb, body, wire.read_refusal, passed="", old=old)
        if found.problem:
            due = self._calls.pauses_until(verb)
        elif not room.fits(asked.task)[row]:
            due = found.at + AGAIN_FULL_S
        else:
            due = found.at + (AGAIN_NO_S if found.value else AGAIN_S)
        self._asking.changed |= asked.note(row, found, due=due)

    async def _ask_scores(
        self, conf: HttpExtenderConf, asked: AskedNodes, names: Sequence[NodeName]
    ) -> None:
        body = await self._bodies.prioritize(asked.body, names)
        verb, old = Verb.PRIORITIZE, asked.scores
        passed: Mapping[NodeName, float] = {}
        found = await self._asking.ask(conf, verb, body, wire.read_scores, passed=passed, old=old)
        asked.scores, asked.scored = found, len(names)
        self._asking.changed |= found.differs_from(old)
        self._publish()

    # --- answers ---------------------------------------------------------------------------------

    async def _in_chunks(self, questions: Sequence[Ask]) -> None:
        for start in range(0, len(questions), AT_ONCE):
            await _together(ask() for ask in questions[start : start + AT_ONCE])
            self._publish()

    def _publish(self) -> None:
        """Hand the answers to the planner."""
        facts = HttpExtenderFacts(
            nodes={subject: each.told() for subject, each in self._nodes.items()},
            scores={s: each.scores for s, each in self._nodes.items() if each.scores is not None},
            enqueueable=dict(self._groups.votes),
            ready=dict(self._groups.ready),
            overused=dict(self._groups.overused),
            victims=dict(self._groups.spared),
            problem=self._problem,
        )
        self._cache.http_extender = facts if self._conf is not None else NOT_ASKED
        if self._asking.changed:
            self._asking.changed = False
            self._cache.signals.note_dirty()
            self._cache.registry.look_again()
            for tell in self.told:
                tell()


async def _together(questions: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Ask all of them; the event loop has a turn after each that is sent."""
    async with asyncio.TaskGroup() as group:
        for each in questions:
            group.create_task(each)
            await asyncio.sleep(0)
