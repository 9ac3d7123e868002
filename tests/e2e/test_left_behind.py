"""What an extender that was killed had told pods and kube-scheduler, which both go on."""

from __future__ import annotations

import time

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import PODS, QUEUES
from tests.clusters.rig import Rig, Stage

pytestmark = pytest.mark.real

FILTERED = 'pumice_extender_call_seconds_count{verb="filter"}'
QUIET_S = 5


@pytest.fixture
def rig(stage: Stage) -> Rig:
    return stage.rig()


def wait_left_alone(rig: Rig) -> None:
    """Wait until kube-scheduler has not asked for anybody for a while: back-off is over."""
    seen = [-1.0]

    def is_quiet() -> bool:
        seen.append(rig.extender.metrics().get(FILTERED, 0.0))
        time.sleep(QUIET_S / 10)
        return len(seen) > 10 and seen[-1] == seen[-10]

    wait_until(is_quiet, timeout_s=20, what="nobody is asked for")


def test_a_pod_that_was_refused_before_comes_when_its_queue_has_room(rig: Rig) -> None:
    """kube-scheduler knows nothing of queues, and would try it again after five minutes."""
    with Place(rig) as place:
        place.add_nodes(1, cpu="4")
        queue = place.add_queue("queue", capability={"cpu": "1"})
        pod = workloads.pod("asked", queue=queue, cpu="2")
        pod["metadata"]["annotations"] |= workloads.UNGATED
        place.submit_one(pod)
        place.wait_pod_condition("asked", "PodScheduled", "False", says="queue")
        wait_left_alone(rig)
        rig.extender.kill()
        rig.restart_extender()
        place.api.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "4"}}})
        place.wait_pod_bound("asked")


def test_a_nomination_from_before_is_no_claim(rig: Rig) -> None:
    """It was written by an extender that died before it opened the gate."""
    with Place(rig) as place:
        (node,) = place.add_nodes(1, cpu="2")
        rig.extender.kill()
        place.submit_one(workloads.pod("older", cpu="2"))
        time.sleep(1)  # creation times are whole seconds
        place.submit_one(workloads.pod("told", cpu="2"))
        told = {"status": {"nominatedNodeName": node}}
        place.api.patch(PODS, "told", told, namespace=place.name, subresource="status")
        rig.restart_extender()
        place.wait_pod_bound("older")
        assert not place.pod("told")["spec"].get("nodeName")
        place.delete_pod("older")
        place.wait_pod_bound("told")
