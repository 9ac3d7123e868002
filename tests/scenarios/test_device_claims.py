"""Claims of devices: counted for queues, looked at before gangs, allocated by kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object, Objects
from tests.clusters.place import Place
from tests.clusters.resources import (
    DEVICE_CLAIM_TEMPLATES,
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    QUEUES,
)
from tests.scenarios.confs import conf


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "capacity", "nodeorder")


class Devices:
    """A DeviceClass of the place's own, and a pool of devices on each node that gets one."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name = place.name
        self.driver = f"{place.name}.example.com"
        ours = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        body = workloads.item(DEVICE_CLASSES, self.name, spec={"selectors": [ours]})
        place.api.create(body, resource=DEVICE_CLASSES)
        self._slices: list[str] = []

    def add(self, node: str, *names: str, **fields: Any) -> None:
        """The driver offers these devices on the node."""
        spec = {
            "driver": self.driver,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [{"name": name, **fields} for name in names],
        }
        self.place.api.create(
            workloads.item(DEVICE_SLICES, node, spec=spec), resource=DEVICE_SLICES
        )
        self._slices.append(node)

    def spec(self, count: int = 1, **exactly: Any) -> Object:
        """What a claim asks for."""
        asked = {"deviceClassName": self.name, "count": count, **exactly}
        return {"devices": {"requests": [{"name": "r", "exactly": asked}]}}

    def template(self, name: str, count: int = 1, **exactly: Any) -> None:
        body = workloads.item(
            DEVICE_CLAIM_TEMPLATES, name, spec={"spec": self.spec(count, **exactly)}
        )
        self.place.api.create(body, resource=DEVICE_CLAIM_TEMPLATES, namespace=self.place.name)

    def claim(self, name: str, count: int = 1) -> None:
        body = workloads.item(DEVICE_CLAIMS, name, spec=self.spec(count))
        self.place.api.create(body, resource=DEVICE_CLAIMS, namespace=self.place.name)

    def clear(self) -> None:
        for name in self._slices:
            self.place.api.delete(DEVICE_SLICES, name)
        self.place.api.delete(DEVICE_CLASSES, self.name)

    # What is there ------------------------------------------------------------------------------

    def allocated(self) -> list[tuple[str, str]]:
        """Nodes and devices that claims have, one entry for each time."""
        claims = self.place.api.list(DEVICE_CLAIMS, namespace=self.place.name)
        results = [
            result
            for claim in claims
            for result in claim.get("status", {})
            .get("allocation", {})
            .get("devices", {})
            .get("results", [])
        ]
        return sorted((result["pool"], result["device"]) for result in results)


@pytest.fixture
def devices(place: Place) -> Iterator[Devices]:
    made = Devices(place)
    yield made
    made.clear()


def own(template: str) -> dict[str, Any]:
    """The parts of a pod spec by which each pod has a claim of its own."""
    return _claiming({"resourceClaimTemplateName": template})


def shared(claim: str) -> dict[str, Any]:
    """The parts of a pod spec by which pods share a claim."""
    return _claiming({"resourceClaimName": claim})


def _claiming(of: dict[str, str]) -> dict[str, Any]:
    return {
        "resourceClaims": [{"name": "c", **of}],
        "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "c"}]},
    }


def nodes_of(pods: Objects) -> set[str]:
    return {workloads.node_of(pod) for pod in pods}


def test_a_gang_gets_devices_for_all_its_pods(place: Place, devices: Devices) -> None:
    few, many = place.add_nodes(2, cpu="8")
    devices.add(few, "a")
    devices.add(many, "a", "b", "c", "d")
    devices.template("two", 2)
    place.add_gang("ours", 2, **own("two"))
    assert nodes_of(place.wait_bound("ours", 2)) == {many}
    assert devices.allocated() == [(many, name) for name in "abcd"]


