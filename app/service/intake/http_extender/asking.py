"""One question of the HTTP extender: when it is due, and what counts as its answer."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from app.model.http_extender import Answered, HttpExtenderConf, Verb
from app.service.intake.http_extender.calling import Calls
from app.service.ports import Clock, HttpExtenderError

AGAIN_S: Final = 20.0
"""An answer is asked for again after so long, while its group waits."""
AGAIN_NO_S: Final = 5.0
"""An answer that keeps the group from its places is asked for again sooner."""
_KEEPING: Final[Mapping[Verb, object]] = {
    Verb.ENQUEUEABLE: -1,
    Verb.READY: False,
    Verb.OVERUSED: True,
}
"""The answers that do."""

T = TypeVar("T")
K = TypeVar("K")


class Asking:
    """Asks, and notes whether an answer is another one than before."""

    def __init__(self, calls: Calls, *, clock: Clock) -> None:
        self.calls = calls
        self.clock = clock
        self.changed = False
        """Whether some answer is another one since this was last set to False."""

    def pauses(self, verb: Verb) -> bool:
        """Whether the server has just failed at the verb."""
        return bool(self.calls.pauses_until(verb))

    def is_due(self, verb: Verb, answer: Answered[T] | None) -> bool:
        """Whether to ask now, where ``answer`` is what is known."""
        if answer is None:
            return True
        if answer.problem:
            return not self.pauses(verb)
        keeps = answer.value == _KEEPING.get(verb)
        return self.clock() - answer.at >= (AGAIN_NO_S if keeps else AGAIN_S)

    async def ask(
        self,
        conf: HttpExtenderConf,
        verb: Verb,
        body: bytes,
        read: Callable[[bytes], T],
        *,
        passed: T,
        old: Answered[T] | None = None,
    ) -> Answered[T]:
        """The answer. Without one: ``passed`` where the server is ignorable, else the ``old``."""
        try:
            found = await self.calls.ask(conf, verb, body, read)
        except HttpExtenderError as error:
            now = self.clock()
            if conf.ignorable:
                return Answered(passed, now, str(error))
            if old is not None and old.fresh(now) is not None:
                return Answered(old.value, old.at, str(error))
            return Answered(None, now, str(error))
        return Answered(found, self.clock())

    def keep(self, answers: dict[K, Answered[T]], key: K, found: Answered[T]) -> None:
        """Take over an answer."""
        self.changed |= found.differs_from(answers.get(key))
        answers[key] = found
