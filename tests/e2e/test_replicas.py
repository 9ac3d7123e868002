"""Two extenders beside two schedulers: the one whose scheduler holds the Lease decides.

kube-schedulers on one machine cannot be told apart by host name, so the change of leaders is
written into the Lease by the test, and only the leader's scheduler runs, as standing by is what
kube-scheduler does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.controlplane import ControlPlane
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import LEASES
from tests.clusters.rig import NAMESPACE, Rig, Setting, Stage

pytestmark = pytest.mark.real

LEASE = "pumice-scheduler"


def lead(controlplane: ControlPlane, who: str) -> None:
    """Write the Lease as kube-scheduler would, for longer than any test."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": NAMESPACE},
        "spec": {
            "holderIdentity": f"{who}_5f1c",
            "leaseDurationSeconds": 3600,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    controlplane.api.apply(lease)


@pytest.fixture
def no_lease(stage: Stage, installed: ControlPlane) -> Iterator[None]:
    stage.clear()
    yield
    installed.api.delete(LEASES, LEASE, namespace=NAMESPACE)


def replica(controlplane: ControlPlane, who: str) -> Rig:
    return Rig(
        controlplane,
        Setting(
            leader_elect=True,
            env={"PUMICE_LEADER_IDENTITY": who},
            extender_name=f"extender-{who}",
            scheduler_name=f"scheduler-{who}",
        ),
    )


@pytest.mark.usefixtures("no_lease")
def test_the_leader_changes_in_the_middle_of_a_gang(installed: ControlPlane) -> None:
    lead(installed, "one")
    with replica(installed, "one") as one, Place(one) as place:
        place.add_nodes(2, cpu="2")
        place.add_group("gang", 4)
        place.submit(workloads.members("gang", 3))
        place.wait_held("gang", 3)

        one.scheduler.kill()
        lead(installed, "two")
        with replica(installed, "two") as two:
            wait_until(
                lambda: not one.extender.get("/debug/gangs"), timeout_s=10, what="one keeps nothing"
            )
            place.cluster = two
            place.wait_held("gang", 3)
            place.submit_one(workloads.pod("gang-3", group="gang"))
            place.wait_bound("gang", 4)
            assert not one.extender.get("/debug/gangs")
            place.wait_nothing_held()
            place.clear()


@pytest.mark.usefixtures("no_lease")
def test_a_scheduler_that_elects_itself_is_recognized_by_its_lease(
    installed: ControlPlane,
) -> None:
    elects = Setting(leader_elect=True, scheduler_options=("--leader-elect=true",))
    with Rig(installed, elects) as rig, Place(rig) as place:
        place.add_nodes(1, cpu="4")
        place.add_gang("gang", 4)
        place.wait_bound("gang", 4, timeout_s=40)
