"""Volumes: gangs go where theirs are, as many as nodes attach, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.resources import ATTACHMENTS, CLAIMS, CSI_NODES, VOLUMES

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"


class Volumes:
    """Volumes of a place and claims that are bound to them, and what nodes attach."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._api = place.api
        self._made: list[tuple[Any, str]] = []

    def add(self, name: str, *, zone: str = "", mode: str = "ReadWriteOnce") -> dict[str, Any]:
        """A claim with a volume; returns the part of a pod's spec that names it."""
        common: Object = {"accessModes": [mode], "storageClassName": ""}
        volume = f"{self._place.name}-{name}"
        reached = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": reached}}} if zone else {}
        spec = {
            **common,
            **affinity,
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": volume},
            "claimRef": {"kind": CLAIMS.kind, "namespace": self._place.name, "name": name},
        }
        self._create(VOLUMES, workloads.item(VOLUMES, volume, spec=spec))
        wanted = {**common, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
        claim = workloads.item(CLAIMS, name, spec=wanted)
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self._api.create(claim, resource=CLAIMS, namespace=self._place.name)
        return using(name)

    def attach(self, node: str, count: int) -> None:
        """The driver says that so many of its volumes can be attached to the node."""
        self._api.delete(CSI_NODES, node)
        drivers = [
            {"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": count}}
        ]
        self._create(CSI_NODES, workloads.item(CSI_NODES, node, spec={"drivers": drivers}))

    def leave_attached(self, name: str, node: str) -> str:
        """The volume of a claim is attached to the node; returns the name of the attachment."""
        attachment = f"{self._place.name}-{name}-attached"
        source = {"persistentVolumeName": f"{self._place.name}-{name}"}
        spec = {"attacher": DRIVER, "nodeName": node, "source": source}
        self._create(ATTACHMENTS, workloads.item(ATTACHMENTS, attachment, spec=spec))
        return attachment

    def detach(self, attachment: str) -> None:
        self._api.delete(ATTACHMENTS, attachment)

    def _create(self, resource: Any, item: Object) -> None:
        self._api.create(item, resource=resource)
        self._made.append((resource, item["metadata"]["name"]))

    def delete(self) -> None:
        for resource, name in self._made:
            self._api.delete(resource, name)


@pytest.fixture
def volumes(place: Place) -> Iterator[Volumes]:
    made = Volumes(place)
    yield made
    made.delete()


def using(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def nodes_of(pods: list[Object]) -> list[str]:
    return sorted(map(workloads.node_of, pods))


def add_gang(place: Place, name: str, *parts: dict[str, Any]) -> None:
    """A gang of one pod per part."""
    place.add_group(name, len(parts))
    pods = [workloads.pod(f"{name}-{i}", group=name, **part) for i, part in enumerate(parts)]
    place.submit(pods)


def test_a_gang_goes_to_the_zone_of_its_volume(place: Place, volumes: Volumes) -> None:
    place.add_nodes(2, cpu="8", labels={ZONE: "a"})
    (there,) = place.add_nodes(1, cpu="8", labels={ZONE: "b"})
    shared = volumes.add("shared", zone="b", mode="ReadWriteMany")
    add_gang(place, "ours", *([shared] * 3))
    assert nodes_of(place.wait_bound("ours", 3)) == [there] * 3


def test_a_gang_waits_and_says_where_its_volume_is(place: Place, volumes: Volumes) -> None:
    place.add_nodes(2, cpu="8", labels={ZONE: "a"})
    shared = volumes.add("shared", zone="b", mode="ReadWriteMany")
    add_gang(place, "ours", *([shared] * 2))
    where = f"volume {place.name}-shared is in zone b"
    place.wait_condition("ours", "Reserved", "False", reason="Volumes", says=where)
    place.add_nodes(1, cpu="8", labels={ZONE: "b"})
    place.wait_bound("ours", 2)


def test_a_gang_takes_as_many_volumes_as_nodes_attach(place: Place, volumes: Volumes) -> None:
    """Three of four would fit: none is bound until a node attaches one more."""
    one, other = place.add_nodes(2, cpu="8")
    volumes.attach(one, 2)
    volumes.attach(other, 1)
    add_gang(place, "ours", *(volumes.add(f"data-{i}") for i in range(4)))
    place.wait_summary("ours", f"volumes of {DRIVER} free")
    place.wait_condition("ours", "Reserved", "False", reason="Volumes")
    assert not place.bound("ours")
    volumes.attach(other, 2)
    assert nodes_of(place.wait_bound("ours", 4)) == [one, one, other, other]


def test_a_volume_that_is_still_attached_takes_its_place_until_it_is_not(
    place: Place, volumes: Volumes
) -> None:
    (node,) = place.add_nodes(1, cpu="8")
    volumes.attach(node, 2)
    volumes.add("gone")
    left = volumes.leave_attached("gone", node)
    add_gang(place, "ours", *(volumes.add(f"data-{i}") for i in range(2)))
    place.wait_summary("ours", f"0 of 2 volumes of {DRIVER} free; 1 asked")
    volumes.detach(left)
    place.wait_bound("ours", 2)


def test_a_volume_for_one_pod_waits_until_the_other_one_has_gone(
    place: Place, volumes: Volumes
) -> None:
    place.add_nodes(2, cpu="8")
    alone = volumes.add("alone", mode="ReadWriteOncePod")
    add_gang(place, "first", alone)
    place.wait_bound("first", 1)
    add_gang(place, "second", alone)
    place.wait_summary("second", "is for one pod at a time (ReadWriteOncePod)")
    place.delete_gang("first")
    place.wait_bound("second", 1)
