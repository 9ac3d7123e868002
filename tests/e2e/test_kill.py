"""kill -9 of the extender at random moments while gangs are being bound.

Whatever was bound when it died, the next extender learns from the API server: the rest of a gang
that is bound in part goes first, nothing is counted twice, every gang runs. The extender writes
slowly here, so that most kills come between the bindings of one gang. Half of the gangs need all of
their members because these make their sub-groups whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.clusters import resources, workloads
from tests.clusters.client import Object
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.rig import Rig, Stage
from tests.e2e.settings import PARTIAL_S, SLOW
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

GANGS = {f"gang-{number}": 20 for number in range(10)}
PODS = sum(GANGS.values())
PART = "example.com/part"
PART_SIZE = 4


@pytest.fixture
def slow_rig(stage: Stage) -> Rig:
    return stage.rig(SLOW)


def submit(place: Place) -> None:
    for number, (name, size) in enumerate(GANGS.items()):
        if number % 2:
            place.add_group(name, 1, subGroupPolicy=[in_parts(size // PART_SIZE)])
        else:
            place.add_group(name, size)
    place.submit(pod for name, size in GANGS.items() for pod in labelled(name, size))


def in_parts(least: int) -> Object:
    return {
        "name": "parts",
        "matchLabelKeys": [PART],
        "subGroupSize": PART_SIZE,
        "minSubGroups": least,
    }


def labelled(name: str, size: int) -> Iterator[Object]:
    for number, pod in enumerate(workloads.members(name, size)):
        pod["metadata"].setdefault("labels", {})[PART] = str(number // PART_SIZE)
        yield pod


def in_background(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_newcomers_do_not_take_the_room_of_a_gang_in_part(slow_rig: Rig) -> None:
    with Place(slow_rig) as place:
        place.add_nodes(3, cpu="16")
        queue, idle = place.add_queue("queue"), place.add_queue("idle")
        with Partials(place.api, place.name, {"torn": 40}) as seen:
            place.add_group("torn", 40, queue=queue)
            submitting = in_background(lambda: place.submit(workloads.members("torn", 40)))
            seen.fire_at(5, slow_rig.extender.kill, timeout_s=ROUND_S / 3)
            submitting.join()
            assert seen.partial() == ["torn"]
            place.add_gang("rival", 20, spec={"queue": idle})
            slow_rig.restart_extender()
            seen.wait_whole(timeout_s=PARTIAL_S)
        assert not place.bound("rival")
        place.delete_gang("torn")
        place.wait_bound("rival", 20)


@pytest.mark.timeout(ROUNDS * ROUND_S)
def test_gangs_are_made_whole_after_a_kill_at_any_moment(slow_rig: Rig) -> None:
    die = dice()
    partial, longest = 0, 0.0
    with Place(slow_rig) as place:
        place.add_nodes(20, cpu="16")
        for number in range(ROUNDS):
            with Partials(place.api, place.name, GANGS) as seen:
                submitting = in_background(lambda: submit(place))
                seen.fire_at(die.randrange(1, PODS), slow_rig.extender.kill, timeout_s=ROUND_S / 3)
                time.sleep(die.uniform(0, 1))
                submitting.join()
                died_with, broken = seen.bound(), seen.partial()
                slow_rig.restart_extender()
                seen.wait_whole(timeout_s=ROUND_S / 2)
                lasted = seen.longest_s()
            partial, longest = partial + bool(broken), max(longest, lasted)
            print(  # noqa: T201 - the figures of a long run
                f"round {number}: {died_with} of {PODS} bound at the kill, "
                f"{len(broken)} gangs in part, longest {lasted:.1f} s"
            )
            assert lasted < PARTIAL_S, f"round {number}: {broken}"
            place.wait_nothing_held()
            place.api.delete_all(resources.POD_GROUPS, namespace=place.name)
            place.api.delete_all(resources.PODS, namespace=place.name)
            place.wait_gone()
    print(f"{ROUNDS} rounds, {partial} with gangs in part, longest {longest:.1f} s")  # noqa: T201
