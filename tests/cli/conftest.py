"""What the tests of commands share."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.sandbox.assembly import kubeconfig
from tests.cli.stand import Door, Stand, opened


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Commands send all records to the standard error of their test; later tests have another."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def ending_as_before() -> Iterator[None]:
    """Commands that start a process let SIGTERM end it with 0, and the tests' own would pass so."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="package", autouse=True)
def in_greenwich() -> Iterator[None]:
    """Moments are shown in the zone of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="session")
def door() -> Door:
    """What all tests of commands go through."""
    return Door()


@pytest.fixture(scope="session")
def door_url(door: Door) -> Iterator[str]:
    """Where it is."""
    with opened(door) as url:
        yield url


@pytest.fixture
def stand(door: Door, door_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    """An empty API server of the test's own; the environment says nothing else."""
    for name in [name for name in os.environ if name.startswith(("PUMICE_", "VOLCANO_", "KUBE"))]:
        monkeypatch.delenv(name)
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig(door_url)))
    return Stand(door.renew(), door_url, config)
