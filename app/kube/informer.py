"""One thread per kind: list, then watch from there, for ever.

::

              ┌───────── 410 Gone ─────────┐
              v                            │
    start → list ── complete ──────────→ watch ──┐ ends by its time, or breaks off:
              ^ │                          ^     │ again from the last version seen
              └─┘ error: back off          └─────┘ (after an error: back off)

Bytes are read, split and decoded in the thread; what leaves it are batches of events (see
`app.kube.stream`). Invariants: batches are handed over in the server's order; the version to
resume from moves only with a line that was handed over; nothing but `stop` ends the thread, least
of all an object that cannot be decoded. Pauses grow until the watch brings something: a listing
alone proves nothing to a server that forgets at once. A watch that stood and was silent for too
long is resumed without much of a pause: the silence was one.
"""

import logging
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from app.kube import errors
from app.kube.config import Connection
from app.kube.lines import LineSplitter
from app.kube.source import GATHER_S, Source
from app.kube.stream import (
    Added,
    Batch,
    Decoder,
    Deleted,
    Event,
    Line,
    LineType,
    ListDone,
    ListStarted,
    Malformed,
    Modified,
    Page,
    PageListed,
    Sink,
)
from app.telemetry import metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

SHORTEST_WATCH_S: Final = 1.0
"""A watch that ends sooner, and said nothing, counts as an error: else it would be a hot loop."""
SILENCE_S: Final = 120.0
REPORTED_LIMIT: Final = 1024
STOP_S: Final = 1.0
BACKOFF_BASE_S: Final = 0.2
BACKOFF_CAP_S: Final = 8.0
ABSENT_S: Final = 300.0
"""After how long an optional kind that was missing is asked for again."""
FORBIDDEN_S: Final = 15.0
"""And after how long one that the rights do not reach: an operator may be about to give them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(Generic[T]):
    """What to list and watch, and how to read it."""

    kind: str
    """Plural and short: the label of metrics and logs."""
    path: str
    decoder: Decoder[T]
    selectors: Mapping[str, str] = field(default_factory=dict)
    """``fieldSelector`` and ``labelSelector``."""
    page_limit: int = 500
    watch_s: tuple[float, float] = (240.0, 480.0)
    """Seconds, between these, after which the server is asked to end each watch.

    They differ, so that watches do not end together.
    """
    silence_s: float = SILENCE_S
    """Bookmarks come every minute: a silence of this length is a dead connection.

    Shorter where more is said; in a lull there is a watch every so often then, which is no harm.
    """
    gather_s: float = GATHER_S
    """How long an event may wait for others."""
    optional: bool = False
    """Whether the kind may not be served, or not be readable for us, and counts as empty then."""


class Backoff:
    """Waits double from ``BACKOFF_BASE_S`` to ``BACKOFF_CAP_S``, each less up to a half of that."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0

    def next(self) -> float:
        """One more failure: seconds to wait."""
        whole = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return whole * (0.5 + 0.5 * self._random())

    def reset(self) -> None:
        """Begin with the first delay again, as requests succeed again."""
        self._failures = 0


