"""One API server for the whole session; schedulers and our own processes are started per test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clusters.controlplane import ControlPlane
from tests.clusters.resources import NAMESPACES, PODS

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def controlplane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Start etcd, API server and controllers once; every test cleans up what it makes."""
    with ControlPlane(tmp_path_factory.mktemp("real") / "controlplane") as running:
        running.start_controllers()
        yield running


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
