"""How good ETAs are: on a synthetic trace, beside what walltimes and drain rates tell.

`python -m tests.bench.eta [--jobs 300] [--seed 1]`. Users submit jobs of their kinds to a small
cluster; jobs of a kind have run times of one lognormal distribution, and declare a walltime of 1.2
to 4 times their run time. Of jobs that cannot start when they come, some are asked about once:

* *learned*: the forecast by sketches of what ended before (`app/core/eta`);
* *walltime*: the same simulation, where every job runs for as long as it declares;
* *drain rate*: the place in the line, by the rate at which jobs started in the last hour.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from statistics import median
from typing import Final

from app.core.eta.run_times import RunTime, Sketches
from app.model.ids import group_key
from tests.core.actions.rigs import HELM, policies
from tests.core.crowds import Job, boards
from tests.core.eta.timed import Timed

NODES: Final = 8
CPUS: Final = 8
KINDS: Final = 12
LOAD: Final = 0.93
"""What jobs ask for, as a part of what the cluster could give in the time."""
ASKED: Final = 3
"""Every so many-th of the jobs that wait is asked about."""
LEARNED: Final = 60
"""Jobs that come before the first question."""
WINDOW_S: Final = 3600.0
_SHAPES: Final = ((1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 4), (4, 8))
_LEAST_S: Final = 1.0


@dataclass(frozen=True)
class Kind:
    """Jobs that are alike: `members` pods of `cpu` cores, and how long they run."""

    name: str
    members: int
    cpu: int
    median_s: float
    spread: float


@dataclass(frozen=True)
class Arrival:
    """A job comes; it runs for `seconds` and declares that it may take `walltime`."""

    at: float
    kind: Kind
    job: Job
    seconds: float
    walltime: float


@dataclass(frozen=True)
class Question:
    """What was foretold of a job: the p50 by each way, and the p90 by what was learned."""

    asked: float
    told: Mapping[str, float]
    p90: float


@dataclass
class Outcome:
    """The questions with the real starts."""

    questions: dict[str, Question] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)


def arrivals(count: int, dice: random.Random) -> Iterator[Arrival]:
    """Jobs of all kinds, at random times that keep the cluster about as busy as asked."""
    kinds = []
    for number in range(KINDS):
        members, cpu = dice.choice(_SHAPES)
        median_s = 60.0 * 2 ** dice.uniform(0, 6)
        kinds.append(Kind(f"k{number}", members, cpu, median_s, dice.uniform(0.2, 0.8)))
    work = sum(k.members * k.cpu * k.median_s * 2.718 ** (k.spread**2 / 2) for k in kinds) / KINDS
    gap, at = work / (NODES * CPUS * LOAD), 0.0
    for number in range(count):
        kind = dice.choice(kinds)
        seconds = kind.median_s * dice.lognormvariate(0, kind.spread)
        walltime = max(60.0, 60.0 * round(seconds * dice.uniform(1.2, 4) / 60 + 0.5))
        at += dice.expovariate(1 / gap)
        job = Job(f"{kind.name}-{number}", kind.members, cpu=kind.cpu)
        yield Arrival(at, kind, job, seconds, walltime)


class Trace:
    """The cluster as the jobs of a trace come, run and end."""

    def __init__(self, found: list[Arrival]) -> None:
        self.arrivals = {each.job.name: each for each in found}
        self.crowd = Timed([], boards(*[CPUS] * NODES), policies(HELM))
        self.sketches = Sketches()
        self.outcome = Outcome()
        self.asked = 0

    def run(self) -> Outcome:
        """Let it all happen."""
        crowd, left = self.crowd, list(self.arrivals.values())[::-1]
        ends: list[tuple[float, str]] = []
        while left or ends:
            if left and (not ends or left[-1].at <= ends[0][0]):
                come = left.pop()
                crowd.clock = come.at
                crowd.submit(come.job)
                self._plan(ends)
                self._ask(come)
            else:
                crowd.clock, name = heappop(ends)
                self._learn(self.arrivals[name])
                crowd.end(name)
                self._plan(ends)
        return self.outcome

    def _plan(self, ends: list[tuple[float, str]]) -> None:
        known = set(self.crowd.began)
        self.crowd.round()
        self.crowd._note()
        for name in self.crowd.began.keys() - known:
            self.outcome.starts[name] = self.crowd.clock
            heappush(ends, (self.crowd.clock + self.arrivals[name].seconds, name))

    def _learn(self, ended: Arrival) -> None:
        for key in keys(ended.kind):
            self.sketches.feed(key, ended.seconds)

    def _ask(self, come: Arrival) -> None:
        name, crowd = come.job.name, self.crowd
        if name in crowd.began or len(self.outcome.starts) < LEARNED:
            return
        self.asked += 1
        if self.asked % ASKED:
            return
        there = {name: self.arrivals[name] for name in crowd.jobs}
        learned = self._eta(name, {n: self._known(each) for n, each in there.items()})
        walltime = self._eta(
            name, {n: RunTime(declared=each.walltime) for n, each in there.items()}
        )
        if learned is None or walltime is None:
            return
        now = crowd.clock
        waiting = sum(each not in crowd.began for each in crowd.jobs)
        lately = sum(now - WINDOW_S < at <= now for at in self.outcome.starts.values())
        drain = now + waiting * WINDOW_S / max(lately, 1)
        told = {"learned": learned[0], "walltime": walltime[0], "drain rate": drain}
        self.outcome.questions[name] = Question(now, told, learned[1])

    def _eta(self, name: str, known: Mapping[str, RunTime]) -> tuple[float, float] | None:
        key = group_key("default", name)
        eta = self.crowd.forecast(known, wanted=[key]).etas[key]
        return None if eta.p50 is None else (eta.p50, eta.p90 or float("inf"))

    def _known(self, arrival: Arrival) -> RunTime:
        found = (self.sketches.of(key) for key in keys(arrival.kind))
        counts = tuple(each for each in found if each is not None)
        return RunTime(limit=arrival.walltime, learned=counts)


def keys(kind: Kind) -> tuple[bytes, ...]:
    """Of the sketches: the kind, the shape, and all jobs."""
    return (kind.name.encode(), f"{kind.members}x{kind.cpu}".encode(), b"all")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--jobs", type=int, default=300)
    reader.add_argument("--seed", type=int, default=1)
    said = reader.parse_args()
    outcome = Trace(list(arrivals(said.jobs, random.Random(said.seed)))).run()
    sys.stdout.write(f"{said.jobs} jobs, seed {said.seed}\n")
    sys.stdout.writelines(f"{line}\n" for line in _report(outcome))


def _report(outcome: Outcome) -> Iterator[str]:
    found = [(each, outcome.starts[name]) for name, each in outcome.questions.items()]
    waits = [start - each.asked for each, start in found]
    yield f"{len(found)} questions; median wait {median(waits):.0f} s"
    inside = sum(start <= each.p90 for each, start in found) / len(found)
    early = sum(start <= each.told["learned"] for each, start in found) / len(found)
    yield f"started by the p90: {inside:.0%}; by the p50: {early:.0%}"
    yield "| way | median error, s | of the wait | median of told - real, s |"
    yield "|---|---|---|---|"
    for way in ("learned", "walltime", "drain rate"):
        off = [each.told[way] - start for each, start in found]
        share = median(
            abs(error) / max(wait, _LEAST_S) for error, wait in zip(off, waits, strict=True)
        )
        yield f"| {way} | {median(map(abs, off)):.0f} | {share:.0%} | {median(off):+.0f} |"


if __name__ == "__main__":
    main()
