"""One API server for the whole session; schedulers and our own processes are started per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.controlplane import ControlPlane


@pytest.fixture(scope="session")
def controlplane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Start etcd, API server and controllers once; every test cleans up what it makes."""
    with ControlPlane(tmp_path_factory.mktemp("real") / "controlplane") as running:
        running.start_controllers()
        yield running
