"""kill -9 of the extender while gangs that each need one rack are planned and bound.

Whatever was bound when it died: the next extender puts the rest of each gang where its members are,
so every gang ends whole in one rack. The racks have room for these gangs and for nothing besides: a
gang that began in two racks could never be whole. The extender writes slowly, so that most kills
come between plan and bind of some gang.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.clusters import resources, workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.rig import Rig, Stage
from tests.e2e.settings import PARTIAL_S, SLOW
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

RACKS = 4
NODES = 4
"""Of each rack, of eight cores."""
SIZE = 16
"""Pods of a gang, of one core: half of a rack."""
GANGS = {f"gang-{number}": SIZE for number in range(2 * RACKS)}
PODS = sum(GANGS.values())
IN_A_RACK = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


@pytest.fixture
def slow_rig(stage: Stage) -> Rig:
    return stage.rig(SLOW)


def add_racks(place: Place) -> Mapping[str, str]:
    """Racks without any other room than these gangs need; node -> rack."""
    rack_of: dict[str, str] = {}
    for number in range(RACKS):
        nodes = place.add_nodes(NODES, cpu="8")
        rack = place.add_hyper_node(f"rack-{number}", 1, *nodes)
        rack_of |= dict.fromkeys(nodes, rack)
    return rack_of


def submit(place: Place) -> None:
    for name, size in GANGS.items():
        place.add_gang(name, size, spec=IN_A_RACK)


def racks_of(place: Place, rack_of: Mapping[str, str]) -> Mapping[str, set[str]]:
    """For each gang the racks that its members are in."""
    found: dict[str, set[str]] = defaultdict(set)
    for pod in place.bound():
        group = pod["metadata"]["annotations"][workloads.GROUP]
        found[group].add(rack_of[workloads.node_of(pod)])
    return found


@pytest.mark.timeout(ROUNDS * ROUND_S)
def test_every_gang_ends_in_one_rack_after_a_kill_between_plan_and_bind(slow_rig: Rig) -> None:
    die = dice()
    with Place(slow_rig) as place:
        rack_of = add_racks(place)
        for number in range(ROUNDS):
            with Partials(place.api, place.name, GANGS) as seen:
                submitting = threading.Thread(target=lambda: submit(place))
                submitting.start()
                seen.fire_at(die.randrange(1, PODS), slow_rig.extender.kill, timeout_s=ROUND_S / 3)
                time.sleep(die.uniform(0, 1))
                submitting.join()
                died_with, broken = seen.bound(), seen.partial()
                slow_rig.restart_extender()
                seen.wait_whole(timeout_s=ROUND_S / 2)
                lasted = seen.longest_s()
            print(  # noqa: T201 - the figures of a long run
                f"round {number}: {died_with} of {PODS} bound at the kill, "
                f"{len(broken)} gangs in part, longest {lasted:.1f} s"
            )
            assert lasted < PARTIAL_S, f"round {number}: {broken}"
            found = racks_of(place, rack_of)
            assert {name: len(found[name]) for name in GANGS} == dict.fromkeys(GANGS, 1)
            place.wait_nothing_held()
            place.api.delete_all(resources.POD_GROUPS, namespace=place.name)
            place.api.delete_all(resources.PODS, namespace=place.name)
            place.wait_gone()
