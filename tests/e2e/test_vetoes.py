"""What only the stock scheduler knows: the plan learns it and goes elsewhere.

Here that is where volumes are, which the configuration tells the planner not to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.resources import VOLUMES
from tests.clusters.rig import Setting, Stage
from tests.e2e.settings import HASTY, ROOT

pytestmark = pytest.mark.real

HOST = "kubernetes.io/hostname"


CONF = ROOT / "tests" / "e2e" / "stock-volumes.conf"
UNKNOWING = replace(HASTY, conf=CONF)
FORGETFUL = Setting(flags=("--veto-time=0",), conf=CONF)


@pytest.fixture
def place(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place(stage.rig(getattr(request, "param", UNKNOWING))) as made:
        yield made
        made.api.delete(VOLUMES, made.name)


def bound_volume(place: Place, *, nodes: list[str]) -> None:
    """A claim `data` bound to a volume that only those nodes reach."""
    claim_of = {"namespace": place.name, "name": "data", "kind": "PersistentVolumeClaim"}
    reachable = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": nodes}]}]
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    place.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": place.name},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "local": {"path": "/data"},
                "claimRef": claim_of,
                "nodeAffinity": {"required": {"nodeSelectorTerms": reachable}},
            },
        }
    )
    place.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "namespace": place.name,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                **common,
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": place.name,
            },
        }
    )


def with_claim(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def nodes_of(pods: list[Object]) -> set[str]:
    return {workloads.node_of(pod) for pod in pods}


@pytest.mark.parametrize("reached", [1, 2])
def test_a_gang_goes_where_its_volume_is(place: Place, reached: int) -> None:
    """A node that is not offered is not planned again for a while."""
    names = place.add_nodes(4, cpu="4")
    bound_volume(place, nodes=names[-reached:])
    place.add_gang("gang", 3, **with_claim("data"))
    assert nodes_of(place.wait_bound("gang", 3, timeout_s=40)) <= set(names[-reached:])


@pytest.mark.parametrize("place", [FORGETFUL], indirect=True)
def test_it_goes_there_also_when_no_refusal_is_remembered(place: Place) -> None:
    *_, last = place.add_nodes(4, cpu="4")
    bound_volume(place, nodes=[last])
    place.add_gang("gang", 3, **with_claim("data"))
    assert nodes_of(place.wait_bound("gang", 3, timeout_s=40)) == {last}


def test_a_gang_whose_volume_is_on_a_full_node_waits_whole(place: Place) -> None:
    full, _ = place.add_nodes(2, cpu="4")
    place.submit_one(workloads.pod("foreign", cpu="2", scheduler="other", nodeName=full))
    bound_volume(place, nodes=[full])
    place.add_gang("gang", 3, **with_claim("data"))
    with pytest.raises(AssertionError):
        place.wait_bound("gang", 1, timeout_s=4)

    place.delete_pod("foreign")
    assert nodes_of(place.wait_bound("gang", 3, timeout_s=60)) == {full}


def test_a_member_that_the_scheduler_cannot_place_blocks_nobody(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_group("stuck", 2)
    place.submit_one(workloads.pod("stuck-0", group="stuck"))
    place.submit_one(workloads.pod("stuck-1", group="stuck", **with_claim("missing")))
    place.add_gang("next", 2)
    place.wait_bound("next", 2, timeout_s=40)
    assert not place.bound("stuck")
