"""One API server for the whole session, with everything installed; one rig per module."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clusters.controlplane import ControlPlane
from tests.clusters.resources import NAMESPACES, PODS
from tests.e2e import installation
from tests.e2e.place import Place
from tests.e2e.rig import Cluster, Rig

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def controlplane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Start etcd, API server and controllers once; every test cleans up what it makes."""
    with ControlPlane(tmp_path_factory.mktemp("real") / "controlplane") as running:
        running.start_controllers()
        yield running


@pytest.fixture(scope="session")
def installed(controlplane: ControlPlane) -> ControlPlane:
    """The control plane with `manifests/install.yaml` in force."""
    installation.apply(controlplane.api, installation.INSTALL)
    installation.wait_established(controlplane.api)
    installation.wait_gating(controlplane.api)
    return controlplane


@pytest.fixture(scope="module")
def rig(installed: ControlPlane) -> Iterator[Rig]:
    """An extender and its kube-scheduler on the real control plane, form A."""
    with Rig(installed) as running:
        yield running


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.real)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster on which Pumice schedules, per parameter."""
    running: Rig = request.getfixturevalue("rig")
    return running


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Place]:
    """A namespace with nodes and queues of the test's own."""
    with Place(cluster) as made:
        yield made


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[str]:
    """Make a namespace of the test's own; afterwards it empties and goes in the background."""
    name = f"test-{next(_numbers)}"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    controlplane.api.create(space, resource=NAMESPACES)
    yield name
    # No kubelet would ever confirm a polite deletion of a bound pod.
    controlplane.api.delete_all(PODS, namespace=name)
    controlplane.api.delete(NAMESPACES, name)
