"""Decisions outlive the extender that made them, and nothing that happens to them stops it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Setting, Stage
from tests.scenarios.confs import evicting

pytestmark = pytest.mark.real


def test_why_a_pod_was_evicted_is_told_after_a_restart(stage: Stage, tmp_path: Path) -> None:
    conf, folder = tmp_path / "volcano-scheduler.conf", tmp_path / "audit"
    conf.write_text(evicting("enqueue, allocate, preempt, backfill"))
    rig = stage.rig(Setting(conf=conf, flags=(f"--audit-dir={folder}",)))
    with Place(rig) as place:
        low, high = (place.add_priority_class(name, value) for name, value in (("l", 1), ("h", 9)))
        place.add_nodes(1, cpu="2")
        place.add_gang("low", 2, minimum=1, rank=low)
        place.wait_bound("low", 2)
        place.add_gang("high", 1, rank=high)
        place.wait_bound("high", 1)
        [kept] = [pod["metadata"]["name"] for pod in place.bound("low")]
        [victim] = {"low-0", "low-1"} - {kept}
        for gang in ("low", "high"):
            place.delete_gang(gang)
        place.wait_gone()
        rig.extender.stop()
        rig.restart_extender()
        found = rig.extender.get(f"/audit/evictions/{place.name}/{victim}")
        assert [each["cause"] for each in found["decisions"]] == ["decided", "evicted"]
        assert {each["preemptor"] for each in found["decisions"]} == {f"{place.name}/high"}
        assert found["certificate"]
        assert found["coverage"]["outlives_process"] is True
        assert found["coverage"]["problems"] == []

        shutil.rmtree(folder)
        folder.write_text("no folder any more")
        place.add_gang("next", 2)
        place.wait_bound("next", 2)
        rig.extender.kill()
        rig.restart_extender()
        place.add_gang("last", 1, cpu="100m")
        wait_until(
            lambda: rig.extender.metrics()["pumice_audit_kept"] == 0,
            timeout_s=30,
            what="that decisions are not kept",
        )
        answer = rig.extender.get(f"/audit?job={place.name}/last")
        assert any("audit" in each for each in answer["coverage"]["problems"])
        assert rig.extender.status("/readyz") == 200
