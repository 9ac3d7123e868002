"""The same arrivals without queues, shares or nodes: what order alone makes of a cluster."""

from collections.abc import Sequence
from heapq import heappop, heappush

from tests.bench.busy.figures import Run
from tests.bench.busy.load import CORES, Arrival


def first_come(arrivals: Sequence[Arrival], *, seconds: float) -> Run:
    """Strictly in the order of arrival."""
    return _run(arrivals, seconds=seconds, skips=False)


def greedy(arrivals: Sequence[Arrival], *, seconds: float) -> Run:
    """In that order too, but whatever fits goes ahead."""
    return _run(arrivals, seconds=seconds, skips=True)


def _run(arrivals: Sequence[Arrival], *, seconds: float, skips: bool) -> Run:
    coming, waiting = list(reversed(arrivals)), list[Arrival]()
    ends: list[tuple[float, int]] = []
    started: dict[str, float] = {}
    free = CORES
    while coming or ends:
        now = min([each.at for each in coming[-1:]] + [end for end, _ in ends[:1]])
        if now >= seconds:
            break
        while ends and ends[0][0] <= now:
            free += heappop(ends)[1]
        while coming and coming[-1].at <= now:
            waiting.append(coming.pop())
        left: list[Arrival] = []
        for number, each in enumerate(waiting):
            if each.size <= free:
                free -= each.size
                started[each.name] = now
                heappush(ends, (now + each.run_s, each.size))
            elif skips:
                left.append(each)
            else:
                left = waiting[number:]
                break
        waiting = left
    return Run(arrivals, started, seconds)
