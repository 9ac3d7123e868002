"""Readers of the view: those of the same rights share one, and it is made once for all of them.

Nothing is looked at while there are no readers. The first one begins a look, which all that come
meanwhile wait for; from one look to the next passes a second at least, and ten times as long as a
look takes. A while after the last reader has gone everything is let go.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from app.kit.shared import Shared
from app.model.ids import GroupKey
from app.service.cycle.slices import in_slices
from app.service.telling.view.audience import Audience, Readers
from app.service.telling.view.rows import Estimate, RowKey
from app.service.telling.view.state import Sources, State

EVERY_S: Final = 1.0
"""From one look to the next, at least."""
SHARE: Final = 10
"""From one look to the next passes so many times as long as a look takes."""
KEPT_S: Final = 30.0
"""How long a view is kept that is not read."""
VIEWERS: Final = 200
"""Readers that follow the view at a time, in all and those of one account."""
VIEWERS_OF_ACCOUNT: Final = 40
"""All service accounts of a namespace, which its owner makes at will, count as one."""
VIEWERS_OF_NAMESPACE: Final = 80
"""Readers that are told of the same namespace, whosever they are; operators are told of all."""
FOR_OPERATORS: Final = 20
"""Places among these that only readers may take that are told everything."""
AUDIENCES: Final = 200
"""Views of different rights that are kept at a time, and those that tell of one namespace."""
AUDIENCES_OF_NAMESPACE: Final = 50

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class TooManyViewers(RuntimeError):
    """One more reader is not served; ``of_tenant``: as this account or namespace has too many."""

    def __init__(self, text: str, *, of_tenant: bool) -> None:
        super().__init__(text)
        self.of_tenant = of_tenant


@dataclass(slots=True, eq=False)
class Views:
    """The views of one process; ``slice_s`` is how long a look may keep the event loop waiting."""

    sources: Sources
    slice_s: float
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process stops."""
    due: float = 0.0
    """When the next look is due (seconds since the epoch)."""
    _state: State | None = None
    _generation: int = 0
    _audiences: dict[Readers, Audience] = field(default_factory=dict)
    _viewers: Counter[str] = field(default_factory=Counter)
    _told_of: Counter[str] = field(default_factory=Counter)
    _look: Shared[None] = field(init=False)
    _letting_go: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self._look = Shared(self._look_again)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is followed, as there are no readers."""
        return self._state is None

    async def audience(self, readers: Readers) -> Audience:
        """The view of these readers, not older than a look; raises `TooManyViewers`."""
        while True:
            found = self._audiences.get(readers) or self._begun(readers)
            found.used_at = self.sources.clock()
            if found.generation and self.sources.clock() < self.due:
                return found
            await self._look.get()

    def _begun(self, readers: Readers) -> Audience:
        if len(self._audiences) >= AUDIENCES and readers is not None:
            why = f"{AUDIENCES} views of different rights are read already; ask again later"
            raise TooManyViewers(why, of_tenant=False)
        for namespace in sorted(readers or ()):
            told = sum(each is not None and namespace in each for each in self._audiences)
            if told >= AUDIENCES_OF_NAMESPACE:
                why = f"{told} views of different rights tell of namespace {namespace} already"
                raise TooManyViewers(why, of_tenant=True)
        found = self._audiences[readers] = Audience(readers)
        self._let_go_later()
        return found

    def estimate(self, key: GroupKey) -> Estimate | None:
        """When a job is expected to start, as far as the view tells that now."""
        return None if self._state is None else self._state.expected.estimate(key)

    @contextmanager
    def opened(self, user: str, readers: Readers) -> Iterator[None]:
        """A reader that follows a view for as long as this lasts; raises `TooManyViewers`."""
        most = VIEWERS if readers is None else VIEWERS - FOR_OPERATORS
        owner = user if readers is None else _owner_of(user)
        if self._viewers.total() >= most:
            raise TooManyViewers(f"{most} readers follow the view already", of_tenant=False)
        if self._viewers[owner] >= VIEWERS_OF_ACCOUNT:
            why = f"{VIEWERS_OF_ACCOUNT} readers of {owner} follow the view already"
            raise TooManyViewers(why, of_tenant=True)
        for namespace in sorted(readers or ()):
            if self._told_of[namespace] >= VIEWERS_OF_NAMESPACE:
                why = f"{VIEWERS_OF_NAMESPACE} readers follow namespace {namespace} already"
                raise TooManyViewers(why, of_tenant=True)
        counted = ((self._viewers, (owner,)), (self._told_of, readers or ()))
        for counter, keys in counted:
            counter.update(keys)
        try:
            yield
        finally:
            for counter, keys in counted:
                counter.subtract(keys)
                for key in keys:
                    if not counter[key]:
                        del counter[key]

    # --- looking ---------------------------------------------------------------------------------

    async def _look_again(self) -> None:
        try:
            await self._follow()
        except BaseException:
            self._let_all_go()  # what was heard of meanwhile may be lost
            raise

    async def _follow(self) -> None:
        clock = self.sources.clock
        began = clock()
        changed: set[RowKey] = set()
        if self._state is None or began >= self.due:
            self._state = self._state or State(self.sources)
            changed = await in_slices(self._state.steps(), clock=clock, slice_s=self.slice_s)
            self._generation += 1
        for audience in list(self._audiences.values()):
            steps = audience.steps(self._state, changed, generation=self._generation)
            await in_slices(steps, clock=clock, slice_s=self.slice_s)
        now = clock()
        if now >= self.due:
            self.due = now + max(EVERY_S, SHARE * (now - began))

    # --- letting go ------------------------------------------------------------------------------

    def _let_go_later(self) -> None:
        if self._letting_go is None:
            loop = asyncio.get_running_loop()
            self._letting_go = loop.call_later(KEPT_S, self._let_go)

    def _let_go(self) -> None:
        self._letting_go = None
        if self._look.is_asked:  # by readers that wait, however long it takes
            self._let_go_later()
            return
        old = self.sources.clock() - KEPT_S
        for readers, each in list(self._audiences.items()):
            if each.used_at <= old:
                del self._audiences[readers]
        if self._audiences:
            self._let_go_later()
        else:
            self._let_all_go()

    def _let_all_go(self) -> None:
        self._audiences.clear()
        self.due = 0.0
        if self._state is not None:
            self._state.close()
            self._state = None


def _owner_of(user: str) -> str:
    """The account, or the service accounts of the same namespace together."""
    home, apart, _ = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return f"{_SERVICE_ACCOUNT}{home}:*" if apart and user.startswith(_SERVICE_ACCOUNT) else user
