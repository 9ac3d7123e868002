"""simulate = reality: what the planner foretells for a gang is what becomes of it."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.embedded import Embedded
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import POD_GROUPS, PODS
from tests.clusters.rig import Rig
from tests.scale import ROUNDS, dice
from tests.scenarios.confs import evicting

TIMES = max(1, ROUNDS // 2)
"""So many times the states of `make test`: ten times in `make proofs`."""


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """With preempt, so that victims are foretold too."""
    return evicting("enqueue, allocate, preempt, backfill")


def foretold(place: Place, items: list[Object]) -> dict[str, Any]:
    question = {"manifests": items, "namespace": place.name}
    found: dict[str, Any] = place.cluster.extender.post("/simulate", question)
    [fate] = found["asked"]
    return {**fate, "all": found}


def gang(
    name: str, size: int, *, minimum: int, rank: str, queue: str, **fields: Any
) -> list[Object]:
    group = workloads.pod_group(name, min_member=minimum, queue=queue, priorityClassName=rank)
    pods = workloads.members(name, size, priorityClassName=rank, **fields)
    return [*pods, group]


def submit(place: Place, items: list[Object], *, hours: float = 0.0) -> None:
    """The pods, and then the group, without which none is planned: it all comes at once.

    ``hours`` tells since when the pods will have run.
    """
    *pods, group = items
    place.submit(pods)
    if hours:
        began = datetime.fromtimestamp(time.time() - 3600 * hours, UTC)  # noqa: TID251 - a kubelet's
        status = {"status": {"startTime": began.strftime("%Y-%m-%dT%H:%M:%SZ")}}
        for pod in pods:
            name = pod["metadata"]["name"]
            place.api.patch(PODS, name, status, namespace=place.name, subresource="status")
    place.wait_seen(pods)
    place.api.create(group, resource=POD_GROUPS, namespace=place.name)


class World:
    """Random nodes, a queue with or without a limit, and gangs that run on them.

    They started hours ago: who lost more work would else be another one a second later.
    """

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.ranks = [place.add_priority_class(f"r{value}", value) for value in (10, 50, 100)]
        self.free = {}
        for _ in range(chance.randint(1, 4)):
            cpus = chance.randint(2, 6)
            [name] = place.add_nodes(1, cpu=str(cpus))
            self.free[name] = cpus
        limit = chance.choice([None, chance.randint(3, 12)])
        capability = {} if limit is None else {"capability": {"cpu": str(limit)}}
        self.queue = place.add_queue("q", **capability)
        self.limit = sum(self.free.values()) if limit is None else limit
        for number in range(chance.randint(0, 3)):
            self.fill(f"filler-{number}")

    def fill(self, name: str) -> None:
        """A gang that fits whole."""
        cpu = self.chance.randint(1, 2)
        room = min(sum(free // cpu for free in self.free.values()), self.limit // cpu)
        if not room:
            return
        size = self.chance.randint(1, room)
        rank = self.chance.choice(self.ranks[:2])
        minimum = self.chance.randint(1, size)
        items = gang(name, size, minimum=minimum, rank=rank, queue=self.queue, cpu=str(cpu))
        submit(self.place, items, hours=self.chance.choice([1.0, 2.3, 5.7]))
        for pod in self.place.wait_bound(name, size):
            self.free[workloads.node_of(pod)] -= cpu
        self.limit -= cpu * size

    def question(self) -> list[Object]:
        size = self.chance.randint(1, 5)
        return gang(
            "asked",
            size,
            minimum=self.chance.randint(1, size),
            rank=self.chance.choice(self.ranks),
            queue=self.queue,
            cpu=str(self.chance.randint(1, 4)),
        )


def nodes_of(pods: list[Object]) -> Counter[str]:
    return Counter(workloads.node_of(pod) for pod in pods)


def check_reality(place: Place, fate: dict[str, Any]) -> None:
    places = Counter(each["node"] for each in fate["places"])
    if fate["outcome"] in ("runs", "evicts"):
        wait_until(  # one that is not of the minimum may be bound before the last one that is
            lambda: not places - nodes_of(place.bound("asked")),
            timeout_s=30,
            what=f"asked runs as foretold: {fate}",
        )
    else:
        wait_until(
            lambda: _reason(place) == (fate["reason"]["cause"], fate["reason"]["never"]),
            timeout_s=20,
            what=f"asked waits as foretold: {fate['text']}; it says {place.explain('asked')}",
        )
        assert not place.bound("asked")


def _reason(place: Place) -> tuple[str, str | None]:
    reason = place.explain("asked")["reason"] or {}
    return reason.get("cause", ""), reason.get("never")


def quiet(place: Place) -> None:
    """Wait until the extender has seen what became of all pods so far: it reads them in order."""
    last = workloads.members("last", 1)
    place.submit(last)
    place.wait_seen(last)


def check_a_state(place: Place, state: int) -> None:
    chance = random.Random(dice().random() + state)
    world = World(place, chance)
    quiet(place)
    items = world.question()
    before = {pod["metadata"]["name"] for pod in place.bound()}
    fate = foretold(place, items)
    submit(place, items)
    check_reality(place, fate)
    gone = before - {pod["metadata"]["name"] for pod in place.bound()}
    assert gone == {each["pod"].partition("/")[2] for each in fate["victims"]}, fate


@pytest.mark.sandbox
@pytest.mark.parametrize("state", range(30 * TIMES))
def test_what_is_foretold_comes_true_on_the_sandbox(embedded: Embedded, state: int) -> None:
    with Place(embedded) as place:
        check_a_state(place, state)


@pytest.mark.real
@pytest.mark.parametrize("state", range(5 * TIMES))
def test_what_is_foretold_comes_true_on_the_real_one(rig: Rig, state: int) -> None:
    with Place(rig) as place:
        check_a_state(place, state)