def test_a_gang_waits_with_numbers_until_devices_are_free(place: Place, devices: Devices) -> None:
    few, many = place.add_nodes(2, cpu="8")
    devices.add(few, "a")
    devices.add(many, "a", "b", "c")
    devices.template("one")
    devices.template("two", 2)
    place.add_gang("first", 2, nodeSelector={"kubernetes.io/hostname": many}, **own("one"))
    place.wait_bound("first", 2)
    place.add_gang("second", 1, **own("two"))
    place.wait_summary("second", f"1 device of class {devices.name} free; 2 asked")
    assert len(devices.allocated()) == 2
    place.delete_gang("first")
    place.wait_bound("second", 1)


def test_a_gang_that_cannot_have_devices_for_all_gets_none(place: Place, devices: Devices) -> None:
    few, many = place.add_nodes(2, cpu="8")
    devices.add(few, "a")
    devices.add(many, "a", "b", "c")
    devices.template("two", 2)
    place.add_gang("ours", 2, **own("two"))
    place.wait_summary("ours", f"of class {devices.name} free; 2 asked")
    assert (place.bound("ours"), devices.allocated()) == ([], [])


def test_a_gang_that_asks_for_more_than_there_is_waits_in_its_queue(
    place: Place, devices: Devices
) -> None:
    [node] = place.add_nodes(1, cpu="8")
    devices.add(node, "a", "b", "c")
    devices.template("two", 2)
    place.add_gang("ours", 2, **own("two"))
    place.wait_summary("ours", f"deviceclass/{devices.name} asked 4, free 3 of 3")
    assert (place.bound("ours"), devices.allocated()) == ([], [])


def test_pods_that_share_a_claim_are_charged_once(place: Place, devices: Devices) -> None:
    queue = place.add_queue("q", capability={f"deviceclass/{devices.name}": "2"})
    for node in place.add_nodes(2, cpu="8"):
        devices.add(node, "a", "b")
    devices.claim("both", 2)
    place.add_gang("ours", 3, spec={"queue": queue}, **shared("both"))
    assert len(nodes_of(place.wait_bound("ours", 3))) == 1
    assert len(devices.allocated()) == 2
    resource = f"deviceclass/{devices.name}"
    place.api.until_one(QUEUES, queue, lambda seen: held_by(seen).get(resource) == "2")


def held_by(queue: Object) -> dict[str, str]:
    found: dict[str, str] = queue.get("status", {}).get("allocated") or {}
    return found


def test_a_queue_is_limited_by_the_devices_of_its_pods(place: Place, devices: Devices) -> None:
    resource = f"deviceclass/{devices.name}"
    queue = place.add_queue("q", capability={resource: "3"})
    [node] = place.add_nodes(1, cpu="8")
    devices.add(node, *"abcdef")
    devices.template("two", 2)
    place.add_gang("ours", 2, spec={"queue": queue}, **own("two"))
    place.wait_summary("ours", f"{resource} asked 4, free 3")
    place.add_gang("small", 1, spec={"queue": queue}, **own("two"))
    place.wait_bound("small", 1)


def test_a_pod_waits_for_its_template(place: Place, devices: Devices) -> None:
    [node] = place.add_nodes(1, cpu="8")
    devices.add(node, "a")
    place.add_gang("ours", 1, **own("late"))
    place.wait_summary("ours", f"ResourceClaimTemplate {place.name}/late does not exist")
    devices.template("late")
    place.wait_bound("ours", 1)


def test_a_selector_of_a_request_is_heeded(place: Place, devices: Devices) -> None:
    small, big = place.add_nodes(2, cpu="8")
    devices.add(small, "a", capacity={"memory": {"value": "40Gi"}})
    devices.add(big, "a", capacity={"memory": {"value": "80Gi"}})
    size = f'device.capacity["{devices.driver}"].memory.compareTo(quantity("80Gi")) >= 0'
    devices.template("big", selectors=[{"cel": {"expression": size}}])
    place.add_gang("ours", 1, **own("big"))
    assert nodes_of(place.wait_bound("ours", 1)) == {big}
