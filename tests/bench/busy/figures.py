"""What came of a run: how busy the cluster was, each queue's part, and who waited longest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from tests.bench.busy.load import CORES, WEIGHTS, Arrival

FROM_S = 30.0
"""The cluster fills up first; what is in use counts from then on."""
LARGE = 32


@dataclass(frozen=True, slots=True)
class Run:
    """One run of ``arrivals`` that ended at ``seconds``; ``started`` has who began, and when.

    ``partial`` counts gangs that ran with less than their minimum.
    """

    arrivals: Sequence[Arrival]
    started: Mapping[str, float]
    seconds: float
    partial: int = 0

    @property
    def in_use(self) -> float:
        """Mean share of the cores in use from :data:`FROM_S` to the end."""
        return self._used(FROM_S, self.arrivals) / (CORES * (self.seconds - FROM_S))

    @property
    def of_shares(self) -> dict[str, float]:
        """What each queue used over the run, by its weighted max-min share of what was asked."""
        asked = {
            queue: sum(min(a.run_s, self.seconds - a.at) * a.size for a in self._of(queue))
            for queue in WEIGHTS
        }
        share = max_min(asked, CORES * self.seconds)
        return {queue: self._used(0.0, self._of(queue)) / share[queue] for queue in WEIGHTS}

    @property
    def longest_wait(self) -> float:
        """Seconds that a gang of 32 waited at most; one that still waits did so to the end."""
        large = [a for a in self.arrivals if a.size == LARGE]
        return max((self.started.get(a.name, self.seconds) - a.at for a in large), default=0.0)

    def _of(self, queue: str) -> list[Arrival]:
        return [a for a in self.arrivals if a.queue == queue]

    def _used(self, since: float, among: Sequence[Arrival]) -> float:
        """Core-seconds from ``since`` to the end."""
        used = 0.0
        for each in among:
            begin = self.started.get(each.name)
            if begin is not None:
                end = min(begin + each.run_s, self.seconds)
                used += each.size * max(end - max(begin, since), 0.0)
        return used


def max_min(asked: Mapping[str, float], total: float) -> dict[str, float]:
    """``total`` shared by weight, nobody more than was asked for."""
    share = dict.fromkeys(asked, 0.0)
    hungry = {queue for queue, amount in asked.items() if amount > 0}
    left = total
    while hungry and left > 1e-9:
        each = left / sum(WEIGHTS[queue] for queue in hungry)
        for queue in hungry:
            share[queue] = min(share[queue] + each * WEIGHTS[queue], asked[queue])
        left = total - sum(share.values())
        hungry = {queue for queue in hungry if share[queue] < asked[queue] - 1e-9}
    return share


@dataclass(frozen=True, slots=True)
class Summary:
    """Runs of one configuration with several seeds; means, but for what is counted or longest."""

    name: str
    in_use: float
    of_shares: Mapping[str, float]
    longest_wait: float
    partial: int


def summary(name: str, runs: Sequence[Run]) -> Summary:
    """``runs``, one of each seed."""
    return Summary(
        name=name,
        in_use=mean(run.in_use for run in runs),
        of_shares={queue: mean(run.of_shares[queue] for run in runs) for queue in WEIGHTS},
        longest_wait=mean(run.longest_wait for run in runs),
        partial=sum(run.partial for run in runs),
    )
