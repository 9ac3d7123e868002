"""kill -9 of the extender and of kube-scheduler at random moments while a gang takes room.

Whatever moment that is: the gang gets its room whole, at the cost of as many pods as without a
kill, and no pod is evicted twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clusters.partials import Partials
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Stage
from tests.e2e import contested, harms
from tests.e2e.contested import CORES, IDLE, TAKER, Contested
from tests.e2e.settings import EVICTING, PARTIAL_S
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

TURNS = min(max(ROUNDS // 4, 1), 5)
"""No more, as a job that loses pods to six others in ten minutes is let alone."""


@pytest.fixture
def evicting_rig(stage: Stage) -> Rig:
    return stage.rig(EVICTING)


class Kill:
    """kill -9 of the extender, of kube-scheduler or of both, at a moment of chance."""

    def __init__(self, die: random.Random, rig: Rig) -> None:
        self._die, self._rig = die, rig
        self._whom = die.choice(("extender", "scheduler", "both"))
        self._moment = die.choice(("evicted", "bound", "after"))
        self._count = die.randrange(TAKER)
        self._seconds = die.uniform(0, 2)

    def __str__(self) -> str:
        when = f"{self._seconds:.2f} s" if self._moment == "after" else self._count
        return f"{self._whom} killed, {self._moment} {when}"

    def at_its_moment(self, evicted: Callable[[], int], bound: Callable[[], int]) -> None:
        """Wait for the moment, do it, and have all up again a little later."""
        counts = {"evicted": evicted, "bound": bound}
        if self._moment == "after":
            time.sleep(self._seconds)
        else:
            count = counts[self._moment]
            wait_until(lambda: count() > self._count, timeout_s=ROUND_S / 3, what=str(self))
        if self._whom != "scheduler":
            self._rig.extender.kill()
        if self._whom != "extender":
            harms.kill_scheduler(self._rig)
        time.sleep(self._die.uniform(0, 1))
        if self._whom != "scheduler":
            self._rig.restart_extender()


@pytest.mark.timeout((TURNS + 2) * ROUND_S)
def test_kills_at_any_moment_cost_no_more_victims(evicting_rig: Rig, tmp_path: Path) -> None:
    die = dice()
    with contested.opened(evicting_rig) as ground:
        taking, giving = ground.place.add_queue("taking"), ground.place.add_queue("giving")
        urgent = ground.place.add_priority_class("urgent", 1000)
        ground.fill("low", queue=giving)
        for number in range(TURNS):
            reclaims = die.random() < 0.5
            how = {"queue": taking} if reclaims else {"queue": giving, "priority": urgent}
            kill = Kill(die, evicting_rig)
            print(f"turn {number}: {kill}, {how}")  # noqa: T201 - shown with a failure
            before = set(ground.victims.evicted())
            took_s = _take(ground, f"taker-{number}", how, kill=kill)
            print(f"turn {number}: whole after {took_s:.1f} s")  # noqa: T201 - of a long run
            taken = ground.assert_as_intended(tmp_path / str(number), since=before)
            assert taken == {f"taker-{number}": TAKER}
            # The nodes shrink first: what is made anew spreads as its forerunners did.
            ground.resize(CORES)
            ground.take_away(f"taker-{number}")
            ground.wait_filled()


def _take(ground: Contested, name: str, how: dict[str, str], *, kill: Kill) -> float:
    """Let a taker come, with a kill; returns after how many seconds it is whole."""
    place, before = ground.place, len(ground.victims.evicted())
    ground.resize(CORES + IDLE)
    began = time.monotonic()
    with Partials(place.api, place.name, {name: TAKER}) as seen:
        adding = threading.Thread(target=lambda: ground.add_taker(name, **how))
        adding.start()
        kill.at_its_moment(lambda: len(ground.victims.evicted()) - before, seen.bound)
        adding.join()
        seen.wait_whole(timeout_s=ROUND_S / 2)
        assert seen.longest_s() < PARTIAL_S
    return time.monotonic() - began
