"""Extended resources that only a DeviceClass maps: kube-scheduler allocates the devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import DEVICE_CLASSES, DEVICE_SLICES
from tests.clusters.rig import Stage
from tests.e2e.settings import HASTY

pytestmark = pytest.mark.real


@pytest.fixture
def place(stage: Stage) -> Iterator[Place]:
    with Place(stage.rig(HASTY)) as made:
        yield made
        made.api.delete(DEVICE_SLICES, made.name)
        made.api.delete(DEVICE_CLASSES, made.name)


def resource(place: Place) -> str:
    return f"example.com/{place.name}"


def map_devices(place: Place) -> None:
    """All devices of this place's driver are asked for by its resource."""
    ours = {"cel": {"expression": f'device.driver == "{place.name}.example.com"'}}
    place.api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": place.name},
            "spec": {"selectors": [ours], "extendedResourceName": resource(place)},
        }
    )


def add_devices(place: Place, node: str, count: int) -> None:
    place.api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": place.name},
            "spec": {
                "driver": f"{place.name}.example.com",
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "nodeName": node,
                "devices": [{"name": f"gpu-{number}"} for number in range(count)],
            },
        }
    )


def add_gang(place: Place, name: str, count: int) -> None:
    asked = {"cpu": "1", resource(place): "1"}
    place.add_gang(name, count, resources={"requests": asked, "limits": asked})


def test_a_gang_gets_devices_of_the_node_that_has_them(place: Place) -> None:
    *_, last = place.add_nodes(3, cpu="8")
    map_devices(place)
    add_devices(place, last, count=3)
    add_gang(place, "gang", 3)
    bound = place.wait_bound("gang", 3, timeout_s=60)
    assert {workloads.node_of(pod) for pod in bound} == {last}


def test_a_gang_whose_devices_nobody_maps_yet_waits_whole(place: Place) -> None:
    [node] = place.add_nodes(1, cpu="8")
    add_devices(place, node, count=2)
    add_gang(place, "gang", 2)
    place.wait_condition("gang", "Reserved", "False", says=f"{resource(place)} asked 2, free 0")
    map_devices(place)
    place.wait_bound("gang", 2, timeout_s=60)


def test_a_gang_is_never_bound_in_part_where_devices_are_too_few(place: Place) -> None:
    [node] = place.add_nodes(1, cpu="8")
    map_devices(place)
    add_devices(place, node, count=2)
    add_gang(place, "gang", 3)
    with pytest.raises(AssertionError):
        place.wait_bound("gang", 1, timeout_s=10)
