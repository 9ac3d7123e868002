"""volcano-scheduler.conf is read again while the extender runs; a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Setting, Stage

pytestmark = pytest.mark.real

NOBODY_IS_PLACED = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'
ALL_ARE_PLACED = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
BROKEN = 'actions: "enqueue, levitate"\n'


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conf") / "volcano-scheduler.conf"
    path.write_text(NOBODY_IS_PLACED)
    return path


@pytest.fixture
def place(stage: Stage, conf: Path) -> Iterator[Place]:
    with Place(stage.rig(Setting(conf=conf))) as made:
        yield made


def readiness(place: Place) -> str:
    return place.cluster.extender.text("/readyz")


def test_a_new_configuration_is_in_force_without_a_restart(place: Place, conf: Path) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("gang", 2)
    place.wait_phase("gang", "Inqueue")
    place.wait_condition("gang", "Reserved", "False", reason="NotAdmitted")

    conf.write_text(BROKEN)
    wait_until(lambda: "levitate" in readiness(place), timeout_s=30, what="the problem is told")
    assert readiness(place).startswith("ok")
    assert not place.bound("gang")

    conf.write_text(ALL_ARE_PLACED)
    place.wait_bound("gang", 2)
    assert "levitate" not in readiness(place)
