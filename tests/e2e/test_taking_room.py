"""A gang takes what it needs from 1,000 running pods, and a queue takes back its share.

No eviction is more than needed, none is in vain, and no pod is evicted twice, though each evicted
pod is made anew at once and waits for room. (`make test` has a smaller cluster.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.partials import Partials
from tests.clusters.rig import Stage
from tests.e2e import contested
from tests.e2e.contested import CORES, IDLE, MINIMUM, PODS, TAKER, Contested
from tests.e2e.settings import EVICTING
from tests.scale import ROUND_S

pytestmark = pytest.mark.real

SHARE = 5
"""So many gangs of one core for each node are half of the cluster."""


@pytest.fixture
def ground(stage: Stage) -> Iterator[Contested]:
    with contested.opened(stage.rig(EVICTING)) as made:
        yield made


@pytest.mark.timeout(3 * ROUND_S)
def test_a_gang_takes_no_more_than_it_needs(ground: Contested, tmp_path: Path) -> None:
    place = ground.place
    urgent = place.add_priority_class("urgent", 1000)
    ground.fill("low")
    ground.resize(CORES + IDLE)
    with Partials(place.api, place.name, {"taker": TAKER}) as seen:
        ground.add_taker("taker", priority=urgent)
        seen.wait_whole(timeout_s=ROUND_S)
    assert ground.assert_as_intended(tmp_path) == {"taker": TAKER}
    bound = ground.victims.bound()
    assert all(count >= MINIMUM for count in bound.values()), bound
    assert bound.total() == PODS


@pytest.mark.timeout(3 * ROUND_S)
def test_a_queue_takes_back_its_share_and_no_more(ground: Contested, tmp_path: Path) -> None:
    place = ground.place
    ours, theirs = place.add_queue("ours"), place.add_queue("theirs")
    ground.fill("theirs", queue=theirs)
    names = [f"ours-{number}" for number in range(SHARE)]
    with Partials(place.api, place.name, dict.fromkeys(names, TAKER)) as seen:
        for name in names:
            place.add_gang(name, TAKER, spec={"queue": ours})
        seen.wait_whole(timeout_s=ROUND_S)
    place.add_gang("more", TAKER, spec={"queue": ours})
    place.wait_summary("more", f"queue {ours} would hold more than it deserves")
    taken = ground.assert_as_intended(tmp_path)
    assert taken == dict.fromkeys(names, TAKER)