class Informer(Generic[T]):
    """Follows one kind and hands batches to ``sink``, in its own thread."""

    def __init__(
        self,
        watched: Watched[T],
        *,
        connection: Connection,
        sink: Sink[T],
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        stopping: threading.Event | None = None,
        troubled: Callable[[errors.KubeError | None], object] = lambda _error: None,
    ) -> None:
        """``troubled`` is told each failure, and None when a listing or a watch succeeds again.

        It is called in the informer's thread.
        """
        self._watched = watched
        self._sink = sink
        self._troubled = troubled
        self._clock = clock
        self._random = random
        self._source = Source(connection)
        self._backoff = Backoff(random)
        self._stopping = stopping or threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"informer-{watched.kind}", daemon=True
        )
        self._version = ""
        self._synced = False
        self._lulled = False
        self._absent = False
        self._served = False
        """Whether the API server has listed the kind since it last had none."""
        self._heard_at = clock()
        self._reported: set[str] = set()

    @property
    def kind(self) -> str:
        """Label of what is followed."""
        return self._watched.kind

    @property
    def synced(self) -> bool:
        """Whether a complete listing was handed over."""
        return self._synced

    @property
    def lag_s(self) -> float:
        """Seconds since the server was last heard: a page, an event or a bookmark.

        0 while there is nothing to hear of an optional kind.
        """
        return 0.0 if self._absent else self._clock() - self._heard_at

    def start(self) -> None:
        """Begin; returns at once."""
        metrics.INFORMER_SYNCED.labels(self.kind).set(0)
        metrics.INFORMER_LAG_SECONDS.labels(self.kind).set_function(lambda: self.lag_s)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, whatever it is waiting for."""
        self._stopping.set()
        self._source.cancel()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        if self._thread.is_alive():
            log.warning("informer does not end", extra={"kind": self.kind})
        metrics.INFORMER_LAG_SECONDS.remove(self.kind)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._version:
                    self._watch()
                else:
                    self._list()
            except errors.KubeError as error:
                self._recover(error)
            except Exception:  # a bug must not silence a kind for good
                if not self._stopping.is_set():
                    log.exception("informer failed", extra={"kind": self.kind})
                    self._pause("bug", 0.0)
        self._source.close()

    def _list(self) -> None:
        page = self._next_page("")
        batch: Batch[T] = [ListStarted()]
        while True:
            batch.append(PageListed(page.objects))
            batch += [self._report(malformed) for malformed in page.malformed]
            if not page.token:
                break
            self._sink(batch)
            batch = []
            page = self._next_page(page.token)
        if not page.version:
            raise errors.ServerError("the listing has no resourceVersion to watch from")
        batch.append(ListDone(page.version))
        self._sink(batch)
        self._troubled(None)
        self._version = page.version
        self._synced = self._served = True
        metrics.INFORMER_SYNCED.labels(self.kind).set(1)
        metrics.INFORMER_LISTS.labels(self.kind).inc()

    def _next_page(self, token: str) -> Page[T]:
        watched = self._watched
        params = {**watched.selectors, "limit": str(watched.page_limit)}
        if token:
            params["continue"] = token
        page = watched.decoder.page(
            self._source.read(watched.path, params, silence_s=watched.silence_s)
        )
        self._heard_at = self._clock()
        return page

    def _watch(self) -> None:
        began = self._clock()
        said_something = False
        splitter = LineSplitter()
        pieces = self._source.pieces(
            self._watched.path,
            self._watch_params(),
            silence_s=self._watched.silence_s,
            gather_s=self._watched.gather_s,
            begun=lambda: self._troubled(None),
        )
        with closing(pieces):
            for piece in pieces:
                lines = splitter.feed(piece)
                if lines and self._hand_over(lines):
                    said_something = True
        if not said_something and self._clock() - began < SHORTEST_WATCH_S:
            raise errors.Transport("the watch ended at once", sent=True)

    def _watch_params(self) -> dict[str, str]:
        shortest, longest = self._watched.watch_s
        return {
            **self._watched.selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(round(shortest + (longest - shortest) * self._random())),
        }

    def _hand_over(self, lines: list[bytes]) -> bool:
        """Whether ``lines`` said something: an object that can be read, or a version that moves."""
        batch: Batch[T] = []
        version, said_something = self._version, False
        error: errors.KubeError | None = None
        for raw in lines:
            line = self._decode(raw)
            metrics.INFORMER_EVENTS.labels(self.kind, line.change.value).inc()
            if line.status is not None:
                error = errors.from_status(line.status.code or 500, line.status)
                break
            if line.version:
                version = line.version
                self._heard_at = self._clock()
            if line.item is not None:
                said_something |= not isinstance(line.item, Malformed)
                batch.append(self._event(line.change, line.item))
        if batch:
            self._sink(batch)
        said_something |= version != self._version
        if said_something:
            self._lulled = False
            self._backoff.reset()
        self._version = version
        if error is not None:
            raise error
        return said_something

    def _decode(self, raw: bytes) -> Line[T]:
        try:
            return self._watched.decoder.line(raw)
        except Exception as error:  # not even an envelope: this line is lost, the next may be good
            return Line(LineType.MODIFIED, "", Malformed(key="", message=str(error)))

    def _event(self, change: LineType, item: T | Malformed) -> Event[T]:
        if isinstance(item, Malformed):
            return self._report(item)
        if change is LineType.ADDED:
            return Added(item)
        return Deleted(item) if change is LineType.DELETED else Modified(item)

    def _report(self, malformed: Malformed) -> Malformed:
        metrics.INFORMER_MALFORMED.labels(self.kind).inc()
        if malformed.key not in self._reported and len(self._reported) < REPORTED_LIMIT:
            self._reported.add(malformed.key)
            log.warning(
                "object cannot be decoded",
                extra={"kind": self.kind, "key": malformed.key, "error": malformed.message},
            )
        return malformed

    def _recover(self, error: errors.KubeError) -> None:
        if self._stopping.is_set():
            return
        # A right that is lost does not tell that the objects are gone.
        gone = errors.NotFound if self._served else errors.NotFound | errors.Forbidden
        if self._watched.optional and isinstance(error, gone):
            self._go_without(error)
            return
        self._troubled(error)
        cause = type(error).__name__.lower()
        silence = isinstance(error, errors.Silence)
        if not (silence and self._lulled):  # of a lull, one is enough to be told
            log.log(
                # The stock API server sends no bookmarks of a kind of which nothing is written.
                logging.INFO if silence else logging.WARNING,
                "informer interrupted",
                extra={"kind": self.kind, "cause": cause, "error": error.message},
            )
        self._lulled = silence
        if silence:
            self._backoff.reset()
        if isinstance(error, errors.Gone):
            self._version = ""
        self._pause(cause, error.retry_after_s or 0.0)

    def _go_without(self, error: errors.KubeError) -> None:
        """There are none, then; the cluster may serve the kind after an upgrade."""
        log.info("informer goes without", extra={"kind": self.kind, "error": error.message})
        self._version = ""
        self._absent, self._served = True, False
        self._sink([ListStarted(), ListDone("")])
        self._synced = True
        metrics.INFORMER_SYNCED.labels(self.kind).set(1)
        self._stopping.wait(FORBIDDEN_S if isinstance(error, errors.Forbidden) else ABSENT_S)
        self._heard_at, self._absent = self._clock(), False

    def _pause(self, cause: str, least_s: float) -> None:
        metrics.INFORMER_RESTARTS.labels(self.kind, cause).inc()
        self._stopping.wait(max(least_s, self._backoff.next()))
