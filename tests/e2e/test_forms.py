"""The three forms in which the stock scheduler is wired to the extender, each once.

The configuration is what `pumice scheduler-config` prints, the rights are those of the accounts in
`manifests/install.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import installation, workloads
from tests.clusters.place import Place
from tests.clusters.rig import Rig, Setting, Stage

pytestmark = pytest.mark.real

STOCK = "default-scheduler"


def filter_calls(rig: Rig) -> float:
    seen = rig.extender.metrics()
    return seen.get('pumice_extender_call_seconds_count{verb="filter"}', 0)


@pytest.fixture
def marking(stage: Stage) -> Iterator[None]:
    """The policy that marks our pods, in force."""
    with installation.marking(stage.controlplane.api):
        yield


def test_form_a_schedules_ours_and_never_sees_others(stage: Stage) -> None:
    rig = stage.rig(Setting(form="a"))
    with Place(rig) as place:
        place.add_nodes(2, cpu="4")
        before = filter_calls(rig)
        place.submit_one(workloads.pod("foreign", scheduler=STOCK))
        place.add_gang("gang", 6)
        place.wait_bound("gang", 6)
        assert not workloads.node_of(place.pod("foreign"))
        assert filter_calls(rig) - before <= 12


@pytest.mark.usefixtures("marking")
def test_form_b_schedules_all_and_sends_only_ours(stage: Stage) -> None:
    rig = stage.rig(Setting(form="b"))
    with Place(rig) as place:
        place.add_nodes(2, cpu="4")
        before = filter_calls(rig)
        place.submit([workloads.pod(f"plain-{i}", scheduler=STOCK) for i in range(2)])
        for number in range(2):
            place.wait_pod_bound(f"plain-{number}")
        assert filter_calls(rig) == before

        place.add_gang("gang", 6)
        bound = place.wait_bound("gang", 6)
        assert all(installation.is_marked(pod) for pod in bound)
        assert filter_calls(rig) > before

        place.add_gang("next", 2)
        place.wait_condition("next", "Reserved", "False", says="free 0 of 8")
        assert not place.bound("next")


def test_form_c_schedules_all_and_keeps_foreign_pods_off_reserved_room(stage: Stage) -> None:
    rig = stage.rig(Setting(form="c"))
    with Place(rig) as place:
        place.add_nodes(1, cpu="4")
        place.submit_one(workloads.pod("plain-0", scheduler=STOCK))
        place.wait_pod_bound("plain-0")
        place.add_group("gang", 3, minResources={"cpu": "3", "memory": "192Mi"})
        place.wait_condition("gang", "Reserved")

        place.submit_one(workloads.pod("plain-1", scheduler=STOCK))
        says = "room is reserved for a gang"
        place.wait_pod_condition("plain-1", "PodScheduled", "False", says=says)
        place.submit(workloads.members("gang", 3))
        place.wait_bound("gang", 3)
        assert not workloads.node_of(place.pod("plain-1"))

        place.delete_gang("gang")
        place.wait_pod_bound("plain-1", timeout_s=40)
