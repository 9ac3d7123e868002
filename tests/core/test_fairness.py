"""What four queues hold after reclaim is what the rules of volcano.md §3.6 give them.

Queues of the weights 1, 2, 3 and 4 ask for two resources each, more than there is. What they
deserve is worked out apart from the plugins, and they hold it within one largest pod.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.workload import Queue
from tests.builders import AXIS, GIB, make_amounts, make_queue
from tests.core.actions.rigs import policies
from tests.core.crowds import Crowd, Job, boards
from tests.core.fair_shares import Entrant, by_weight

WEIGHTS = {"a": 1, "b": 2, "c": 3, "d": 4}
TOTAL = {"cpu": 20_000, "memory": 40 * GIB}
"""Of five nodes."""
LARGEST = {"cpu": 2_000, "memory": 4 * GIB}
ACTIONS = ("enqueue", "allocate", "reclaim", "backfill")
GANGS = ("enqueue", "allocate", "gangreclaim", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})


def conf(*share: PluginConf, actions: tuple[str, ...] = ACTIONS) -> Policies:
    return policies((("priority", WHOLE, "conformance"), ("predicates", *share)), actions)


TREE = PluginConf("capacity", switches={"enableHierarchy": True})
HDRF = PluginConf("drf", switches={"enableHierarchy": True})
RULES = {
    "proportion": conf(PluginConf("proportion")),
    "proportion, gang by gang": conf(PluginConf("proportion"), actions=GANGS),
    "capacity": conf(PluginConf("capacity")),
    "capacity, gang by gang": conf(PluginConf("capacity"), actions=GANGS),
    "a tree of capacities": conf(TREE),
    "hdrf": conf(HDRF, PluginConf("capacity")),
}


def queues(rules: str) -> Iterator[Queue]:
    """The four, which say that they deserve what their weights give them; in a tree two and two."""
    above = {"a": "left", "b": "left", "c": "right", "d": "right"} if "tree" in rules else {}
    for parent, weight in (("left", 3), ("right", 7)) if above else ():
        yield make_queue(parent, deserved=tenths(weight))
    for name, weight in WEIGHTS.items():
        yield make_queue(
            name,
            weight=weight,
            deserved=tenths(weight),
            parent=QueueName(above.get(name, "")),
            annotations={
                "volcano.sh/hierarchy": f"root/{name}",
                "volcano.sh/hierarchy-weights": f"1/{weight}",
            },
        )


def tenths(weight: int) -> tuple[tuple[str, int], ...]:
    """So many tenths of the cluster."""
    return make_amounts(cpu=2_000 * weight, memory=4 * GIB * weight)


def jobs(queue: str, *, round_: str = "") -> Iterator[Job]:
    """Pods that fill the cluster by themselves: every third one is twice as large."""
    for number in range(15):
        size = 2 if number % 3 == 2 else 1
        yield Job(f"{queue}{round_}{number}", 1, cpu=size, gib=2 * size, queue=queue)


def deserved(asking: dict[str, int]) -> dict[str, dict[str, float]]:
    """What queues of these weights deserve of the cluster when each asks for all of it."""
    entrants = {name: Entrant(weight, TOTAL, TOTAL, {}) for name, weight in asking.items()}
    return by_weight(TOTAL, entrants)


def assert_shared(crowd: Crowd, asking: dict[str, int]) -> None:
    """Each queue holds what it deserves, within one largest pod, and nothing is left over."""
    held = crowd.held_by_queues()
    for name, due in deserved(asking).items():
        for resource, most in LARGEST.items():
            has = int(held[name][AXIS.index[resource]])
            assert abs(has - due[resource]) <= most, (name, resource, has, due[resource])
    sums = np.sum(list(held.values()), axis=0)
    for resource, amount in TOTAL.items():
        assert sums[AXIS.index[resource]] > amount - LARGEST[resource], held


@pytest.mark.parametrize("rules", RULES)
def test_queues_take_back_what_they_deserve_and_again_after_one_was_idle(rules: str) -> None:
    crowd = Crowd(
        list(jobs("a")),
        boards(*[(4, 8)] * 5),
        RULES[rules],
        queues=tuple(queues(rules)),
        freezes=False,
    )
    crowd.until_quiet(most=10)
    for name in "bcd":
        for job in jobs(name):
            crowd.submit(job)
    crowd.until_quiet(most=40)
    assert_shared(crowd, WEIGHTS)

    crowd.end(*(job.name for job in jobs("d")))
    crowd.until_quiet(most=40)
    if rules.startswith("proportion"):
        assert_shared(crowd, {name: WEIGHTS[name] for name in "abc"})
    for job in jobs("d", round_="again"):
        crowd.submit(job)
    crowd.until_quiet(most=40)
    assert_shared(crowd, WEIGHTS)
