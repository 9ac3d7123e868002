"""The clusters that tests ask for, kept for the whole session where nothing speaks against it.

A test that takes `place` runs twice, on the sandbox (marked `sandbox`) and on the real control
plane (marked `real`). A module that needs another configuration overrides `scheduler_conf`: it is
put into force on a cluster that runs already, as an operator would.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import installation
from tests.clusters.cluster import Scheduling
from tests.clusters.conf_file import ConfFile
from tests.clusters.controlplane import ControlPlane
from tests.clusters.embedded import Embedded, Sandboxes
from tests.clusters.place import Place
from tests.clusters.resources import NAMESPACES, PODS
from tests.clusters.rig import Rig, Stage

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
def scheduler_conf() -> str:
    """The text of volcano-scheduler.conf; empty: what is built in."""
    return ""


@pytest.fixture(scope="module")
def conf_file(scheduler_conf: str, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A file with it, for a cluster that is started with a configuration of its own."""
    if not scheduler_conf:
        return None
    path = tmp_path_factory.mktemp("conf") / "volcano-scheduler.conf"
    path.write_text(scheduler_conf)
    return path


@pytest.fixture(scope="session")
def stage(installed: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Where our programs run on the real control plane, one rig at a time."""
    made = Stage(installed, ConfFile(tmp_path_factory.mktemp("conf")))
    yield made
    made.clear()


@pytest.fixture
def rig(stage: Stage, scheduler_conf: str) -> Rig:
    """An extender and its kube-scheduler on the real control plane, form A."""
    return stage.configured(scheduler_conf)


@pytest.fixture(scope="session")
def sandboxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandboxes]:
    """The sandboxes; each is its own cluster."""
    with Sandboxes(tmp_path_factory.mktemp("sandboxes")) as made:
        yield made


@pytest.fixture
def embedded(sandboxes: Sandboxes, scheduler_conf: str) -> Embedded:
    """A sandbox, form A."""
    return sandboxes.of(scheduler_conf)


@pytest.fixture(
    params=[
        pytest.param("embedded", id="sandbox", marks=pytest.mark.sandbox),
        pytest.param("rig", id="real", marks=pytest.mark.real),
    ],
)
def cluster(request: pytest.FixtureRequest) -> Scheduling:
    """A cluster on which Pumice schedules, per parameter."""
    running: Scheduling = request.getfixturevalue(request.param)
    return running


@pytest.fixture
def place(cluster: Scheduling) -> Iterator[Place]:
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
