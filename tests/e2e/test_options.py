"""Options of the extender that change what pods meet, each with the stock kube-scheduler."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import QUEUES
from tests.clusters.rig import Setting, Stage

pytestmark = pytest.mark.real

PROTECTED = 'pumice_extender_answers_total{answer="protect",verb="filter"}'


def test_a_single_pod_that_names_no_queue_is_in_the_default_one(stage: Stage) -> None:
    rig = stage.rig(Setting(flags=("--default-queue=research",)))
    try:
        with Place(rig) as place:
            place.add_nodes(1, cpu="2")
            rig.api.until_one(QUEUES, "research", bool, timeout_s=20)
            place.submit_one(workloads.pod("alone"))
            place.submit_one(workloads.pod("other", queue="default"))
            place.wait_pod_bound("alone")
            place.wait_pod_bound("other")
            assert place.explain("alone")["queue"] == "research"
            assert place.explain("other")["queue"] == "default"
    finally:
        stage.clear()
        rig.api.delete(QUEUES, "research")


def test_a_gang_that_trickles_in_is_held_for_so_long_at_most(stage: Stage) -> None:
    rig = stage.rig(Setting(flags=("--barrier-limit=4", "--barrier-timeout=60")))
    with Place(rig) as place:
        place.add_nodes(2, cpu="4")
        place.add_group("slow", 8)
        for number in range(3):
            place.submit_one(workloads.pod(f"slow-{number}", group="slow"))
            place.wait_held("slow", number + 1)
        place.add_gang("whole", 8)
        place.wait_bound("whole", 8)
        assert not place.bound("slow")


@pytest.mark.parametrize("above", [0, 1000])
def test_waiting_pods_run_whether_they_are_protected_from_or_not(stage: Stage, above: int) -> None:
    with Place(stage.rig(Setting(flags=(f"--protect-above={above}",)))) as place:
        place.add_nodes(1, cpu="2")
        place.add_group("gang", 4)
        place.submit_ungated("gang", 4)
        place.submit_one(workloads.pod("passing"))
        place.wait_pod_bound("passing")
        assert not place.bound("gang")
        assert (place.cluster.extender.metrics().get(PROTECTED, 0) > 0) is (above == 0)
        place.add_nodes(1, cpu="4")
        place.wait_bound("gang", 4, timeout_s=60)
