"""What the HTTP extender says of groups and queues, and of the pods that are to go for groups."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from app.cache.cluster import ClusterCache
from app.model.gang import Gang
from app.model.http_extender import FRESH_S, Answered, HttpExtenderConf, Verb, VictimsAsked
from app.model.ids import GroupKey, PodUid, QueueName
from app.service.intake.http_extender.asking import Asking
from app.service.intake.http_extender.telling import Bodies
from app.service.intake.http_extender.victims import AskedVictims, Question
from app.wire import http_extender as wire

T = TypeVar("T")
Ask = Callable[[], Coroutine[Any, Any, None]]


class AskedGroups:
    """The answers by group, by queue, and by the group that pods are to go for."""

    def __init__(
        self, cache: ClusterCache, asking: Asking, bodies: Bodies, victims: AskedVictims
    ) -> None:
        self._cache = cache
        self._asking = asking
        self._bodies = bodies
        self._victims = victims
        self.votes: dict[GroupKey, Answered[int]] = {}
        self.ready: dict[GroupKey, Answered[bool]] = {}
        self.overused: dict[QueueName, Answered[bool]] = {}
        self.spared: dict[VictimsAsked, Mapping[PodUid, Answered[bool]]] = {}

    def begin_anew(self) -> None:
        """Forget all answers, and questions."""
        self.forget({}, queues=())

    def forget(self, pending: Mapping[GroupKey, Gang], *, queues: Iterable[QueueName]) -> None:
        """Forget what was answered of groups that do not wait any more, and of other queues."""
        for answers in (self.votes, self.ready):
            for key in [each for each in answers if each not in pending]:
                del answers[key]
        for of_victims in (self.spared, self._victims.open):
            for asked in [each for each in of_victims if each.gang not in pending]:
                del of_victims[asked]
        for name in self.overused.keys() - set(queues):
            del self.overused[name]

    def pressing(self, conf: HttpExtenderConf, pending: Mapping[GroupKey, Gang]) -> list[Ask]:
        """What is to be asked now before all else: of victims, and of queues."""
        victims = [self._of_victims(conf, key, asked) for key, asked in self._open_questions()]
        if not conf.asks(Verb.OVERUSED):
            return victims
        queues = {gang.queue for gang in pending.values()} & self._cache.queues.keys()
        is_due, known = self._asking.is_due, self.overused
        due = [name for name in sorted(queues) if is_due(Verb.OVERUSED, known.get(name))]
        return [*victims, *(self._of_queue(conf, name) for name in due)]

    def due(self, conf: HttpExtenderConf, pending: Mapping[GroupKey, Gang]) -> list[Ask]:
        """What is to be asked now of groups, the oldest answers first."""
        votes = [
            gang
            for gang in self._due(conf, Verb.ENQUEUEABLE, self.votes, pending)
            if not gang.inqueue and gang.min_request is not None
        ]
        ready = [g for g in self._due(conf, Verb.READY, self.ready, pending) if g.waiting]
        asked = [(_at(self.votes, gang), self._of_vote(conf, gang)) for gang in votes]
        asked += [(_at(self.ready, gang), self._of_ready(conf, gang)) for gang in ready]
        return [ask for _, ask in sorted(asked, key=lambda each: each[0])]

    def _open_questions(self) -> list[tuple[VictimsAsked, Question]]:
        pauses = self._asking.pauses
        found = [(k, asked) for k, asked in self._victims.open.items() if not pauses(asked.verb)]
        self._victims.open.clear()
        return found

    def _due(
        self,
        conf: HttpExtenderConf,
        verb: Verb,
        answers: Mapping[GroupKey, Answered[T]],
        pending: Mapping[GroupKey, Gang],
    ) -> list[Gang]:
        if not conf.asks(verb):
            return []
        is_due = self._asking.is_due
        return [gang for gang in pending.values() if is_due(verb, answers.get(gang.key))]

    def _of_victims(self, conf: HttpExtenderConf, key: VictimsAsked, asked: Question) -> Ask:
        async def ask() -> None:
            uids = frozenset(asked.victims)

            def read(answer: bytes) -> frozenset[PodUid]:
                named = wire.read_victims(answer)
                return uids if named is None else named & uids

            body = self._bodies.victims(asked.evictor, asked.victims)
            passed = uids if conf.ignorable else frozenset[PodUid]()
            found = await self._asking.ask(conf, asked.verb, body, read, passed=passed)
            self._note_victims(key, asked, found)

        return ask

    def _note_victims(
        self, key: VictimsAsked, asked: Question, found: Answered[frozenset[PodUid]]
    ) -> None:
        now = self._asking.clock()
        # Without an answer they stay until the server may be asked again.
        until = self._asking.calls.pauses_until(asked.verb)
        at = now if found.value is not None else until - FRESH_S
        let_go = found.value or frozenset()
        known = {
            uid: old
            for uid, old in self.spared.get(key, {}).items()
            if old.fresh(now) is not None and uid in self._cache.members
        }
        self.spared[key] = known | {
            uid: Answered(uid in let_go, at, found.problem) for uid in asked.victims
        }
        self._asking.changed = True

    def _of_queue(self, conf: HttpExtenderConf, name: QueueName) -> Ask:
        async def ask() -> None:
            if name in self._cache.queues:
                body, old = wire.encode({"queue": self._bodies.queue(name)}), self.overused
                found = await self._asking.ask(
                    conf, Verb.OVERUSED, body, wire.read_overused, passed=False, old=old.get(name)
                )
                self._asking.keep(self.overused, name, found)

        return ask

    def _of_vote(self, conf: HttpExtenderConf, gang: Gang) -> Ask:
        async def ask() -> None:
            body, old = wire.encode({"job": self._bodies.job(gang)}), self.votes.get(gang.key)
            found = await self._asking.ask(
                conf, Verb.ENQUEUEABLE, body, wire.read_vote, passed=1, old=old
            )
            self._asking.keep(self.votes, gang.key, found)

        return ask

    def _of_ready(self, conf: HttpExtenderConf, gang: Gang) -> Ask:
        async def ask() -> None:
            body = wire.encode({"job": self._bodies.job(gang, all_placed=True)})
            old = self.ready.get(gang.key)
            found = await self._asking.ask(
                conf, Verb.READY, body, wire.read_ready, passed=True, old=old
            )
            self._asking.keep(self.ready, gang.key, found)

        return ask


def _at(answers: Mapping[GroupKey, Answered[T]], gang: Gang) -> float:
    """When the answer was given; 0: there is none."""
    known = answers.get(gang.key)
    return 0.0 if known is None else known.at
