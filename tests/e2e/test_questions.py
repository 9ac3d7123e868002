"""Questions write nothing: the audit log of the API server is the witness."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import installation, workloads
from tests.clusters.client import Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Setting
from tests.scenarios.confs import evicting

pytestmark = pytest.mark.real

POLICY: Object = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "omitStages": ["RequestReceived"]}],
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
QUIET_S = 3.0
"""No text is put right later than that while nothing changes."""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Path]]:
    """A control plane that logs each request, and its log."""
    folder = tmp_path_factory.mktemp("audited")
    policy, log = folder / "policy.json", folder / "audit.log"
    policy.write_text(json.dumps(POLICY), encoding="utf-8")
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    with ControlPlane(folder / "controlplane", apiserver_flags=flags) as running:
        installation.apply(running.api, installation.INSTALL)
        installation.wait_established(running.api)
        installation.wait_gating(running.api)
        yield running, log


def writes(log: Path, *, user: str) -> list[str]:
    """What that account has written so far: verb and address."""
    said = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [
        f"{each['verb']} {each['requestURI']}"
        for each in said
        if each["verb"] in WRITES and each["user"]["username"] == user
    ]


def job(name: str, size: int) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": size,
            "tasks": [{"name": "t", "replicas": size, "template": {"spec": pod}}],
        },
    }


def test_no_question_writes_anything(audited: tuple[ControlPlane, Path], tmp_path: Path) -> None:
    controlplane, log = audited
    conf = tmp_path / "conf.yaml"
    conf.write_text(evicting("enqueue, allocate, preempt, reclaim, backfill"), encoding="utf-8")
    with Rig(controlplane, Setting(conf=conf)) as rig, Place(rig) as place:
        user = "system:serviceaccount:pumice-system:pumice-extender"
        node, _ = place.add_nodes(2, cpu="4")
        place.add_group("runs", 4)
        place.submit(workloads.members("runs", 4))
        place.wait_bound("runs", 4)
        place.add_group("waits", 8)
        place.submit(workloads.members("waits", 8))
        wait_until(
            lambda: bool(place.cluster.extender.get(f"/explain/{place.name}/waits")["reason"]),
            timeout_s=30,
            what="the group is told why it waits",
        )
        before = _when_quiet(log, user)
        assert before, "the extender bound pods, so its writes are seen"

        extender = place.cluster.extender
        asked: dict[str, Any] = {"namespace": place.name}
        for question in (
            {"manifests": [job("one", 1)]},
            {"manifests": [job("many", 50)]},
            {"set": {"queue/default.weight": "3"}},
            {"drain": [node]},
            {"conf": evicting("enqueue, allocate, reclaim")},
        ):
            assert extender.post("/simulate", asked | question)["outcome"]
        for path in (
            f"/fits?request=cpu=1&namespace={place.name}",
            f"/explain/{place.name}/waits",
            f"/advice/{place.name}/waits",
            f"/line/{place.name}/waits",
            "/preview/queue/default?capability=cpu=1",
            *(f"/debug/{page}" for page in ("snapshot", "queues", "plan", "evictions", "ledger")),
        ):
            extender.get(path)
        assert _when_quiet(log, user) == before


def _when_quiet(log: Path, user: str) -> list[str]:
    """All writes once there was none for a while."""
    while True:
        before = writes(log, user=user)
        time.sleep(QUIET_S)
        if writes(log, user=user) == before:
            return before
