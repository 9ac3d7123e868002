"""Programs that go away: the API server, the extender, kube-scheduler."""

from __future__ import annotations

import threading
import time

import pytest

from app.model.pod import PLACED_CONDITION
from tests.clusters import workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.rig import Rig
from tests.scale import FULL, ROUND_S

pytestmark = pytest.mark.real

OUTAGE_S = 10.0 if FULL else 5.0
GANGS = {f"gang-{number}": 10 for number in range(4)}


def submit(place: Place) -> None:
    place.add_nodes(4, cpu="16")
    for name, size in GANGS.items():
        place.add_gang(name, size)


def test_the_api_server_is_killed_while_gangs_are_bound(rig: Rig) -> None:
    with Place(rig) as place, Partials(place.api, place.name, GANGS) as seen:
        submit(place)
        seen.wait_bound(1, timeout_s=ROUND_S)
        rig.controlplane.stop_apiserver(kill=True)
        time.sleep(OUTAGE_S)
        rig.controlplane.start_apiserver()
        seen.wait_whole(timeout_s=ROUND_S)


def test_the_api_server_stands_still_while_gangs_are_bound(rig: Rig) -> None:
    with Place(rig) as place, Partials(place.api, place.name, GANGS) as seen:
        submit(place)
        seen.wait_bound(1, timeout_s=ROUND_S)
        rig.controlplane.apiserver.pause()
        threading.Timer(OUTAGE_S, rig.controlplane.apiserver.resume).start()
        seen.wait_whole(timeout_s=ROUND_S)
        place.wait_nothing_held(timeout_s=ROUND_S)


def test_nobody_is_bound_while_the_extender_is_away(rig: Rig) -> None:
    with Place(rig) as place:
        place.add_nodes(2, cpu="4")
        rig.extender.stop()
        place.add_group("gang", 8)
        place.submit_ungated("gang", 8)
        with pytest.raises(AssertionError):
            place.wait_bound("gang", 1, timeout_s=3)
        rig.restart_extender()
        place.wait_bound("gang", 8)


def test_what_the_extender_said_before_it_was_killed_does_not_stay_on_bound_pods(rig: Rig) -> None:
    with Place(rig) as place:
        place.add_nodes(1, cpu="2")
        place.submit_one(workloads.pod("first"))
        place.wait_pod_bound("first")
        place.add_gang("gang", 2)
        for name in ("gang-0", "gang-1"):
            place.wait_pod_condition(name, PLACED_CONDITION, "False")
        rig.extender.kill()
        place.delete_pod("first")
        rig.restart_extender()
        place.wait_bound("gang", 2)
        for name in ("gang-0", "gang-1"):
            place.wait_pod_condition(name, PLACED_CONDITION, "True", says="planned on")


def test_the_scheduler_is_killed_while_gangs_are_bound(rig: Rig) -> None:
    with Place(rig) as place, Partials(place.api, place.name, GANGS) as seen:
        submit(place)
        seen.wait_bound(1, timeout_s=ROUND_S)
        rig.scheduler.kill()
        rig.start_scheduler()
        seen.wait_whole(timeout_s=ROUND_S)
