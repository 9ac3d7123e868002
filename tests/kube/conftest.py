"""A scripted API server, and the connection to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kube.config import Connection, load
from tests.kube.server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def connection(server: ScriptedServer, tmp_path: Path) -> Connection:
    return load(server.kubeconfig(tmp_path))
