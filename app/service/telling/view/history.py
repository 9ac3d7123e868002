"""The last hour: what queues held and asked, and which jobs started and ended.

It is kept whether there are readers or not, so that the first one has an hour to look at: every so
often the figures of queues, and at each planning cycle the jobs that came to another stage.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.cache.gangs.groups import Group
from app.cache.gangs.trail import job_of
from app.core.figures import QueueFigures
from app.model.ids import GroupKey, QueueName
from app.model.resources import PODS_COLUMN, ResourceAxis, Vector
from app.service.telling.hiding import HIDDEN
from app.service.telling.view.audience import Readers
from app.service.telling.view.jobs import created, stage_of, started
from app.service.telling.view.rows import Stage
from app.service.telling.view.state import Sources

EVERY_S: Final = 15.0
SAMPLES: Final = 240
"""Looks at the queues that are kept: those of an hour."""
QUEUES: Final = 200
"""Of how many queues figures are kept: those that ask for most pods come first."""
TOLD: Final = 50
"""Of how many queues figures are told at a time."""
EVENTS: Final = 1_000
"""How many of the latest are kept, and of how many jobs that ended is remembered when."""
STEPS: Final = ("held", "asked", "deserved", "limit")
_UNKNOWN: Final = -1
_GOING: Final = frozenset({Stage.BOUND, Stage.RUNNING})

Series = list[int | None]


@dataclass(frozen=True, slots=True)
class PastEvent:
    """A job ``started`` or ``ended``, or a pod of it was ``evicted`` for ``preemptor``, if any."""

    at: float
    kind: str
    job: str
    name: str
    queue: str
    pods: int
    text: str = ""
    pod: str = ""
    node: str = ""
    preemptor: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """When a job was submitted, how it began to run, and when it ended (None: it has not)."""

    submitted: float
    begin: PastEvent
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What was at each of ``times`` (seconds since the epoch, every ``every`` seconds).

    ``queues`` has by queue, by what (held, asked, deserved, limit) and by resource one number per
    time; null: it is not known. ``events`` are the latest, the oldest first. ``since`` is when the
    process began to keep them.
    """

    at: float
    since: float
    every: float
    times: tuple[float, ...]
    queues: Mapping[str, Mapping[str, Mapping[str, Series]]]
    events: tuple[PastEvent, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """The figures at one moment; ``amounts`` has the shape ``(queues, 4, R)``."""

    at: float
    axis: ResourceAxis
    index: Mapping[QueueName, int]
    amounts: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class HistoryKeeper:
    """Keeps the last hour of one process, while it leads."""

    sources: Sources
    since: float = 0.0
    """The time of the beginning, in seconds since the epoch."""
    _samples: deque[_Sample] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    _events: deque[PastEvent] = field(default_factory=lambda: deque(maxlen=EVENTS))
    _going: dict[GroupKey, Run] = field(default_factory=dict)
    """The jobs that run."""
    _ended: dict[str, Run] = field(default_factory=dict)
    """The latest jobs that ended, the latest last."""

    def __post_init__(self) -> None:
        self.sources.planning.cycle.after.append(self._follow)

    async def run(self) -> None:
        """Look at the queues for ever."""
        self.since = self.sources.clock()
        while True:
            await asyncio.sleep(EVERY_S)
            if self.sources.planning.leadership.deciding.is_set():
                self.look()

    def look(self) -> None:
        """Keep the figures of this moment."""
        figures = self.sources.planning.queries.queue_figures()
        most = sorted(figures.items(), key=lambda each: _size(each[1]), reverse=True)[:QUEUES]
        axis = self.sources.cache.node_usage.axis
        amounts = np.full((len(most), len(STEPS), len(axis)), _UNKNOWN, dtype=np.int64)
        for number, (_, each) in enumerate(most):
            for step, vector in enumerate(_steps(each)):
                if vector is not None:
                    amounts[number, step, : len(vector)] = vector
        for key in [key for key in self._going if key not in self.sources.cache.groups]:
            self._follow((key,))  # it went while another replica led
        index = {name: number for number, (name, _) in enumerate(most)}
        self._samples.append(_Sample(self.sources.clock(), axis, index, amounts))

    def _follow(self, changed: Collection[GroupKey]) -> None:
        """Note jobs that began to run or ended since the last cycle."""
        groups, now = self.sources.cache.groups, self.sources.clock()
        for key in changed:
            group = groups.get(key)
            stage = stage_of(group) if group is not None else Stage.ENDED
            if stage in _GOING:
                if key not in self._going and group is not None:
                    self._start(group, now)
            elif key in self._going:
                self._end(self._going.pop(key), stage, now)

    def _start(self, group: Group, now: float) -> None:
        """Note a start; one that the process did not see is dated by what the pods say."""
        saw_it = any(member.story for member in group.members.values())
        at = now if saw_it else started(group) or now
        event = PastEvent(at, "started", group.key, job_of(group), group.queue, group.on_nodes)
        self._going[group.key] = Run(created(group), event)
        self._events.append(event)

    def _end(self, run: Run, stage: Stage, now: float) -> None:
        text = "" if stage is Stage.ENDED else "has lost its members and waits again"
        begin = run.begin
        self._events.append(replace(begin, at=now, kind="ended", text=text))
        self._ended.pop(begin.job, None)
        self._ended[begin.job] = replace(run, ended=now)
        if len(self._ended) > EVENTS:
            del self._ended[next(iter(self._ended))]

    def run_of(self, key: str) -> Run | None:
        """How the job of that key ran last, as far as that is remembered."""
        return self._going.get(GroupKey(key)) or self._ended.get(key)

    # --- what is told ----------------------------------------------------------------------------

    def told(self, readers: Readers, queues: Collection[str] | None) -> History:
        """The last hour for these readers, of these queues; None: of those that ask most."""
        samples = list(self._samples)
        known = dict.fromkeys(name for each in reversed(samples) for name in each.index)
        names = sorted([name for name in known if queues is None or name in queues][:TOLD])
        return History(
            at=self.sources.clock(),
            since=self.since,
            every=EVERY_S,
            times=tuple(each.at for each in samples),
            queues={name: _of_queue(samples, QueueName(name)) for name in names},
            events=tuple(self._events_for(readers)),
        )

    def _events_for(self, readers: Readers) -> list[PastEvent]:
        found = [*self._events, *self._evictions()]
        if readers is not None:
            found = [
                _for_tenant(each, readers) for each in found if _namespace(each.job) in readers
            ]
        return sorted(found, key=lambda each: each.at)[-EVENTS:]

    def _evictions(self) -> Iterator[PastEvent]:
        for begun in self.sources.planning.evictions.decided:
            intent = begun.intent
            for victim in intent.victims:
                yield PastEvent(
                    intent.decided,
                    "evicted",
                    victim.gang,
                    victim.gang.partition("/")[2],
                    victim.queue,
                    1,
                    text=intent.action.value,
                    pod=f"{victim.namespace}/{victim.name}",
                    node=victim.node,
                    preemptor=intent.preemptor,
                    rule=victim.rule,
                )


def _steps(figures: QueueFigures) -> Iterable[Vector | None]:
    return figures.allocated, figures.request, figures.deserved, figures.real_capability


def _size(figures: QueueFigures) -> int:
    return int(figures.request[PODS_COLUMN])


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _for_tenant(event: PastEvent, readers: frozenset[str]) -> PastEvent:
    if not event.preemptor or _namespace(event.preemptor) in readers:
        return event
    return replace(event, preemptor=HIDDEN)


def _of_queue(samples: list[_Sample], name: QueueName) -> dict[str, dict[str, Series]]:
    """By what and by resource one number per sample; resources that never show are left out."""
    axis = max((each.axis for each in samples), key=len)
    found = np.full((len(samples), len(STEPS), len(axis)), _UNKNOWN, dtype=np.int64)
    for number, each in enumerate(samples):
        at = each.index.get(name)
        if at is not None:
            found[number, :, : len(each.axis)] = each.amounts[at]
    shown = (found[:, :2].max(axis=(0, 1), initial=0) > 0).tolist()
    return {
        step: {
            resource: [None if value < 0 else value for value in found[:, of, column].tolist()]
            for column, resource in enumerate(axis.names)
            if shown[column]
        }
        for of, step in enumerate(STEPS)
    }
