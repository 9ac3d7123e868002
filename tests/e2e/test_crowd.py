"""More gangs than there is room for, of three queues, while processes are killed and stopped.

Gangs come and go by chance, bigger than their queue's share and smaller, with members beyond the
minimum and without, some with a leader that they need. Pods alone of higher priority come between
and evict members beyond a minimum. Whatever happens, no gang is bound in part for long, and in the
end all have run.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Stage
from tests.e2e import harms
from tests.e2e.settings import PARTIAL_S, SLOW
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

CPUS = 48
AT_ONCE = 6
"""So many gangs are there at a time."""
WEIGHTS = {"light": 1, "middle": 2, "heavy": 3}
LEADER = {"leader": 1}


@pytest.fixture
def slow_rig(stage: Stage) -> Rig:
    return stage.rig(SLOW)


class Crowd:
    """Gangs of chance; one that has its minimum makes room for the next."""

    def __init__(self, place: Place, die: random.Random, *, gangs: int) -> None:
        self._place = place
        self._die = die
        self._sizes = {f"gang-{number}": die.randrange(2, CPUS // 2) for number in range(gangs)}
        self.minimums = {
            name: size if die.random() < 0.6 else die.randrange(size // 2 + 1, size + 1)
            for name, size in self._sizes.items()
        }
        self.roles = {name: LEADER for name in self._sizes if die.random() < 0.4}
        self._queues = [place.add_queue(name, weight=weight) for name, weight in WEIGHTS.items()]
        self._urgent = place.add_priority_class("urgent", 1000)
        self._evictors = 0
        self._to_come = list(self._sizes)
        self._there: list[str] = []

    def come(self) -> None:
        """Fill up with gangs, some of which say what they need."""
        while self._to_come and len(self._there) < AT_ONCE:
            self._add(self._to_come.pop())

    def push_in(self) -> None:
        """A pod alone of higher priority comes."""
        name, cpu = f"evictor-{self._evictors}", str(self._die.randint(1, 4))
        self._evictors += 1
        self._place.submit_one(workloads.pod(name, cpu=cpu, priorityClassName=self._urgent))

    def go(self, seen: Partials) -> bool:
        """Take away those that have their minimum; returns whether nobody is left."""
        for name in [n for n in self._there if seen.is_whole(n)]:
            self._place.delete_gang(name)
            self._there.remove(name)
        alone = self._place.pods("")
        for pod in workloads.bound(alone):
            self._place.delete_pod(pod["metadata"]["name"])
        return not self._there and not alone

    def _add(self, name: str) -> None:
        size, minimum = self._sizes[name], self.minimums[name]
        spec: dict[str, Any] = {"queue": self._die.choice(self._queues)}
        if self._die.random() < 0.5:
            spec["minResources"] = {"cpu": str(minimum)}
        pods = workloads.members(name, size)
        if name in self.roles:
            spec["minTaskMember"] = self.roles[name]
            leader = workloads.pod(f"{name}-leader", group=name, role="leader")
            pods = [*workloads.members(name, size - 1, role="worker"), leader]
            self._die.shuffle(pods)
        self._place.add_group(name, minimum, **spec)
        self._place.submit(pods)
        self._there.append(name)


def harm(rig: Rig, die: random.Random) -> None:
    """Something goes wrong."""
    what = die.choice(("kill", "kill", "stop", "scheduler"))
    if what == "kill":
        harms.kill_extender(rig)
    elif what == "stop":
        harms.stop_extender(rig, die.uniform(0.5, 3))
    else:
        harms.kill_scheduler(rig)


@pytest.mark.timeout(ROUNDS * ROUND_S)
def test_in_a_crowd_no_gang_stays_in_part_and_all_of_them_run(slow_rig: Rig) -> None:
    die = dice()
    with Place(slow_rig) as place:
        place.add_nodes(3, cpu=str(CPUS // 3))
        crowd = Crowd(place, die, gangs=AT_ONCE * ROUNDS)
        with Partials(place.api, place.name, crowd.minimums, roles=crowd.roles) as seen:
            for _ in range(2 * ROUNDS):
                crowd.come()
                crowd.push_in()
                time.sleep(die.uniform(0, 1))
                harm(slow_rig, die)
                crowd.go(seen)
            wait_until(lambda: _drained(crowd, seen), timeout_s=ROUND_S, what="all have run")
            assert seen.longest_s() < PARTIAL_S


def _drained(crowd: Crowd, seen: Partials) -> bool:
    crowd.come()
    return crowd.go(seen)
