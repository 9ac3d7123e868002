"""Claims that wait for a pod: which node it gets, what is written before it is bound, and when."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.scheduler.claims import CLASSES, STORAGE, VOLUMES
from app.wire.documents import Document, ObjectName, section
from tests.sandbox.documents import at, pod
from tests.sandbox.scheduler.scripted import Stage, play

HOST = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
NONE_FREE = "node(s) didn't find available persistent volumes to bind"
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"


def storage_class(provisioner: str = "example.com/disks", **fields: Any) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


LOCAL = storage_class("kubernetes.io/no-provisioner")


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> Document:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"storageClassName": "late", **asked, **spec},
    }


def volume(name: str, node: str, size: str = "1Gi", **spec: Any) -> Document:
    here = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "late",
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": here}},
            **spec,
        },
    }


def using(name: str = "p", *claims: str) -> Document:
    named = claims or ("data",)
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in named]
    document = pod(name, metadata=None, volumes=volumes)
    document["spec"]["schedulerName"] = "volcano"
    return document


def stored(stage: Stage, name: str = "data") -> Document:
    found = stage.sandbox.store.get(STORAGE, at(name))
    assert found is not None
    return found


def said_of(stage: Stage, name: str = "data") -> dict[str, str]:
    return stored(stage, name)["metadata"].get("annotations") or {}


def volume_of(stage: Stage, name: str = "data") -> str:
    return str(section(stored(stage, name), "spec").get("volumeName") or "")


def phase(stage: Stage, name: str) -> str:
    found = stage.sandbox.store.get(VOLUMES, ObjectName("", name))
    return str(section(found or {}, "status").get("phase"))


def provide(stage: Stage, name: str = "data") -> None:
    """As a provisioner does."""
    node = said_of(stage, name)[SELECTED]
    kept = {"namespace": "default", "name": name}
    stage.create(volume(f"made-{name}", node, claimRef=kept))


def test_a_pod_is_bound_once_the_volume_is_made_on_the_node_that_it_got() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(storage_class(), claim(), using())
        await stage.clock.advance(30)
        node = said_of(stage)[SELECTED]
        assert section(stage.pod("p"), "status").get("nominatedNodeName") == node
        assert (stage.node_of("p"), volume_of(stage)) == ("", "")
        provide(stage)
        await stage.clock.advance(2)
        assert (stage.node_of("p"), volume_of(stage)) == (node, "made-data")
        assert stored(stage)["status"]["phase"] == phase(stage, "made-data") == "Bound"

    play(scenario)


def test_a_volume_that_never_comes_costs_the_place_after_ten_minutes() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(storage_class(), claim(), using())
        await stage.clock.advance(599)
        assert not stage.events("FailedScheduling")
        await stage.clock.advance(3)
        assert stage.told("p") == (
            "SchedulerError",
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
        )
        provide(stage)
        await stage.clock.advance(20)
        assert stage.node_of("p") == said_of(stage)[SELECTED]

    play(scenario)


def test_a_provisioner_that_gives_up_sends_the_pod_to_look_again() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(storage_class(), claim(), using())
        await stage.clock.advance(3)
        gone = {"metadata": {"annotations": {SELECTED: None}}}
        stage.sandbox.server.patch(STORAGE, at("data"), gone)
        await stage.clock.advance(1)
        assert 'provisioning failed for PVC "data"' in stage.told("p")[1]
        await stage.clock.advance(10)
        assert said_of(stage)[SELECTED]

    play(scenario)


def test_a_class_says_where_its_volumes_can_be_made() -> None:
    async def scenario(stage: Stage) -> None:
        there = {"key": HOST, "values": ["node-00002"]}
        stage.create(
            storage_class(allowedTopologies=[{"matchLabelExpressions": [there]}]), claim(), using()
        )
        await stage.clock.advance(3)
        assert said_of(stage)[SELECTED] == "node-00002"

    play(scenario)


def test_the_smallest_free_volume_that_is_large_enough_decides_where_the_pod_goes() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(
            LOCAL,
            volume("small", "node-00000"),
            volume("large", "node-00001", "20Gi"),
            volume("right", "node-00001", "10Gi"),
            claim(size="5Gi"),
            using(),
        )
        await stage.clock.advance(3)
        assert (stage.node_of("p"), volume_of(stage)) == ("node-00001", "right")
        assert {name: phase(stage, name) for name in ("small", "large", "right")} == {
            "small": "Available",
            "large": "Available",
            "right": "Bound",
        }

    play(scenario)


def test_two_pods_do_not_get_the_same_volume() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(
            LOCAL,
            volume("one", "node-00000"),
            volume("other", "node-00000"),
            *(claim(name) for name in ("a", "b", "c")),
            *(using(f"p-{name}", name) for name in ("a", "b", "c")),
        )
        await stage.clock.advance(5)
        volumes = [volume_of(stage, name) for name in ("a", "b", "c")]
        assert sorted(volumes) == ["", "one", "other"]
        [waiting] = [name for name in ("a", "b", "c") if not volume_of(stage, name)]
        reason, text = stage.told(f"p-{waiting}")
        assert reason == "Unschedulable"
        assert f"3 {NONE_FREE}" in text
        stage.create(volume("third", "node-00002"))
        await stage.clock.advance(20)
        assert stage.node_of(f"p-{waiting}") == "node-00002"

    play(scenario)


@pytest.mark.parametrize(
    "spec",
    [
        {"storageClassName": "other"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"claimRef": {"namespace": "default", "name": "another"}},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_volume_that_does_not_serve_the_claim_is_left_alone(spec: Document) -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(LOCAL, volume("odd", "node-00000", **spec), claim(), using())
        await stage.clock.advance(3)
        assert NONE_FREE in stage.told("p")[1]

    play(scenario)


def test_pods_that_come_later_go_where_the_volume_is() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(LOCAL, volume("disk", "node-00001"), claim(), using())
        await stage.clock.advance(3)
        cordoned = {"spec": {"unschedulable": True}}
        stage.sandbox.server.patch("/nodes", ObjectName("", "node-00001"), cordoned)
        stage.create(using("later"))
        await stage.clock.advance(3)
        assert stage.node_of("p") == "node-00001"
        assert f"2 {ELSEWHERE}" in stage.told("later")[1]

    play(scenario)


def test_a_claim_that_names_a_volume_is_bound_to_it_and_a_claim_that_goes_releases_it() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(LOCAL, volume("mine", "node-00002"), claim(volumeName="mine"), using())
        await stage.clock.advance(3)
        assert (stage.node_of("p"), said_of(stage).get(BOUND)) == ("node-00002", "yes")
        stage.sandbox.server.delete("/pods", at("p"))
        stage.sandbox.server.delete(STORAGE, at("data"))
        await stage.clock.advance(3)
        assert phase(stage, "mine") == "Released"

    play(scenario)


def test_a_pod_that_goes_while_its_volume_is_made_takes_no_room_any_more() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(storage_class(), claim(), using())
        await stage.clock.advance(3)
        stage.sandbox.server.delete("/pods", at("p"))
        await stage.clock.advance(3)
        loop = stage.sandbox.loops[0]
        assert not any(node.pods for node in loop.cluster.nodes.values())

    play(scenario)


def test_a_class_that_comes_later_lets_the_pod_go_on() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(volume("disk", "node-00001"), claim(), using())
        await stage.clock.advance(3)
        assert "pod has unbound immediate PersistentVolumeClaims" in stage.told("p")[1]
        stage.create(LOCAL)
        await stage.clock.advance(20)
        assert stage.sandbox.store.get(CLASSES, ObjectName("", "late")) is not None
        assert stage.node_of("p") == "node-00001"

    play(scenario)
