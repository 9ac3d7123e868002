"""Everything fails in turn while jobs run: all of them come to their end, whole, on no full node.

The extender is killed, and stopped for seconds and sent on; the controllers and kube-scheduler are
killed; a node is cordoned; PodGroups are deleted. The order is by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clusters import pumice
from tests.clusters.resources import NODES, POD_GROUPS
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand
from tests.e2e import harms
from tests.e2e.occupancy import Occupancy
from tests.scale import ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

JOBS = 8
PER_NODE = 4
"""Pods of one cpu that a node of the place has room for."""
STANDSTILL_S = 5.0
TURNS = max(ROUNDS // 4, 1)


@pytest.fixture
def place(rig: Rig) -> Iterator[Stand]:
    """Two nodes of 4 cpus, kubelets and controllers."""
    with stand.opened(rig) as made:
        yield made


def job(size: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "2"],
        "resources": {"requests": {"cpu": "1"}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {
        "minAvailable": size,
        "maxRetry": 100,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [{"name": "main", "replicas": size, "template": {"spec": spec}}],
    }


class Harm:
    """What goes wrong, one method each; afterwards all is up again."""

    def __init__(self, place: Stand) -> None:
        self._place = place
        self._rig = place.rig

    def all(self) -> list[Callable[[], None]]:
        return [
            self.kill_extender,
            self.stop_extender,
            self.kill_controllers,
            self.kill_scheduler,
            self.cordon,
            self.delete_groups,
        ]

    def kill_extender(self) -> None:
        harms.kill_extender(self._rig)

    def stop_extender(self) -> None:
        harms.stop_extender(self._rig, STANDSTILL_S)

    def kill_controllers(self) -> None:
        self._place.kill_controllers()
        self._place.start_controllers()

    def kill_scheduler(self) -> None:
        harms.kill_scheduler(self._rig)

    def cordon(self) -> None:
        node = f"{self._place.name}-0"
        self._rig.api.patch(NODES, node, {"spec": {"unschedulable": True}})
        time.sleep(1)
        self._rig.api.patch(NODES, node, {"spec": {"unschedulable": None}})

    def delete_groups(self) -> None:
        for group in self._place.all(POD_GROUPS)[::2]:
            name = group["metadata"]["name"]
            self._rig.api.delete(POD_GROUPS, name, namespace=self._place.name)


@pytest.mark.timeout(TURNS * 2 * ROUND_S)
def test_all_jobs_come_to_their_end_and_no_node_had_too_many(rig: Rig, place: Stand) -> None:
    die = dice()
    logs = [rig.controlplane.log(name) for name in ("extender", "controllers")]
    before = {log: log.stat().st_size for log in logs}
    with Occupancy(place.api, place.name) as seen:
        for turn in range(TURNS):
            for number in range(JOBS):
                place.submit(f"job-{turn}-{number}", job(die.randrange(2, 2 * PER_NODE + 1)))
            for harm in die.sample(Harm(place).all(), 6):
                harm()
                time.sleep(die.uniform(0, 1))
            place.wait_phase("Completed", timeout_s=ROUND_S)
    assert 0 < seen.most() <= PER_NODE
    pumice.wait_no_drift(rig.extender)
    for log, size in before.items():
        assert b"Traceback" not in log.read_bytes()[size:], log.name
