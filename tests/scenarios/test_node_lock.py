"""deviceshare with node locks: one pod at a time is bound to a node, until it has its devices.

The device plugin is played here as that of Volcano behaves: it is not told which pod it serves. It
takes the one that was bound first of those that are still to get devices.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import NODES, PODS
from tests.scenarios.confs import conf
from tests.scenarios.test_deviceshare import add_gang, add_gpus

LOCK, PHASE = "hamivgpu", "volcano.sh/bind-phase"
TOLD, DONE = "volcano.sh/devices-to-allocate", "volcano.sh/vgpu-ids-new"
OLDER_S = 301


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    shares = {
        "name": "deviceshare",
        "arguments": {"deviceshare.VGPUEnable": "true", "deviceshare.NodeLockEnable": "true"},
    }
    return conf("predicates", "proportion", "nodeorder", shares)


@pytest.fixture(autouse=True)
def may_lock(place: Place) -> Iterator[None]:
    """The right to write to nodes, which the extender does not have otherwise."""
    found = documents(ROOT / "scheduler-config" / "node-lock-rights.yaml")
    for item in found:
        place.api.apply(item)
    yield
    for item in found:
        place.api.delete(place.api.resource_of(item), item["metadata"]["name"])


class DevicePlugin:
    """That of one node; ``served`` are the pods that it gave devices, in turn, and which."""

    def __init__(self, place: Place, node: str) -> None:
        self._place = place
        self.node = node
        self.served: list[tuple[str, str]] = []

    def lock(self) -> str:
        """What the lock of the node says; empty: it is free."""
        annotations = self._place.api.get(NODES, self.node)["metadata"].get("annotations", {})
        return str(annotations.get(LOCK, ""))

    def wait_asked(self) -> Object:
        """Wait until a pod is bound here that is to get devices; returns it."""
        found: list[Object] = []

        def is_asked() -> bool:
            found[:] = self._waiting()
            return bool(found) and bool(self.lock())

        wait_until(is_asked, timeout_s=30, what=f"the device plugin of {self.node} is asked")
        assert len(found) == 1, "one pod at a time"
        return found[0]

    def serve(self) -> str:
        """Give the pod that waits the devices that its annotations say; returns its name."""
        pod = self.wait_asked()
        name, annotations = pod["metadata"]["name"], pod["metadata"]["annotations"]
        self.served.append((name, annotations[TOLD]))
        done = {"metadata": {"annotations": {PHASE: "success", TOLD: ""}}}
        self._place.api.patch(PODS, name, done, namespace=self._place.name)
        self.free()
        return str(name)

    def free(self) -> None:
        """Take the lock away."""
        self._place.api.patch(NODES, self.node, {"metadata": {"annotations": {LOCK: None}}})

    def age_lock(self) -> None:
        """Let the lock be one that a plugin which died has left."""
        then = datetime.fromtimestamp(time.time() - OLDER_S, UTC)  # noqa: TID251 - the node's clock
        said = {LOCK: then.strftime("%Y-%m-%dT%H:%M:%SZ")}
        self._place.api.patch(NODES, self.node, {"metadata": {"annotations": said}})

    def _waiting(self) -> list[Object]:
        pods = self._place.api.list(PODS, namespace=self._place.name)
        return [
            pod
            for pod in pods
            if workloads.node_of(pod) == self.node
            and pod["metadata"].get("annotations", {}).get(PHASE) == "allocating"
        ]


def test_the_plugin_serves_pods_one_by_one_and_each_gets_its_own(place: Place) -> None:
    plugin = DevicePlugin(place, add_gpus(place, "GPU-a", "GPU-b"))
    sizes = {"first": 24, "second": 16, "third": 8}
    for name, gib in sizes.items():
        add_gang(place, name, 1, gib=gib)
    served = [plugin.serve() for _ in sizes]
    assert sorted(served) == [f"{name}-0" for name in sorted(sizes)]
    assert not plugin.lock()
    for name, told in plugin.served:
        pod = place.api.get(PODS, name, namespace=place.name)
        assert told == pod["metadata"]["annotations"][DONE]
        assert f",NVIDIA,{sizes[name.removesuffix('-0')] * 1024},0:" in told


def test_members_of_a_gang_are_served_in_turn(place: Place) -> None:
    plugin = DevicePlugin(place, add_gpus(place, "GPU-a", "GPU-b"))
    add_gang(place, "ours", 3, gib=16)
    served = [plugin.serve() for _ in range(3)]
    assert sorted(served) == ["ours-0", "ours-1", "ours-2"]
    place.wait_bound("ours", 3)


def test_a_plugin_that_dies_with_the_lock_holds_others_up_until_that_is_old(
    place: Place,
) -> None:
    plugin = DevicePlugin(place, add_gpus(place, "GPU-a", "GPU-b"))
    add_gang(place, "first", 1, gib=8)
    first = plugin.wait_asked()["metadata"]["name"]
    add_gang(place, "second", 1, gib=8)
    with pytest.raises(AssertionError):
        place.wait_bound("second", 1, timeout_s=4)
    done = {"metadata": {"annotations": {PHASE: "failed"}}}
    place.api.patch(PODS, first, done, namespace=place.name)
    assert plugin.lock()
    plugin.age_lock()
    assert plugin.serve() == "second-0"
    assert not plugin.lock()


def test_a_lock_without_a_time_holds_no_pod_up(place: Place) -> None:
    plugin = DevicePlugin(place, add_gpus(place, "GPU-a"))
    place.api.patch(NODES, plugin.node, {"metadata": {"annotations": {LOCK: "no time"}}})
    add_gang(place, "ours", 1, gib=8)
    assert plugin.serve() == "ours-0"
