"""Gangs come and go by chance in four queues that ask for more than there is.

They are small and large, elastic and tight, urgent and not, so pods are evicted again and again,
between queues and inside. All that is evicted was intended, with a certificate, and none of it in
vain; no gang runs in part; the ledger agrees with the API server; and in the end all have run.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import pumice, workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Stage
from tests.controllers.job.stand import kubelets
from tests.e2e.contested import mortal
from tests.e2e.settings import EVICTING, PARTIAL_S
from tests.e2e.victims import Intents, Victims, assert_accepted
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

ARRIVALS_S = 5.0 * ROUNDS
NODES, CORES = 10, 10
AT_ONCE = 24
"""So many gangs are there at a time: they ask for twice of what there is."""
LEAST = 2 * AT_ONCE
"""So many gangs come however slow the machine is: fewer may find room without evictions."""
LARGEST = 12
"""Pods of a gang, of one core or two."""
WEIGHTS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
MOST = round(20 * ARRIVALS_S)
"""More gangs do not come in that time."""
LEDGER_S = 10.0


class Arrivals:
    """Gangs of chance; each goes some time after it has its minimum."""

    def __init__(self, place: Place, die: random.Random, victims: Victims) -> None:
        self._place, self._die, self._victims = place, die, victims
        self.gone: Callable[[str], None] = lambda _name: None
        """Told the name of each gang that goes."""
        self._queues = [place.add_queue(name, weight=weight) for name, weight in WEIGHTS.items()]
        self._urgent = place.add_priority_class("urgent", 1000)
        self._sizes = {f"gang-{number}": die.randint(1, LARGEST) for number in range(MOST)}
        self.minimums = {
            name: size if die.random() < 0.5 else die.randint(1, size)
            for name, size in self._sizes.items()
        }
        self._to_come = iter(self._sizes)
        self._lives: dict[str, float] = {}
        """How long each that is there runs, once it has its minimum."""
        self._ends: dict[str, float] = {}
        self.came = 0

    def come(self) -> None:
        """Some more come, unless there are too many."""
        for _ in range(min(self._die.randint(1, 6), AT_ONCE - len(self._lives))):
            self._add(next(self._to_come))

    def go(self) -> None:
        """Take away those that have had their time, and have their minimum."""
        bound, now = self._victims.bound(), time.monotonic()
        for name, lives_s in list(self._lives.items()):
            if bound[name] < self.minimums[name]:
                continue
            if now > self._ends.setdefault(name, now + lives_s):
                self._victims.over.add(name)
                self.gone(name)
                self._place.delete_gang(name)
                del self._lives[name]

    def are_over(self) -> bool:
        """Let those that are there go; whether none is left."""
        self.go()
        return not self._lives

    def _add(self, name: str) -> None:
        die = self._die
        spec: dict[str, Any] = {"queue": die.choice(self._queues)}
        fields: dict[str, Any] = {"cpu": str(die.randint(1, 2))}
        if die.random() < 0.3:
            spec["priorityClassName"] = fields["priorityClassName"] = self._urgent
        pods = [mortal(pod) for pod in workloads.members(name, self._sizes[name], **fields)]
        self._victims.made |= {pod["metadata"]["name"]: pod for pod in pods}
        self._place.add_group(name, self.minimums[name], **spec)
        self._place.submit(pods)
        self._lives[name] = die.uniform(1, 15)
        self.came += 1


def wasted_and_guarded(rig: Rig) -> tuple[float, float]:
    """How many pods were evicted in vain, and how many decisions were dropped by the guard."""
    metrics = rig.extender.metrics().items()
    wasted = sum(
        value for name, value in metrics if name.startswith("pumice_evictions_wasted_total")
    )
    guarded = sum(value for name, value in metrics if name == "pumice_evictions_guarded_total")
    return wasted, guarded


@pytest.mark.timeout(ARRIVALS_S + 4 * ROUND_S)
def test_of_random_arrivals_no_eviction_is_in_vain_and_all_run(
    stage: Stage, tmp_path: Path
) -> None:
    die, rig = dice(), stage.rig(EVICTING)
    before = wasted_and_guarded(rig)
    with (
        Place(rig) as place,
        Victims(place.api, place.name) as victims,
        Intents(place.api) as intents,
        kubelets(rig.controlplane, place.name),
    ):
        place.add_nodes(NODES, cpu=str(CORES))
        arrivals = Arrivals(place, die, victims)
        with Partials(place.api, place.name, arrivals.minimums) as seen:
            arrivals.gone = seen.let_go
            end = time.monotonic() + ARRIVALS_S
            look = time.monotonic() + LEDGER_S
            while time.monotonic() < end or arrivals.came < LEAST:
                arrivals.come()
                arrivals.go()
                time.sleep(die.uniform(0, 0.4))
                if time.monotonic() > look:
                    pumice.wait_no_drift(rig.extender)
                    look = time.monotonic() + LEDGER_S
            wait_until(arrivals.are_over, timeout_s=2 * ROUND_S, what="all have run")
            assert seen.longest_s() < PARTIAL_S
        intents.wait_none()
        evicted, plans = set(victims.evicted()), intents.all()
        wasted, guarded = (a - b for a, b in zip(wasted_and_guarded(rig), before, strict=True))
        print(  # noqa: T201 - the figures of a long run
            f"{arrivals.came} gangs, {len(evicted)} pods evicted by {len(plans)} plans, "
            f"{wasted:g} in vain, {guarded:g} decisions dropped by the guard, "
            f"longest in part {seen.longest_s():.1f} s"
        )
        assert evicted
        assert evicted <= {victim.uid for plan in plans for victim in plan.victims}
        assert_accepted(plans, tmp_path / "certificates")
        assert wasted == 0
        assert not victims.failed(), victims.failed()
        pumice.wait_no_drift(rig.extender)
