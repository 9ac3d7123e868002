"""A full cluster: who gets what comes free, what is lent, and how long the large ones wait."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.scenarios.confs import conf

PATIENCE_S = 2
PATIENCE = {"borrowing.patience": f"{PATIENCE_S}s"}
CONF = conf(
    "overcommit",
    "predicates",
    {"name": "proportion", "arguments": PATIENCE},
    "nodeorder",
)


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def add(place: Place, name: str, size: int, queue: str) -> None:
    """A gang that says what it needs, so that its admission is voted on."""
    needs = {"queue": queue, "minResources": {"cpu": str(size)}}
    place.add_gang(name, size, spec=needs)


def bound_by_queue(place: Place, gangs: Iterable[str]) -> dict[str, int]:
    """Bound pods of gangs called ``QUEUE-NUMBER``, by queue."""
    names: Counter[str] = Counter()
    for pod in place.bound():
        names[str(pod["metadata"]["labels"]["group"]).partition("-")[0]] += 1
    return {queue: names[queue] for queue in gangs}


def borrows(group: Object) -> bool:
    conditions = group.get("status", {}).get("conditions", [])
    return any(
        c["type"] == "Reserved" and c.get("message", "").startswith("borrows cpu 2 of queue")
        for c in conditions
    )


def test_what_waits_is_shared_by_weight_whoever_was_admitted_first(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    queues = {
        name: place.add_queue(name, weight=2 if name == "w3" else 1) for name in ("w1", "w2", "w3")
    }
    place.add_gang("filler", 16)
    place.wait_bound("filler", 16)
    for number in range(6):
        for name, queue in queues.items():
            add(place, f"{name}-{number}", 2, queue)
    place.wait_known(*(f"{name}-{number}" for name in queues for number in range(6)), pods=36)
    place.delete_gang("filler")
    wait_until(
        lambda: bound_by_queue(place, queues) == {"w1": 4, "w2": 4, "w3": 8},
        timeout_s=30,
        what=f"the queues hold 4, 4 and 8: {bound_by_queue(place, queues)}",
    )


def test_what_an_entitled_gang_is_too_large_for_is_borrowed_and_told(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    mine, other = place.add_queue("mine"), place.add_queue("other")
    add(place, "first", 4, mine)
    place.wait_bound("first", 4)
    add(place, "large", 6, other)
    place.wait_condition("large", "Reserved", "False")
    add(place, "small", 2, mine)
    place.wait_bound("small", 2)
    wait_until(
        lambda: any(borrows(place.group(name)) for name in ("first", "small")),
        timeout_s=30,
        what="the gang that came last says what it borrows",
    )
    assert place.cluster.extender.get("/debug/queues")[mine]["borrowed"] == {"cpu": 2000}


def test_a_large_gang_collects_its_room_and_runs(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    for number in range(8):
        place.add_gang(f"small-{number}", 1)
        place.wait_bound(f"small-{number}", 1)
    place.add_gang("large", 4)
    place.wait_condition("large", "Reserved", "False")
    for number in range(4):
        place.add_gang(f"late-{number}", 1)
    time.sleep(PATIENCE_S)
    place.delete_gang("small-0")
    place.delete_gang("small-1")
    place.wait_condition(
        "large", "Reserved", "False", reason="Collecting", says="cpu 2 of 4 kept since"
    )
    place.delete_gang("small-2")
    place.delete_gang("small-3")
    place.wait_bound("large", 4)
    assert not any(place.bound(f"late-{number}") for number in range(4))


def test_a_queue_keeps_the_rest_of_its_limit_for_a_large_gang_and_says_so(place: Place) -> None:
    place.add_nodes(1, cpu="16")
    queue = place.add_queue("limited", capability={"cpu": "6"})
    add(place, "holds", 2, queue)
    place.wait_bound("holds", 2)
    add(place, "large", 5, queue)
    place.wait_condition("large", "Reserved", "False", says="the queue keeps what comes free")
    add(place, "small", 3, queue)
    says = f"the rest is kept for {place.name}/large (cpu 5), which has waited long, until 20"
    place.wait_condition("small", "Reserved", "False", reason="QueueQuota", says=says)
    place.delete_gang("holds")
    place.wait_bound("large", 5)
    assert not place.bound("small")


def test_a_queue_of_strict_order_lets_none_overtake(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    strict = place.add_queue("strict", dequeueStrategy="fifo", capability={"cpu": "4"})
    add(place, "first", 3, strict)
    place.wait_bound("first", 3)
    add(place, "second", 2, strict)
    place.wait_condition("second", "Reserved", "False")
    add(place, "third", 1, strict)
    place.wait_condition("third", "Reserved", "False", reason="QueueOrder")
    place.delete_gang("first")
    place.wait_bound("second", 2)
    place.wait_bound("third", 1)
