"""Kinds as they are now, for commands that stay: each is listed once, and watched from then on.

An informer thread per kind (`app.kube.informer`) lists and watches, again where the API server has
forgotten the changes since (410) or is lost; what it brings is taken in inside the event loop. A
command that stays ends with code 0 when it is interrupted, by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from app.cli.cluster import Where, check_name, connection, served
from app.cli.endings import Code, CommandFailed
from app.kube import errors
from app.kube.config import Connection
from app.kube.decode import decoder
from app.kube.informer import Informer, Watched
from app.kube.stream import Added, Batch, Deleted, ListDone, ListStarted, Modified, PageListed
from app.main.signals import interruptible, until_signal
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, key_of

T = TypeVar("T")

_NO_TROUBLE: Final = (errors.Gone, errors.Silence)
"""What belongs to watching: the informer lists again, or watches again, at once."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[T]):
    """What became of one object; ``is_gone``: it was deleted, and this is its last state."""

    key: Key
    value: T
    is_gone: bool = False


class Followed(Generic[T]):
    """All objects of a kind, each as what ``read`` makes of it; where that is None, it is left out.

    ``read`` runs in the informer's thread.
    """

    def __init__(
        self,
        resource: Resource,
        read: Callable[[Object], T | None],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        self.selectors = {name: text for name, text in selectors.items() if text}
        self.items: dict[Key, T] = {}
        self.is_listed = False
        """Whether a whole listing has come."""
        self.trouble: errors.KubeError | None = None
        """Why nothing more comes at the moment."""
        self._read = read
        self._unnamed: set[Key] = set()
        """What was known when the present listing began, and was not named by it yet."""

    def decode(self, raw: msgspec.Raw) -> tuple[Key, T | None]:
        """One object of the stream; ValueError where it is none."""
        item = _decode(raw)
        item.setdefault("apiVersion", self.resource.api_version)
        item.setdefault("kind", self.resource.kind)
        (item.get("metadata") or {}).pop("managedFields", None)
        ordered = {**{name: item[name] for name in ("apiVersion", "kind")}, **item}
        return key_of(item), self._read(ordered)

    def take(self, batch: Batch[tuple[Key, T | None]]) -> list[ObjectChange[T]]:
        """Take in what an informer brings; what has changed by it, in its order.

        A listing changes what differs from what was known, and what it does not name is gone.
        """
        changes: list[ObjectChange[T]] = []
        for event in batch:
            match event:
                case ListStarted():
                    self._unnamed = set(self.items)
                case PageListed(objects):
                    changes += self._listed(objects)
                case ListDone():
                    self.is_listed = True
                    gone, self._unnamed = self._unnamed, set()
                    changes += [
                        ObjectChange(key, self.items.pop(key), is_gone=True) for key in gone
                    ]
                case Added((key, value)) | Modified((key, value)):
                    changes += self._put(key, value)
                case Deleted((key, value)):
                    last = self.items.pop(key, None) if value is None else value
                    self.items.pop(key, None)
                    changes += [] if last is None else [ObjectChange(key, last, is_gone=True)]
        return changes

    def _listed(self, objects: Iterable[tuple[Key, T | None]]) -> Iterator[ObjectChange[T]]:
        for key, value in objects:
            self._unnamed.discard(key)
            if value != self.items.get(key):
                yield from self._put(key, value)

    def _put(self, key: Key, value: T | None) -> Iterator[ObjectChange[T]]:
        if value is not None:
            self.items[key] = value
            yield ObjectChange(key, value)
        elif (last := self.items.pop(key, None)) is not None:
            yield ObjectChange(key, last, is_gone=True)


class LiveObjects:
    """What is followed, and ``news``: set whenever something of it has changed."""

    def __init__(self, followed: Sequence[Followed[Any]]) -> None:
        self.followed = followed
        self.news = asyncio.Event()
        self.told: Callable[[ObjectChange[Any]], object] = lambda _change: None
        """Called with each change, in the event loop."""

    @property
    def trouble(self) -> errors.KubeError | None:
        """Why one of them does not come any more, where it came before."""
        return next(
            (each.trouble for each in self.followed if each.trouble and each.is_listed), None
        )

    async def listed(self) -> None:
        """Return when each kind has been listed, or refused."""
        while any(not (each.is_listed or each.trouble) for each in self.followed):
            self.news.clear()
            await self.news.wait()

    def require(self, followed: Followed[Any]) -> None:
        """Raise why the kind could not be listed: KubeError, or CommandFailed."""
        if followed.is_listed or followed.trouble is None:
            return
        if isinstance(followed.trouble, errors.Unreadable):
            raise CommandFailed(
                Code.UNREACHABLE, f"no API server answers: {followed.trouble.message}"
            )
        with served(followed.resource):
            raise followed.trouble

    def take(self, followed: Followed[Any], batch: Batch[Any]) -> None:
        """Take in what the informer of ``followed`` brings."""
        for change in followed.take(batch):
            self.told(change)
        self.news.set()

    def note(self, followed: Followed[Any], trouble: errors.KubeError | None) -> None:
        """Take in that the informer fails, or (None) works again."""
        if not isinstance(trouble, _NO_TROUBLE) and followed.trouble is not trouble:
            followed.trouble = trouble
            self.news.set()


def follow(
    where: Where, followed: Sequence[Followed[Any]], use: Callable[[LiveObjects], Awaitable[None]]
) -> None:
    """Follow the kinds while ``use`` runs; it is cancelled by an interrupt, which is no failure."""
    for each in followed:
        if each.namespace:
            check_name("namespace", each.namespace)
    to = connection(where)

    async def live_until_signal() -> None:
        async with until_signal(), _live(to, followed) as live:
            await use(live)

    with interruptible():
        asyncio.run(live_until_signal())


@asynccontextmanager
async def _live(to: Connection, followed: Sequence[Followed[Any]]) -> AsyncIterator[LiveObjects]:
    loop, live = asyncio.get_running_loop(), LiveObjects(followed)

    def soon(call: Callable[[Followed[Any], Any], None], each: Followed[Any], what: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: the command has ended
            loop.call_soon_threadsafe(call, each, what)

    informers = [
        Informer(
            Watched(
                kind=each.resource.plural,
                path=each.resource.path(namespace=each.namespace),
                decoder=decoder(each.decode),
                selectors=each.selectors,
            ),
            connection=to,
            sink=partial(soon, live.take, each),
            troubled=partial(soon, live.note, each),
        )
        for each in followed
    ]
    with _quiet():
        for informer in informers:
            informer.start()
        try:
            yield live
        finally:
            await asyncio.gather(*(asyncio.to_thread(each.stop) for each in informers))


@contextmanager
def _quiet() -> Iterator[None]:
    """The command itself tells what goes wrong; lines of a log would stand between its own."""
    log = logging.getLogger("app.kube")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
