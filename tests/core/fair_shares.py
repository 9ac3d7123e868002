"""What queues deserve by the rules of volcano.md §3.6, worked out by its words and nothing else.

Amounts are in base units, by resource; nothing of the plugins is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Amounts = dict[str, float]

NOISE = 0.1
"""Less than this of a base unit is nothing (volcano.md §3.1)."""


@dataclass(frozen=True)
class Entrant:
    """A queue that takes part in the sharing; ``limit`` is its real capability."""

    weight: int
    request: Mapping[str, int]
    limit: Mapping[str, int]
    guarantee: Mapping[str, int]


def by_weight(total: Mapping[str, int], queues: Mapping[str, Entrant]) -> dict[str, Amounts]:
    """What each queue deserves by proportion: water is poured by weight until all is used."""
    deserved = {name: dict.fromkeys(total, 0.0) for name in queues}
    left = {resource: float(amount) for resource, amount in total.items()}
    unmet = dict(queues)
    while unmet and max(left.values()) > NOISE:
        weights = sum(queue.weight for queue in unmet.values())
        poured = dict(left)
        met = []
        for name, queue in unmet.items():
            before = deserved[name]
            after = {}
            for resource in total:
                offered = before[resource] + poured[resource] * queue.weight / weights
                most = min(queue.request.get(resource, 0), queue.limit[resource])
                after[resource] = max(min(offered, most), queue.guarantee.get(resource, 0))
                left[resource] -= after[resource] - before[resource]
            deserved[name] = after
            asks_more = any(queue.request.get(r, 0) > after[r] + NOISE for r in total)
            if after == before or not asks_more:
                met.append(name)
        left = {resource: max(amount, 0.0) for resource, amount in left.items()}
        if left == poured:
            break
        unmet = {name: queue for name, queue in unmet.items() if name not in met}
    return deserved
