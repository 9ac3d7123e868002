"""Gangs that arrive at an overloaded cluster, from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

CORES = 96
NODES = 12
"""Nodes of the cluster, all of one size."""
WEIGHTS = {"w1": 1, "w2": 2, "w3": 3}
SIZES = (1, 2, 4, 8, 16, 32)
"""Members of a gang, each of one core; every size is as likely as another."""
RUN_S = 12.0
"""Mean run time of a gang; its members end together."""
OVERLOAD = 1.3
"""Work that arrives, by what the cluster can do in the same time."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A gang of ``size`` members of one core that comes at ``at`` and runs ``run_s`` seconds."""

    name: str
    at: float
    queue: str
    size: int
    run_s: float

    @property
    def work(self) -> float:
        """Core-seconds."""
        return self.size * self.run_s


def arrivals(seed: int, *, seconds: float) -> tuple[Arrival, ...]:
    """All gangs that come within ``seconds``; times between them and run times are exponential."""
    return tuple(_arrivals(Random(seed), seconds))


def _arrivals(random: Random, seconds: float) -> Iterator[Arrival]:
    per_gang = RUN_S * sum(SIZES) / len(SIZES)
    rate = OVERLOAD * CORES / per_gang
    at = 0.0
    for number in count():
        at += random.expovariate(rate)
        if at >= seconds:
            return
        yield Arrival(
            name=f"g{number:04}",
            at=at,
            queue=random.choice(tuple(WEIGHTS)),
            size=random.choice(SIZES),
            run_s=random.expovariate(1 / RUN_S),
        )
