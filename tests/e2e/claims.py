"""Claims whose volumes are made only once kube-scheduler has chosen a node for the pod.

There is no provisioner on the clusters of the tests: the test makes the volume of a claim when it
suits. Nor does the real control plane of the tests run the controller that binds claims to volumes
that kube-scheduler keeps for them: the test does that too.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.clusters import workloads
from tests.clusters.client import Object, Objects
from tests.clusters.place import Place
from tests.clusters.resources import CLAIMS, STORAGE_CLASSES, VOLUMES

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_CHOSEN = "volume.kubernetes.io/selected-node"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_MODES = ["ReadWriteOnce"]


class LateClaims:
    """The claims of a place and the class they are of; `with` makes that and takes all away."""

    def __init__(
        self,
        place: Place,
        *,
        zones: Sequence[str] = (),
        provisioner: str = "example.com/by-the-test",
    ) -> None:
        """``zones``: where there can be volumes; none named: everywhere."""
        self._place = place
        self._api = place.api
        self._class = f"late-{place.name}"
        self._zones = zones
        self._provisioner = provisioner
        self._provided: list[str] = []

    def __enter__(self) -> Self:
        self._api.create(
            workloads.item(
                STORAGE_CLASSES,
                self._class,
                provisioner=self._provisioner,
                volumeBindingMode="WaitForFirstConsumer",
                allowedTopologies=[
                    {"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}
                    for zone in self._zones
                ],
            )
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in self._provided:
            self._api.delete(VOLUMES, self._volume_of(name))
        self._api.delete(STORAGE_CLASSES, self._class)

    def add(self, name: str) -> dict[str, Any]:
        """A claim; returns the part of a pod's spec that names it."""
        wanted = {
            "accessModes": _MODES,
            "storageClassName": self._class,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        claim = workloads.item(CLAIMS, name, spec=wanted)
        self._api.create(claim, resource=CLAIMS, namespace=self._place.name)
        return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}

    def wait_chosen(self, name: str, *, timeout_s: float = 30) -> str:
        """Wait until kube-scheduler has chosen a node for the claim; returns which."""
        claim = self._api.until_one(
            CLAIMS, name, _has_node, namespace=self._place.name, timeout_s=timeout_s
        )
        node: str = claim["metadata"]["annotations"][_CHOSEN]
        return node

    def provide(self, name: str) -> None:
        """Make the claim's volume on the node that was chosen, and bind the two."""
        self._create_volume(name, self.wait_chosen(name), claimRef=self._reference(name))
        self._bind(name, self._volume_of(name))

    def offer(self, name: str, node: str) -> None:
        """A free volume of the class on that node."""
        self._create_volume(name, node)
        free = {"status": {"phase": "Available"}}
        self._api.patch(VOLUMES, self._volume_of(name), free, subresource="status")

    def settle(self, name: str) -> str:
        """Wait until a free volume is kept for the claim and bind the two; returns its name."""

        def kept(volumes: Objects) -> list[str]:
            return [each["metadata"]["name"] for each in volumes if self._is_for(each, name)]

        [volume] = kept(self._api.until(VOLUMES, lambda volumes: bool(kept(volumes))))
        self._bind(name, volume)
        return volume.removeprefix(f"{self._place.name}-")

    def _is_for(self, volume: Object, claim: str) -> bool:
        kept = volume["spec"].get("claimRef", {})
        return (kept.get("namespace"), kept.get("name")) == (self._place.name, claim)

    def _create_volume(self, name: str, node: str, **parts: object) -> None:
        here = [{"key": HOST, "operator": "In", "values": [node]}]
        spec = {
            "accessModes": _MODES,
            "storageClassName": self._class,
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}},
            **parts,
        }
        self._api.create(workloads.item(VOLUMES, self._volume_of(name), spec=spec))
        self._provided.append(name)

    def _bind(self, name: str, volume: str) -> None:
        bound = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": volume}}
        self._api.patch(CLAIMS, name, bound, namespace=self._place.name)

    def _reference(self, name: str) -> Object:
        claim = self._api.get(CLAIMS, name, namespace=self._place.name)
        return {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "namespace": self._place.name,
            "name": name,
            "uid": claim["metadata"]["uid"],
        }

    def _volume_of(self, name: str) -> str:
        return f"{self._place.name}-{name}"


def _has_node(claim: Object) -> bool:
    return _CHOSEN in claim["metadata"].get("annotations", {})
